"""Many arms at once, as a report has it, frozen: adjusted for their number, the set that may be best, what was
detectable, what it cost. A number that does not exist is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from expkit.analysis.estimates import Interval


@dataclass(frozen=True)
class Comparison:
    """One arm against its baseline, as one of many. A9, A11, A13."""

    arm: str
    simultaneous: Interval = field(default_factory=Interval)
    """Speedup; with this level no interval of all arms misses its own."""
    p: float | None = None
    """Of no effect on time, adjusted for all arms."""
    p_confirmatory: float | None = None
    """Holm's, for an arm that the sweep file names as confirmatory."""
    improvement: Interval = field(default_factory=Interval)
    """Probability that it is faster than the baseline of its block."""
    sooner: float | None = None
    """Probability that it is at the target before the baseline, unpaired, misses last."""
    sooner_p: float | None = None
    p_not_worse: float | None = None
    """Of quality that is worse by the margin or more, one-sided."""
    p_equal: float | None = None
    """Of quality that differs by the margin or more, the larger of two one-sided tests."""


@dataclass(frozen=True)
class Best:
    """The arms that cannot be told from the best of a parameter point, by one question."""

    question: str
    """`time`, `time, quality not worse` or `quality`."""
    point: str
    winner: str
    tied: tuple[str, ...]
    """The winner among them."""
    value: float
    """Speedup, or quality with the sign that makes more better."""
    shrunk: float | None
    """The same, drawn towards the mean of all arms as far as their spread is noise."""
    luck: float | None
    """What the best of so many equal arms leads by: a factor of time, a difference of quality."""
    arms: int
    n: int
    method: str
    sentence: str = ""


@dataclass(frozen=True)
class Sensitivity:
    """What this sweep could have seen with 80 % power at 5 %, and what seeing less would take."""

    sd: float | None = None
    """SD of ln T of one run within its block."""
    df: int | None = None
    n: int = 0
    alpha: float = 0.05
    power: float = 0.8
    arm: float | None = None
    """Smallest speedup of an arm that shows."""
    effect: float | None = None
    """Smallest main effect that shows, on a full grid without holes."""
    seeds: tuple[tuple[float, int | None], ...] = ()
    """(speedup, seeds per arm that show it); None beyond a million."""
    blocks_of_improvement: int = 29
    """Blocks that show a probability of improvement of 0.75 at 5 % with 95 % power (Noether)."""
    sentence: str = ""


@dataclass(frozen=True)
class Tuning:
    """Expected best quality of n configurations tried, for one set of methods; compare at equal n. A14."""

    arm: str
    configurations: int
    expected: tuple[float, ...]
    """For n = 1 to their number, the sign turned where less is better."""


@dataclass(frozen=True)
class Steadiness:
    """From which step on the baseline's steps take equally long. A17."""

    trials: int
    steady: int
    """Trials that come to a steady state."""
    warm_up_s: float | None = None
    """Median over the steady ones of train_s before it."""
    warm_up_share: float | None = None
    sentence: str = ""


@dataclass(frozen=True)
class Cost:
    """The bill of the claim: all replicates of the sweep, pilots and failures too. A15."""

    replicates: int = 0
    train_s: float = 0.0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    energy_kwh: float | None = None
    energy_source: str = ""
    """`measured` from logged power, `modelled` from the watts that the sweep file names, empty where neither is."""
    price: float | None = None
    """In the currency of the sweep file's rates."""
    per_run: tuple[tuple[str, float], ...] = ()
    """(arm, price of one of its trials)."""
    sentence: str = ""


@dataclass(frozen=True)
class Many:
    """All of these of one sweep."""

    family: str = ""
    """How p values and intervals of all arms were adjusted: `Dunnett` or `Holm`, or empty."""
    arms: tuple[Comparison, ...] = ()
    best: tuple[Best, ...] = ()
    sensitivity: Sensitivity = field(default_factory=Sensitivity)
    tuning: tuple[Tuning, ...] = ()
    steadiness: Steadiness | None = None
    cost: Cost = field(default_factory=Cost)
