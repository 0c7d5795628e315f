"""The first thing a report says: at most six sentences in plain words, each with its numbers; one more where arms were
confirmed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from expkit.analysis import phrases
from expkit.analysis.credit import strongest
from expkit.analysis.model import Arm, Effect, Guard, TargetInfo
from expkit.analysis.noise import Floor
from expkit.analysis.study import Study

SCOPE = "One workload, one machine: no claim beyond."
FASTER = ("FASTER AND BETTER", "FASTER at equal quality")
_ORDER = (
    "BETTER at equal time", "FASTER, quality not established", "TRADE: faster, worse", "TRADE: slower, better",
    "BETTER, time unresolved", "WORSE at equal time", "WORSE, time unresolved", "SLOWER", "SLOWER AND WORSE",
    "SLOWER, quality not established", "NO EFFECT", "NO TIME EFFECT, quality not established",
    "INCONCLUSIVE", "NO EFFECT BY CONSTRUCTION", "WITHHELD", "NO PAIRS", "FAILED",
)  # fmt: skip
"""Other verdicts, the most interesting first."""


def headline(
    study: Study,
    arms: Sequence[Arm],
    effects: tuple[Effect, ...],
    floor: Floor,
    red: Sequence[Guard],
    target: TargetInfo,
    clock_sentence: str,
    scope: str = SCOPE,
) -> tuple[str, ...]:
    """What is faster at equal quality, what else was found, who earned it, the noise floor, the clock, the scope."""
    judged = [a for a in arms if not a.baseline]
    if not arms and red:
        return (f"Headline withheld: {red[0].sentence}",)
    if not any(a.complete for a in arms):
        return ("No trial of this sweep is complete yet.",)
    if red:
        withheld = f"Headline withheld: {red[0].sentence}"
        also = [f"Also red: {phrases.listing([g.name for g in red[1:]])}."] if red[1:] else []
        return withheld, *also, clock_sentence, scope
    lines = [_faster(judged), _others(judged), _credit(study, effects, floor), _terms(study, floor, target)]
    if study.clock == "cpu_s" and "because" in clock_sentence:
        lines.append(clock_sentence)
    return (*[line for line in lines if line], scope)


def _faster(arms: Sequence[Arm]) -> str:
    found = sorted((a for a in arms if a.verdict in FASTER), key=lambda a: -(a.speedup.value or 0))
    if not found:
        return f"No combination of {len(arms)} is shown to be faster at equal quality."
    best = [f"{a.label} {phrases.factor(a.speedup)}, {a.verdict}" for a in found[:2]]
    more = f"; {len(found) - 2} more" if len(found) > 2 else ""
    return f"Faster at no loss of quality: {len(found)} of {phrases.count(len(arms), 'arm')}: {'; '.join(best)}{more}."


def _others(arms: Sequence[Arm]) -> str:
    by_verdict: dict[str, list[str]] = {}
    for arm in arms:
        if arm.verdict not in FASTER:
            by_verdict.setdefault(arm.verdict, []).append(arm.label)
    known = sorted(by_verdict, key=lambda v: _ORDER.index(v.partition(" (")[0]))
    parts = [f"{v}: {phrases.listing(by_verdict[v], most=3)}" for v in known]
    return f"{'; '.join(parts)}." if parts else ""


def _credit(study: Study, effects: tuple[Effect, ...], floor: Floor) -> str:
    time, quality = strongest(effects, floor)
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


def _signed(study: Study) -> str:
    return " (more is better)" if study.mode == "max" else ", sign turned so that more is better"


def _terms(study: Study, floor: Floor, target: TargetInfo) -> str:
    eps = f"Noise floor {phrases.percent(floor.eps)}" if floor.eps is not None else "No noise floor"
    pairs = f"({phrases.on_clock(study.clock)}, {phrases.count(floor.pairs, 'A/A pair')})"
    said = f"{eps} {pairs}"
    if target.value is not None and target.exploratory:
        return f"{said}; TARGET SET AFTER DATA: exploratory."
    return f"{said}; equal quality means not worse by {study.delta:g} of {study.metric}."


def noise_sentence(clock: str, floor: Floor) -> str:
    """What the A/A pairs of one clock allow to be claimed."""
    pairs = phrases.count(floor.pairs, "A/A pair")
    if floor.eps is None:
        return f"{pairs} {phrases.on_clock(clock)}: no noise floor, at least 2 are needed."
    tail = "" if floor.contains_one else "; widened, because identical code differs by more than chance"
    name = phrases.clock_name(clock)
    size = phrases.percent(math.fabs(floor.eps))
    return f"No effect on {name} below {size} is claimed ({pairs}, ratio {phrases.factor(floor.ratio)}){tail}."
