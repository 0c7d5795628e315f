"""The first thing a report says: at most three sentences in plain words, each with its numbers.

What they have no room for stands in the verdict box: each method, all verdicts, what was fixed in advance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from expkit.analysis import phrases
from expkit.analysis.credit import strongest
from expkit.analysis.model import Arm, Effect, EqualQuality, Guard, TargetInfo
from expkit.analysis.noise import Floor
from expkit.analysis.study import Study

SCOPE = "One workload, one machine: no claim beyond."
FASTER = ("FASTER AND BETTER", "FASTER at equal quality")
NAMED = 3
"""Arms that the answer names with their numbers."""
_ORDER = (
    *FASTER, "BETTER at equal time", "FASTER, quality not established", "TRADE: faster, worse", "TRADE: slower, better",
    "BETTER, time unresolved", "WORSE at equal time", "WORSE, time unresolved", "SLOWER", "SLOWER AND WORSE",
    "SLOWER, quality not established", "NO EFFECT", "NO TIME EFFECT, quality not established",
    "INCONCLUSIVE", "NO EFFECT BY CONSTRUCTION", "WITHHELD", "NO PAIRS", "FAILED",
)  # fmt: skip
"""Verdicts, the most interesting first."""


def headline(
    study: Study,
    arms: Sequence[Arm],
    effects: Sequence[Effect],
    floor: Floor,
    red: Sequence[Guard],
    target: TargetInfo,
    scope: str = SCOPE,
    curves: Sequence[EqualQuality] = (),
) -> tuple[str, ...]:
    """What is faster at equal quality, who earned it, and what that rests on.

    `curves` are the arms over their budgets: one that is faster at a quality that was fixed before answers the question
    itself, and comes before verdicts at one budget.
    """
    judged = [a for a in arms if not a.baseline]
    if not arms and red:
        return (f"Headline withheld: {red[0].sentence}",)
    if not any(a.complete for a in arms):
        return ("No trial of this sweep is complete yet.",)
    if red:
        also = [f"Also red: {phrases.listing([g.name for g in red[1:]])}."] if red[1:] else []
        return f"Headline withheld: {red[0].sentence}", *also, scope
    rests = f"{_terms(study, floor, target)}; {scope[:1].lower()}{scope[1:]}"
    return tuple(filter(None, (_answer(study, judged, curves, floor), credited_sentence(study, effects, floor), rests)))


def by_verdict(arms: Sequence[Arm]) -> tuple[str, ...]:
    """A line a verdict, the most interesting first: `TRADE: faster, worse (2 arms): a and b.`"""
    found: dict[str, list[str]] = {}
    for arm in arms:
        if not arm.baseline:
            found.setdefault(arm.verdict, []).append(arm.label)
    known = sorted(found, key=lambda verdict: _ORDER.index(verdict.partition(" (")[0]))
    return tuple(f"{v} ({phrases.count(len(found[v]), 'arm')}): {phrases.listing(found[v])}." for v in known)


def credited_sentence(study: Study, effects: Sequence[Effect], floor: Floor) -> str:
    """Which method does most to time, and which to quality; empty where no effect is there."""
    time, quality = strongest(tuple(effects), floor)
    parts = []
    if time is not None:
        kind = "faster" if (time.time.value or 1) > 1 else "slower"
        parts.append(f"{time.method} {phrases.factor(time.time)} ({kind})")
    if quality is not None:
        parts.append(f"{quality.method} {phrases.difference(quality.quality)} in {study.metric}{_signed(study)}")
    if not effects:
        return ""
    if not parts:
        return "No main effect on time or quality is resolved."
    return f"Strongest main effects, averaged over all contexts: {'; '.join(parts)}."


def _answer(study: Study, arms: Sequence[Arm], curves: Sequence[EqualQuality], floor: Floor) -> str:
    won = [one for one in curves if _is_faster(one, floor)]
    if won:
        return _by_curves(study, won, len(curves))
    found = sorted((a for a in arms if a.verdict in FASTER), key=lambda a: -(a.speedup.value or 0))
    if not found:
        return _none(arms)
    shown = found if len(found) <= NAMED + 1 else found[:NAMED]
    named = [f"{a.label} {phrases.factor(a.speedup)}{' and better' if a.verdict == FASTER[0] else ''}" for a in shown]
    more = [f"{len(found) - len(shown)} more"] if len(found) > len(shown) else []
    are = "is" if len(found) == 1 else "are"
    of = phrases.count(len(arms), "arm")
    return f"{len(found)} of {of} {are} faster at no loss of quality: {phrases.listing([*named, *more])}."


def _is_faster(curve: EqualQuality, floor: Floor) -> bool:
    """At the first of the qualities that were fixed before, beyond the noise floor."""
    lo = curve.at[0].speedup.lo if curve.at and curve.at[0].preset else None
    return lo is not None and floor.eps is not None and math.log(lo) > floor.eps


def _by_curves(study: Study, won: Sequence[EqualQuality], of: int) -> str:
    ranked = sorted(won, key=lambda one: -(one.at[0].speedup.value or 0))
    named = [f"{one.arm} {phrases.factor(one.at[0].speedup)}" for one in ranked[:NAMED]]
    more = [f"{len(won) - NAMED} more"] if len(won) > NAMED else []
    are = "is" if len(won) == 1 else "are"
    quality = f"{study.metric} {phrases.quality(ranked[0].at[0].quality)}"
    return (
        f"{len(won)} of {phrases.count(of, 'arm')} {are} faster at equal quality, {quality} by whole runs at several "
        f"budgets: {phrases.listing([*named, *more])}."
    )


def _none(arms: Sequence[Arm]) -> str:
    if not arms:
        return "There is no arm beside the baseline, so nothing is compared."
    timed = [a for a in arms if a.time_class]
    said = f"No combination of {len(arms)} is shown to be faster at equal quality"
    if not timed:
        return f"{said}."
    first = max(timed, key=lambda a: a.speedup.value or 0)
    return f"{said}; the fastest, {first.label}, is {phrases.factor(first.speedup)}: {first.verdict}."


def _signed(study: Study) -> str:
    return " (more is better)" if study.mode == "max" else ", sign turned so that more is better"


def _terms(study: Study, floor: Floor, target: TargetInfo) -> str:
    eps = f"Noise floor {phrases.percent(floor.eps)}" if floor.eps is not None else "No noise floor"
    pairs = f"({phrases.on_clock(study.clock)}, {phrases.count(floor.pairs, 'A/A pair')})"
    said = f"{eps} {pairs}"
    if target.value is not None and target.exploratory:
        return f"{said}; {target.warning.removesuffix('.')}"
    return f"{said}; equal quality means not worse by {study.delta:g} of {study.metric}"


def noise_sentence(clock: str, floor: Floor) -> str:
    """What the A/A pairs of one clock allow to be claimed."""
    pairs = phrases.count(floor.pairs, "A/A pair")
    if floor.eps is None:
        return f"{pairs} {phrases.on_clock(clock)}: no noise floor, at least 2 are needed."
    tail = "" if floor.contains_one else "; widened, because identical code differs by more than chance"
    name = phrases.clock_name(clock)
    size = phrases.percent(math.fabs(floor.eps))
    return f"No effect on {name} below {size} is claimed ({pairs}, ratio {phrases.factor(floor.ratio)}){tail}."
