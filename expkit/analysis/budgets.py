"""The third question of a sweep: time at equal quality, of arms that ran at several budgets."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.equal_quality import (
    TradeOff,
    gain_at,
    log_time_at,
    overlap,
    smooth_speedup_at,
    speedup_at,
    speedup_range,
    trade_off,
)
from expkit.analysis.estimates import AtQuality, AtTime, EqualQuality
from expkit.analysis.outrun import outrun
from expkit.analysis.pairs import first_quality
from expkit.analysis.replicate import split_arm
from expkit.analysis.study import Study
from expkit.spec.axes import BUDGET

WANTED = 3
"""Qualities at which the speedup is given."""

Values = Mapping[tuple[float, int], tuple[float, float, float, float]]
"""(budget, seed) -> log-time and quality of the baseline and of the arm."""


@dataclass(frozen=True)
class _Sides:
    base: TradeOff
    arm: TradeOff
    sign: float
    """-1 for a metric to minimise: the curves hold qualities of which more is better."""


def budget_of(label: str) -> tuple[str, float | None]:
    """`ema optimizer.sgd.lr=1.0 trainer.ssr=0.5` -> (`ema optimizer.sgd.lr=1.0`, 0.5); None where it names none."""
    methods, point = split_arm(label)
    rest = [part for part in point.split(" ") if not part.startswith(f"{BUDGET}=")]
    found = [part for part in point.split(" ") if part.startswith(f"{BUDGET}=")]
    if len(found) != 1:
        return label, None
    return " ".join([methods, *rest]), float(found[0].split("=", 1)[1])


def equal_quality(study: Study, preset: Collection[float] = ()) -> tuple[EqualQuality, ...]:
    """One entry an arm that ran at two budgets or more, the baselines left out; empty where no budget is varied.

    `preset` are the qualities, of the target and its ladder, that were fixed before the data.
    """
    families: dict[str, dict[float, str]] = {}
    for label in study.by_arm:
        family, budget = budget_of(label)
        if budget is not None and not study.is_baseline(label):
            families.setdefault(family, {})[budget] = label
    return tuple(_of_family(study, family, labels, preset) for family, labels in families.items() if len(labels) > 1)


def _of_family(study: Study, family: str, labels: Mapping[float, str], preset: Collection[float]) -> EqualQuality:
    values = {key: value for budget, label in labels.items() for key, value in _values(study, budget, label).items()}
    budgets = sorted({budget for budget, _ in values})
    seeds = sorted({seed for _, seed in values if all((budget, seed) in values for budget in budgets)})
    empty = EqualQuality(family, tuple(budgets or sorted(labels)), len(seeds))
    if len(budgets) < 2 or not seeds:
        return replace(empty, sentence="No seed has a whole run of arm and baseline at two budgets yet.")
    table = np.array([[values[budget, seed] for seed in seeds] for budget in budgets])
    sign = 1.0 if study.mode == "max" else -1.0
    sides = _Sides(trade_off(table[:, :, 0], table[:, :, 1]), trade_off(table[:, :, 2], table[:, :, 3]), sign)
    seconds, quality = np.exp(table[:, :, 2].mean(axis=1)), sign * table[:, :, 3].mean(axis=1)
    curve = replace(empty, seconds=tuple(seconds.tolist()), quality=tuple(quality.tolist()))
    curve = replace(curve, outrun=outrun(budgets, table, study.delta, study.ci))
    found = _compared(curve, sides, study, [sign * q for q in preset])
    return replace(found, sentence=" ".join(filter(None, (_outrun_sentence(found), found.sentence))))


def _outrun_sentence(found: EqualQuality) -> str:
    """Of the longest budget at which a baseline does better, which is the arm at its best."""
    if not found.outrun:
        return ""
    most = found.outrun[-1]
    at = "" if len(found.outrun) == len(found.budgets) else f" at {len(found.outrun)} of {len(found.budgets)} budgets"
    return (
        f"A baseline is faster than {found.arm} and not worse{at}: at {most.shorter:g} of its length it takes "
        f"{phrases.seconds(most.baseline_s)}, {found.arm} at {most.budget:g} {phrases.seconds(most.seconds)}, and its "
        f"quality differs from the arm's by {phrases.difference(most.gain)}; at equal quality the arm is no faster "
        f"than {phrases.factor(most.at_most)}."
    )


def _values(study: Study, budget: float, label: str) -> Values:
    """Pairs of one budget, by seed: times of one session, qualities of the same block."""
    pairs = study.pairs(label, study.clock)
    members, base = study.by_arm[label], study.baseline_of(label)
    seed_of = {one.block: one.seed for one in members}
    mine, theirs = first_quality(members), first_quality(base)
    sign = 1.0 if study.mode == "max" else -1.0
    found = {}
    for block, t0, tc in zip(pairs.blocks, pairs.base, pairs.arm, strict=True):
        seed = seed_of[block]
        if seed is not None and block in mine and block in theirs:
            found[budget, seed] = math.log(t0), sign * theirs[block], math.log(tc), sign * mine[block]
    return found


def _compared(found: EqualQuality, sides: _Sides, study: Study, preset: Sequence[float]) -> EqualQuality:
    common, reach = overlap(sides.base, sides.arm), speedup_range(sides.base, sides.arm)
    gains = tuple(_gains(sides, study.ci))
    if common is None or reach is None:
        return replace(found, gains=gains, sentence=_apart(sides))
    ends = sorted(sides.sign * q for q in common)
    at = tuple(_at(sides, q, before, study.ci) for q, before in _qualities(preset, common))
    named = f"{phrases.quality(ends[0])} to {phrases.quality(ends[1])}"
    sentence = (
        f"{found.arm}: {phrases.times(reach[0])} to {phrases.times(reach[1])} at equal {study.metric} over {named} "
        f"(n={found.seeds}, {phrases.count(len(found.budgets), 'budget')})."
    )
    return replace(
        found, overlap=(ends[0], ends[1]), at=at, least=reach[0], greatest=reach[1], gains=gains, sentence=sentence
    )


def _qualities(preset: Sequence[float], common: tuple[float, float]) -> Sequence[tuple[float, bool]]:
    """The preset ones that both curves reach; quartiles of what both reach, up to three in all."""
    known = [(q, True) for q in dict.fromkeys(preset) if common[0] <= q <= common[1]]
    quartiles = [common[0] + share * (common[1] - common[0]) for share in (0.5, 0.25, 0.75)]
    return [*known, *((q, False) for q in quartiles[: max(0, WANTED - len(known))])]


def _at(sides: _Sides, quality: float, preset: bool, level: float) -> AtQuality:
    times = log_time_at(sides.base, quality), log_time_at(sides.arm, quality)
    assert times[0] is not None and times[1] is not None, "the quality lies in the overlap"
    ratio, smooth = speedup_at(sides.base, sides.arm, quality, level), smooth_speedup_at(sides.base, sides.arm, quality)
    return AtQuality(sides.sign * quality, preset, math.exp(times[0]), math.exp(times[1]), ratio, smooth)


def _gains(sides: _Sides, level: float) -> list[AtTime]:
    """At the baseline's own times, where the arm has runs as short and as long."""
    found = [(x, gain_at(sides.base, sides.arm, x, level)) for x in sides.base.log_time_K.tolist()]
    return [AtTime(math.exp(x), it) for x, it in found if it.value is not None]


def _apart(sides: _Sides) -> str:
    spans = [sorted((sides.sign * float(c.quality_K[0]), sides.sign * float(c.quality_K[-1]))) for c in
             (sides.base, sides.arm)]  # fmt: skip
    base, arm = (f"{phrases.quality(lo)} to {phrases.quality(hi)}" for lo, hi in spans)
    return f"No common quality: the baseline's budgets give {base}, the arm's {arm}, and nothing is extrapolated."
