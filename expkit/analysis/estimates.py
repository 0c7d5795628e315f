"""Estimates as a report has them, frozen: an interval, and what an arm's speedup, time to target and trade-off rest on.

A number that does not exist is None, never nan; where one was refused a sentence says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; `n` counts the pairs (or values) behind it."""

    value: float | None = None
    lo: float | None = None
    hi: float | None = None
    n: int = 0
    level: float = 0.95
    method: str = ""
    """How the ends were made: `paired t`, `pooled t`, `Welch`, ..."""


@dataclass(frozen=True)
class Pooling:
    """Whether the error of all arms was pooled into one, and why not where it was not. A8 (b)."""

    used: bool = False
    sd: float | None = None
    """SD of one trial's log-time about its arm's and its block's mean."""
    df: int | None = None
    homogeneity_p: float | None = None
    """Of Bartlett's test that all arms vary alike; nothing is pooled below 0.01."""
    sentence: str = ""


@dataclass(frozen=True)
class Checks:
    """The same speedup by other estimators, and what its pairing is worth. A5."""

    p: float | None = None
    """Two-sided, of the t interval; below 1 - level exactly where the interval leaves out 1."""
    p_sign_flip: float | None = None
    p_sign_flip_least: float | None = None
    """2 / 2^n: no n pairs can give less."""
    rho: float | None = None
    """Correlation of the log times over pairs; pairing is worth 1 / (1 - rho) times the seeds."""
    hodges_lehmann: Interval = field(default_factory=Interval)
    ratio_of_means: Interval = field(default_factory=Interval)
    """Total bill against total bill, with Fieller's interval."""
    ratio_of_medians: Interval = field(default_factory=Interval)
    unpaired: Interval = field(default_factory=Interval)
    """Welch's interval over all usable times of both sides in common sessions, pairs or not."""
    sentence: str = ""
    """Where the checks and the speedup disagree about excluding 1; empty where they agree."""


@dataclass(frozen=True)
class Reach:
    """Time to the primary target with its misses as what they are, right-censored. A4."""

    hits: int = 0
    n: int = 0
    timed: int = 0
    """Trials whose time may be compared, of one session; the others count among hits and n only."""
    median_s: float | None = None
    """Where the Kaplan-Meier curve comes to 1/2; None where it never does."""
    typical_s: float | None = None
    """exp(mu) of the log-normal model with misses censored (Tobit), the geometric mean where there are none."""
    tau_s: float | None = None
    """The restricted mean's horizon, the shorter one of arm and baseline."""
    restricted_mean_s: Interval = field(default_factory=Interval)
    """Mean of min(T, tau), the integral of the curve."""
    difference_s: Interval = field(default_factory=Interval)
    """Restricted mean of the baseline minus the arm's: seconds saved up to tau."""
    log_rank_p: float | None = None
    """Of one curve for both, asymptotic; None for the baseline and where nobody came."""
    speedup: Interval = field(default_factory=Interval)
    """exp(mu_0 - mu_c) of the Tobit model, unpaired; no value where fewer than half of a side's trials came."""
    curve: tuple[tuple[float, float], ...] = ()
    """(seconds, share of trials not there yet after them): the steps of the Kaplan-Meier curve."""
    sentence: str = ""


@dataclass(frozen=True)
class AtQuality:
    """What an arm and its baseline take to one quality, both from runs whose schedules had ended. A6."""

    quality: float
    preset: bool
    """The target or a rung of its ladder, which were there before the data; else a quartile of the common range."""
    baseline_s: float
    arm_s: float
    speedup: Interval
    smooth: float | None = None
    """The speedup with a monotone cubic (PCHIP) between the budgets instead of straight lines in log-time."""


@dataclass(frozen=True)
class AtTime:
    """How much better an arm is than its baseline in equal time, more is better. A6."""

    seconds: float
    difference: Interval


@dataclass(frozen=True)
class Outrun:
    """A baseline that is faster than an arm and not worse, whole runs of both: a saving that is none."""

    budget: float
    """Of the arm."""
    seconds: float
    """Of the arm, as all of these a geometric mean over seeds."""
    shorter: float
    """Budget of the shortest such baseline."""
    baseline_s: float
    at_most: Interval
    """Baseline's seconds over the arm's: at the arm's own quality its speedup is no more."""
    gain: Interval
    """Quality of that baseline minus the arm's, more is better."""


@dataclass(frozen=True)
class EqualQuality:
    """The curve of an arm over its budgets, against the baseline's: one point a budget, each a whole run. A6."""

    arm: str
    """Label without the budget."""
    budgets: tuple[float, ...]
    """Scale-schedule ratios."""
    seeds: int
    """Those with a whole run of both sides at every budget."""
    seconds: tuple[float, ...] = ()
    """Geometric means, by budget."""
    quality: tuple[float, ...] = ()
    """Means, by budget, in the metric's own sign."""
    overlap: tuple[float, float] | None = None
    """The qualities that both curves reach, the lesser first."""
    at: tuple[AtQuality, ...] = ()
    least: float | None = None
    greatest: float | None = None
    """The smallest and the largest speedup over the overlap."""
    gains: tuple[AtTime, ...] = ()
    outrun: tuple[Outrun, ...] = ()
    """Budgets of the arm at which a baseline is faster and not worse, the shortest first."""
    sentence: str = ""
    """What it comes to, or why there is nothing."""


@dataclass(frozen=True)
class ReferenceArm:
    """One arm in reference system time. A16."""

    arm: str
    seconds: float
    """Geometric mean over its trials."""
    trials: int
    timed: int
    """Steps of it that were timed on the reference system."""
    nearest: float
    """Largest share of a trial's steps that were billed as the timed phase nearest in work, for want of their own."""
    speedup: Interval
    """Paired by block; no value for baselines."""


@dataclass(frozen=True)
class OnReference:
    """The arms of a sweep on the machine that `expkit calibrate` ran on."""

    host: str
    utc: str
    torch: str
    arms: tuple[ReferenceArm, ...]
    sentence: str


@dataclass(frozen=True)
class Front:
    """Arms that no other beats on both axes, at one parameter point; from resampled blocks, approximate. A7."""

    point: str
    seeds: int
    probability: tuple[tuple[str, float], ...] = ()
    """(arm, share of resamples in which no arm is at least as fast and as good and better in one), likeliest first."""
    volume: Interval = field(default_factory=Interval)
    """Area of log speedup x quality that the front adds beyond the baseline's time and its quality less the margin."""
