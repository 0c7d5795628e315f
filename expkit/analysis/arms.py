"""The rows of the arms' table: counts, speedup, quality, times to target and the verdict of each arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from expkit.analysis import phrases, speedup
from expkit.analysis.attainment import ENDED, target_times
from expkit.analysis.checks import checks
from expkit.analysis.estimates import Checks, Interval, Reach
from expkit.analysis.intervals import t_interval
from expkit.analysis.model import Arm, Guard
from expkit.analysis.noise import Floor
from expkit.analysis.pairs import Pairs, dropped_sentence, first_quality, quality_pairs, time_pairs, unpaired_times
from expkit.analysis.quality import quality_difference
from expkit.analysis.reach import reach
from expkit.analysis.replicate import Replicate, counts, label_of, methods_of, parameters_of, split_arm
from expkit.analysis.study import Study
from expkit.analysis.verdict import BASELINE, Counts, Evidence, Verdict, verdict


@dataclass(frozen=True)
class Compared:
    """An arm against its baseline; without values for the baseline itself."""

    time: speedup.Speedup
    other_clock: Interval
    quality: Interval
    to_target: Interval
    checks: Checks
    reach: Reach
    dropped: str = ""


def arms(study: Study, floor: Floor, red: Sequence[Guard]) -> tuple[Arm, ...]:
    """All arms of a sweep, the baselines first."""
    return _relative([_arm(study, label, floor, red) for label in study.by_arm])


def _relative(found: Sequence[Arm]) -> tuple[Arm, ...]:
    """With each arm's time over that of the fastest at its parameter point."""
    points = [split_arm(arm.label)[1] for arm in found]
    told: dict[str, float | None] = {}
    for point in dict.fromkeys(points):
        there = [arm for arm, own in zip(found, points, strict=True) if own == point]
        told |= zip((arm.label for arm in there), speedup.relative_times([a.time_s for a in there]), strict=True)
    return tuple(replace(arm, relative_time=told[arm.label]) for arm in found)


def _arm(study: Study, label: str, floor: Floor, red: Sequence[Guard]) -> Arm:
    members = study.by_arm[label]
    is_baseline = study.is_baseline(label)
    how = counts(members)
    found = _nothing(study, label) if is_baseline else _compared(study, label)
    equals = None if is_baseline or not study.idle[label] else label_of(study.effective(label), split_arm(label)[1])
    quality = t_interval(list(first_quality(members).values()), study.ci, "t over seeds")
    time_s = _usable_mean(members, study.clock)
    judged = (
        Verdict(BASELINE, _baseline_sentence(study, how, time_s, quality))
        if is_baseline
        else verdict(_evidence(study, label, how, found, equals, floor, red))
    )
    return Arm(
        label=label,
        algorithms=tuple(sorted(methods_of(label))),
        parameters=parameters_of(label),
        baseline=is_baseline,
        planned=how.planned,
        complete=how.complete,
        failed=how.failed,
        diverged=how.diverged,
        pairs=found.time.ratio.n,
        equals=equals,
        speedup=found.time.ratio,
        speedup_other_clock=found.other_clock,
        other_clock=study.other_clock,
        quality=quality,
        quality_difference=found.quality,
        time_s=time_s,
        setup_s=_mean([r.clocks.get("setup_s") for r in members if r.complete]),
        target_times=target_times(members, study.attained),
        target_speedup=found.to_target,
        verdict=judged.label,
        time_class=judged.time_class,
        quality_class=judged.quality_class,
        sentence=judged.sentence,
        size=len(methods_of(label)),
        seeds=tuple(sorted({r.seed for r in members if r.seed is not None})),
        p_sign_flip=found.checks.p_sign_flip,
        time_missing=found.dropped,
        checks=found.checks,
        reach=found.reach,
    )


def _compared(study: Study, label: str) -> Compared:
    members, base = study.by_arm[label], study.baseline_of(label)
    pairs = study.pairs(label, study.clock)
    error = study.time_error if len(pairs.blocks) == len(study.seeds) else None
    time = speedup.paired(pairs.base, pairs.arm, study.ci, error)
    other = study.pairs(label, study.other_clock)
    other_ratio = speedup.paired(other.base, other.arm, study.ci).ratio
    quality = quality_difference(*quality_pairs(members, base), mode=study.mode)
    same = checks(time, pairs, unpaired_times(members, base, study.clock), study.ci)
    reached = reach(study, label)
    target = _to_target(study, members, base, reached)
    return Compared(time, other_ratio, quality, target, same, reached, dropped_sentence(pairs.dropped))


def _nothing(study: Study, label: str) -> Compared:
    none = Interval(level=study.ci)
    return Compared(speedup.Speedup(none), none, Interval(level=0.90), none, Checks(), reach(study, label))


def _to_target(study: Study, members: Sequence[Replicate], base: Sequence[Replicate], reached: Reach) -> Interval:
    """Speedup to the primary target: paired where every trial of both sides came, else with misses censored. A4."""
    sides = [r for r in (*members, *base) if r.state in ENDED and not r.unreadable]
    if sides and all(r.complete and study.attained.of(r).hit for r in sides):
        pairs: Pairs = time_pairs(members, base, study.clock, study.attained.time_of())
        return speedup.paired(pairs.base, pairs.arm, study.ci).ratio
    return reached.speedup if sides else Interval(level=study.ci)


def _evidence(
    study: Study, label: str, how: Counts, found: Compared, equals: str | None, floor: Floor, red: Sequence[Guard]
) -> Evidence:
    base_label = label_of(methods_of(study.baseline), split_arm(label)[1])
    return Evidence(
        counts=how,
        baseline_counts=counts(study.baseline_of(label)),
        speedup=found.time.ratio,
        quality=found.quality,
        eps=floor.eps,
        aa_pairs=floor.pairs,
        delta=study.delta,
        clock=study.clock,
        metric=study.metric,
        equals=equals,
        equals_baseline=study.effective(label) == study.effective(base_label),
        red=red,
        time_missing=found.dropped,
    )


def _baseline_sentence(study: Study, how: Counts, time_s: float | None, quality: Interval) -> str:
    if time_s is None or quality.value is None:
        return f"The baseline: {how.complete} of {how.planned} trials complete."
    return (
        f"The baseline: {phrases.seconds(time_s)} {phrases.on_clock(study.clock)}, "
        f"{study.metric} {phrases.quality(quality.value)} (n={quality.n})."
    )


def _usable_mean(replicates: Sequence[Replicate], clock: str) -> float | None:
    times = [r.time(clock) for r in replicates if r.complete and not r.why_not(clock)]
    return speedup.geometric_mean([t for t in times if t is not None])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None
