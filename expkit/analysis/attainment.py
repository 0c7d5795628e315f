"""Time to target over the trials of an arm: hits, median with misses counted as infinite, and what each rule says."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from expkit.analysis import phrases
from expkit.analysis.load import Evaluations, Key
from expkit.analysis.model import TargetTime
from expkit.analysis.replicate import Replicate
from expkit.analysis.time_to_target import Crossing, Mode, Rule, crossings, stack

ENDED = ("complete", "diverged", "failed")
"""States that count: a trial that failed or diverged did not reach the target."""
NEVER = Crossing(False, None, None, None, False, None)
_SHOWN: tuple[tuple[str, Rule, bool], ...] = (
    ("first", "first", False),
    ("sustained", "sustained", False),
    ("interpolated", "sustained", True),
    ("to_end", "to_end", True),
    ("median3", "median3", True),
    ("endpoint", "endpoint", True),
)
"""(name in the report, rule, interpolated). All for the primary target, `interpolated` for the ladder."""

Ladder = tuple[tuple[float, float], ...]
"""(share of a gain, quality) of each rung."""


@dataclass(frozen=True)
class Attained:
    """Crossings of all replicates of a sweep on one clock, per rule and rung; the primary target has share None."""

    crossings: Mapping[tuple[Rule, float | None], Mapping[Key, Crossing]]
    targets: Mapping[float | None, float]
    """Of all trials, those of `rungs` excepted."""
    clock: str
    rungs: Mapping[Key, Ladder] = field(default_factory=dict)
    """The ladder of a replicate whose budget has one of its own."""

    def targets_of(self, one: Replicate | None) -> Mapping[float | None, float]:
        """The primary target, and the rungs of the replicate's budget."""
        own = self.rungs.get((one.id, one.replicate)) if one is not None else None
        return self.targets if own is None else {**{s: q for s, q in self.targets.items() if s is None}, **dict(own)}

    def of(self, one: Replicate, rule: Rule = "sustained", share: float | None = None) -> Crossing:
        """Where a replicate reached a rung; a miss for one without evaluations."""
        return self.crossings.get((rule, share), {}).get((one.id, one.replicate), NEVER)

    def time_of(self) -> Callable[[Replicate], float | None]:
        """The sustained, interpolated time to the primary target, for pairing."""
        return lambda one: self.of(one).t or None  # an evaluation at time 0 has no logarithm


def attained(
    series: Mapping[Key, Evaluations],
    target: float | None,
    ladder: Sequence[tuple[float, float]],
    mode: Mode,
    clock: str,
    rungs: Mapping[Key, Ladder] | None = None,
) -> Attained:
    """Crossings of every series with the primary target (by all rules) and with each rung (sustained).

    `rungs` are the ladders of replicates whose budget has one of its own.
    """
    own = rungs or {}
    found: dict[tuple[Rule, float | None], dict[Key, Crossing]] = {}
    rules: tuple[Rule, ...] = ("first", "sustained", "to_end", "median3", "endpoint")
    groups: dict[Ladder, list[Key]] = {}
    for key in series:
        groups.setdefault(own.get(key, tuple(ladder)), []).append(key)
    for of_group, keys in groups.items():
        stacked = stack([(series[key].clocks[clock], series[key].value) for key in keys], mode)
        for share, goal in [*(() if target is None else ((None, target),)), *of_group]:
            for rule in rules if share is None else ("sustained",):
                reached = dict(zip(keys, crossings(stacked, goal, rule=rule), strict=True))
                found.setdefault((rule, share), {}).update(reached)
    return Attained(found, {**({} if target is None else {None: target}), **dict(ladder)}, clock, own)


def target_times(replicates: Iterable[Replicate], attained: Attained) -> tuple[TargetTime, ...]:
    """What one arm's trials need to each target; one value a trial, that of its first replicate that ended."""
    members = list(replicates)
    trials, targets = first_ended(members), attained.targets_of(next(iter(members), None))
    return tuple(
        _target_time(name, trials, attained, rule, (share, goal), interpolated)
        for share, goal in targets.items()
        for name, rule, interpolated in (_SHOWN if share is None else _SHOWN[2:3])
    )


def first_ended(replicates: Iterable[Replicate]) -> list[Replicate]:
    """One replicate a trial: the first complete one, else the first that diverged or failed; none with torn metrics."""
    trials: dict[str, Replicate] = {}
    for one in sorted(replicates, key=lambda r: (not r.complete, r.replicate)):
        if one.state in ENDED and not one.unreadable:
            trials.setdefault(one.id, one)
    return sorted(trials.values(), key=lambda r: r.position)


def median_time(times: Sequence[float]) -> float | None:
    """Median with misses as inf; None unless more than half of the trials hit. A4."""
    middle = statistics.median(times) if times else math.inf
    return middle if math.isfinite(middle) else None


def _target_time(
    name: str,
    trials: Sequence[Replicate],
    attained: Attained,
    rule: Rule,
    rung: tuple[float | None, float],
    interpolated: bool,
) -> TargetTime:
    share, goal = rung
    found = [attained.of(one, rule, share) if one.complete else NEVER for one in trials]
    usable = [c for one, c in zip(trials, found, strict=True) if not one.why_not(attained.clock)]
    median = median_time([_seconds(c, interpolated) for c in usable])
    hits = sum(c.hit for c in found)
    horizons = [c.horizon for c in found if not c.hit and c.horizon is not None]
    censored = min(horizons) if horizons else None
    return TargetTime(
        name, goal, share, hits, len(trials), median, censored,
        _text(median, censored, hits, len(trials)), sum(c.left_censored for c in found),
    )  # fmt: skip


def _seconds(crossing: Crossing, interpolated: bool) -> float:
    if crossing.t is None:
        return math.inf
    return crossing.t if interpolated or crossing.bracket is None else crossing.bracket[1]


def _text(median: float | None, censored: float | None, hits: int, n: int) -> str:
    if median is not None:
        return f"{phrases.seconds(median)} ({hits}/{n})"
    if censored is not None:
        return f"> {phrases.seconds(censored)} ({hits}/{n})"
    return f"not known ({hits}/{n})"
