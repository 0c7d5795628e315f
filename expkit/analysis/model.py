"""What a report knows about a sweep, as frozen values: made by `summary.summarise`, shown by every face of the report.

A number that does not exist is None, never nan; an interval has no ends where there are fewer than two pairs.
Ratios are speedups, baseline time / arm time: more than one is faster. Quality differences have the sign that makes
more better, whatever the metric's mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from expkit.analysis.comparisons import Many
from expkit.analysis.contributions import Credit, Part
from expkit.analysis.estimates import Checks, Front, OnReference, Pooling, Reach
from expkit.analysis.estimates import EqualQuality as EqualQuality
from expkit.analysis.estimates import Interval as Interval

SCHEMA_VERSION = 1

Light = Literal["green", "amber", "red"]


@dataclass(frozen=True)
class TargetInfo:
    """The quality whose time is measured, where it came from, and whether it was fixed before the data."""

    metric: str
    mode: Literal["max", "min"]
    value: float | None
    rule: str
    """`lowest_final`, or `given` for a number that somebody wrote down."""
    given: Literal["pilot", "number", "none"]
    seeds: tuple[int, ...] = ()
    utc: str | None = None
    hash: str | None = None
    exploratory: bool = False
    sentence: str = ""
    ladder: tuple[tuple[float, float], ...] = ()
    """(share of the baseline's median gain, quality), lowest first; of the longest budget, where there are several."""
    ladders: tuple[tuple[float, tuple[tuple[float, float], ...]], ...] = ()
    """(budget, its own ladder), the shortest first, where budgets are varied and no pilot had fixed the rungs."""
    of_another: bool = False
    """Whether the pilot trained another baseline than the one that the sweep compares with."""
    flat: bool = False
    """Exploratory because the baseline hardly gains there, so that times to it are mostly noise."""

    @property
    def warning(self) -> str:
        """Why no time to it is a claim; empty where it may be."""
        why = "TARGET TOO FLAT" if self.flat else "TARGET SET AFTER DATA"
        return f"{why}: exploratory." if self.exploratory else ""


@dataclass(frozen=True)
class Noise:
    """What identical code differs by on one clock; no time effect below `eps` (in log-time) is claimed."""

    clock: str
    eps: float | None
    ratio: Interval
    """exp of the mean A/A log ratio r0/r1."""
    pairs: int
    contains_one: bool | None = None
    sentence: str = ""


@dataclass(frozen=True)
class TargetTime:
    """How long one arm took to one quality, by one rule, over its trials."""

    rule: str
    """first, sustained, interpolated (the sustained one, interpolated), to_end, median3 or endpoint (a whole run)."""
    target: float
    share: float | None
    """The rung of the ladder; None for the primary target."""
    hits: int
    n: int
    median_s: float | None
    """Median with misses counted as infinite; None unless more than half of the trials hit."""
    censored_at_s: float | None
    """The shortest horizon of a trial that missed; None where none did."""
    text: str
    """`12.3 s (5/5)` or `> 41 s (1/5)`."""
    left_censored: int = 0
    """Trials that were there at their first evaluation, so that the true time is earlier."""


@dataclass(frozen=True)
class Arm:
    """One set of methods with its levels and parameters, against the baseline at the same parameters and seeds."""

    label: str
    algorithms: tuple[str, ...]
    parameters: Mapping[str, Any]
    baseline: bool
    planned: int
    complete: int
    failed: int
    diverged: int
    pairs: int
    """Pairs behind `speedup`."""
    equals: str | None
    """The arm that this one equals by construction, where some of its methods did nothing."""
    speedup: Interval
    speedup_other_clock: Interval
    other_clock: str
    quality: Interval
    quality_difference: Interval
    time_s: float | None
    """Geometric mean over its trials on the headline clock."""
    setup_s: float | None
    target_times: tuple[TargetTime, ...]
    target_speedup: Interval
    """Speedup of the sustained, interpolated time to the primary target: paired where every trial reached it, else by
    the censored likelihood of `reach`; no value where fewer than half of a side's trials reached it."""
    verdict: str
    time_class: str
    quality_class: str
    sentence: str
    size: int = 0
    seeds: tuple[int, ...] = ()
    p_sign_flip: float | None = None
    time_missing: str = ""
    """Empty, or why the time comparison is not there."""
    checks: Checks = field(default_factory=Checks)
    """The speedup by other estimators."""
    reach: Reach = field(default_factory=Reach)
    """Time to the primary target, misses included."""
    relative_time: float | None = None
    """`time_s` over that of the fastest arm at its parameter point."""


@dataclass(frozen=True)
class Effect:
    """What switching one method on does, averaged over all contexts of the grid."""

    method: str
    time: Interval
    """A factor on speed: more than one is faster."""
    quality: Interval
    resolved_time: bool
    resolved_quality: bool
    sentence: str
    shapley_time: Interval = field(default_factory=Interval)
    shapley_quality: Interval = field(default_factory=Interval)
    contexts: int = 0
    """Pairs of cells per seed that differ in this method only; the cells of a contrast."""
    part_time: Part = field(default_factory=Part)
    """Its part of what all methods do to time, by several readings."""
    part_quality: Part = field(default_factory=Part)
    aliases: tuple[str, ...] = ()
    """In a fraction, sets of methods whose effect is in the same number as its main effect."""
    contrast: bool = False
    """Whether the effect is a contrast of all cells, as in a fraction, and no mean over pairs."""

    @property
    def over(self) -> str:
        """What it is a mean over."""
        return f"as a contrast of {self.contexts} arms" if self.contrast else (
            f"averaged over {self.contexts} context{'' if self.contexts == 1 else 's'}")  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """A metric over training, mean over seeds with its t interval; None where fewer than two seeds are there."""

    arm: str
    metric: str
    step: tuple[int, ...]
    sample: tuple[int, ...]
    train_s: tuple[float, ...]
    mean: tuple[float, ...]
    lo: tuple[float | None, ...]
    hi: tuple[float | None, ...]
    n: tuple[int, ...]


@dataclass(frozen=True)
class Guard:
    """One of the ways a comparison goes wrong, looked at; red withholds the headline."""

    name: str
    light: Light
    number: float | None
    sentence: str
    checked: bool = True
    """False where the store lacks what the guard needs: the light is amber then, and the sentence says what lacks."""


@dataclass(frozen=True)
class Failure:
    """A replicate that ended without a result."""

    id: str
    replicate: int
    arm: str
    seed: int | None
    state: str
    cause: str | None
    message: str
    log: str
    """Path of its log, relative to the runs folder."""


@dataclass(frozen=True)
class TrialRow:
    """One replicate of the sweep, done or not."""

    id: str
    replicate: int
    arm: str
    role: str
    block: int
    position: int
    seed: int | None
    state: str
    attempts: int
    train_s: float | None
    cpu_s: float | None
    wall_s: float | None
    setup_s: float | None
    eval_s: float | None
    quality: float | None
    timing_valid: bool | None
    timing_reasons: tuple[str, ...]
    effective: Mapping[str, bool]
    command: str
    """What repeats it: `expkit rerun <id> --verify`."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Where train_s went, by name without `_s`: data_wait, forward, backward, optimizer, algorithms."""


@dataclass(frozen=True)
class MethodVerdict:
    """What one method does, averaged over all contexts, in the words of the arms' verdicts."""

    method: str
    verdict: str
    time: Interval
    quality: Interval
    sentence: str


@dataclass(frozen=True)
class VerdictBox:
    """What stands above everything else: what was compared, what came of it, what it rests on."""

    scope: str = ""
    """Workload, arms, seeds, budget, in a sentence."""
    answer: str = ""
    """The first sentence of the headline: what is faster at equal quality, or why nothing is said."""
    methods: tuple[MethodVerdict, ...] = ()
    further: tuple[str, ...] = ()
    """What the headline has no room for: who earned it, then the arms of each verdict. Empty where it is withheld."""
    noise: str = ""
    clock: str = ""
    fixed: tuple[str, ...] = ()
    """What was fixed before the data."""
    not_fixed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Of which the store does not say when it was fixed."""


@dataclass(frozen=True)
class Confirmed:
    """An arm on fresh seeds beside what chose it; the speedups' intervals hold together with the sweep's level."""

    arm: Arm
    was: Interval
    """Its speedup in the sweep, as it was when it was chosen."""
    was_quality: Interval
    p_holm: float | None
    """Of no effect on time, two-sided, adjusted for the number of arms that are confirmed."""
    sentence: str


@dataclass(frozen=True)
class Confirmation:
    """A few arms run again on seeds that nothing was chosen by, judged on test data where there is some."""

    utc: str
    """When arms and seeds were settled."""
    rule: str
    """How the arms were chosen."""
    of: int
    """Arms among which was chosen."""
    seeds: tuple[int, ...]
    states: Mapping[str, int]
    """Replicates by state."""
    metric: str
    test: bool
    opened_utc: str | None
    """When the first trial that evaluates test data was begun."""
    clock: str
    level: float
    """Of each interval of a speedup: 1 - (1 - ci) / number of arms."""
    noise: Noise
    arms: tuple[Confirmed, ...]
    earlier: tuple[str, ...]
    """When other confirmations of this sweep were settled."""
    sentences: tuple[str, ...]
    """What was done, which data judged, and what cannot be said of it."""
    headline: str


@dataclass(frozen=True)
class Summary:
    """Everything that a report says; `sql` has one SELECT per kind of number that gives it from the views."""

    schema_version: int
    sweep: str
    generated_utc: str
    created_utc: str | None
    running: bool
    states: Mapping[str, int]
    """Replicates of the grid by state; pilots are among `trials` only."""
    metric: str
    mode: Literal["max", "min"]
    unit: str
    clock: str
    clock_requested: str
    clock_sentence: str
    ci: float
    delta: float
    target: TargetInfo
    noise: tuple[Noise, ...]
    rho: Mapping[str, float]
    """Correlation over seeds between arm and baseline, per quantity; what pairing gains is 1 / (1 - rho)."""
    arms: tuple[Arm, ...]
    effects: tuple[Effect, ...]
    curves: tuple[Curve, ...]
    guards: tuple[Guard, ...]
    failures: tuple[Failure, ...]
    trials: tuple[TrialRow, ...]
    provenance: Mapping[str, Any]
    sql: Mapping[str, str]
    headline: tuple[str, ...]
    """At most three sentences."""
    withheld: tuple[str, ...] = ()
    """Names of the red guards; not empty where the headline is withheld."""
    equal_quality: tuple[EqualQuality, ...] = ()
    """Time at equal quality, of each arm that ran at several budgets; empty where no budget is varied."""
    fronts: tuple[Front, ...] = ()
    """Who is on the front of time and quality, by parameter point."""
    credit: Credit = field(default_factory=Credit)
    """What the effects rest on, interactions, orders of switching on, levels."""
    many: Many = field(default_factory=Many)
    """All arms at once: adjusted for their number, the set that may be best, sensitivity, cost."""
    pooling: Pooling = field(default_factory=Pooling)
    """Whether one error serves all arms' intervals, and why not where it does not."""
    box: VerdictBox = field(default_factory=VerdictBox)
    """The verdict box as data."""
    confirmation: Confirmation | None = None
    """None where nothing has been confirmed."""
    reference: OnReference | None = None
    """Arms in the time of the machine that `expkit calibrate` timed their steps on."""
