"""The verdict box as data: what was compared, what came of it by method, and what was fixed before anybody looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from expkit.analysis import phrases
from expkit.analysis.guards.tables import Tables
from expkit.analysis.headline import by_verdict, credited_sentence, noise_sentence
from expkit.analysis.model import Arm, Effect, EqualQuality, Guard, MethodVerdict, VerdictBox
from expkit.analysis.noise import Floor
from expkit.analysis.study import Study
from expkit.analysis.verdict import TABLE, WITHHELD, quality_class, time_class

MOST_CURVES = 3


def verdict_box(
    looked: Tables,
    arms: Sequence[Arm],
    effects: Sequence[Effect],
    guards: Sequence[Guard],
    headline: Sequence[str],
    clock_sentence: str,
    at_equal_quality: Sequence[EqualQuality] = (),
) -> VerdictBox:
    """The box of one sweep; it says what the headline says, one field a part, and what that has no room for."""
    by_name = {guard.name: guard for guard in guards}
    fixed, not_fixed, unknown = _terms(looked, arms, by_name)
    return VerdictBox(
        scope=_scope(looked, arms, by_name),
        answer=headline[0] if headline else "",
        methods=tuple(_method(looked.study, looked.floor, one, guards) for one in effects),
        further=_further(looked, arms, effects, guards, at_equal_quality),
        noise=noise_sentence(looked.study.clock, looked.floor),
        clock=clock_sentence,
        fixed=fixed,
        not_fixed=not_fixed,
        unknown=unknown,
    )


def _scope(looked: Tables, arms: Sequence[Arm], guards: Mapping[str, Guard]) -> str:
    """`On resnet on digits: 8 arms x 5 seeds at equal budget, all schedules ended.`"""
    where = phrases.listing(sorted({one.workload for one in looked.recipes.values() if one.workload}))
    seeds = phrases.count(len(looked.study.seeds), "seed")
    ended = guards.get("schedules ended")
    how = (", all schedules ended" if ended.light == "green" else ", not all schedules ended") if ended else ""
    done = sum(a.complete for a in arms)
    planned = sum(a.planned for a in arms)
    part = "" if done == planned else f"; {done} of {phrases.count(planned, 'trial')} complete"
    on = f"On {where}: " if where else ""
    return f"{on}{phrases.count(len(arms), 'arm')} x {seeds} at equal budget{how}{part}."


def _further(
    looked: Tables,
    arms: Sequence[Arm],
    effects: Sequence[Effect],
    guards: Sequence[Guard],
    at_equal_quality: Sequence[EqualQuality],
) -> tuple[str, ...]:
    if any(guard.light == "red" for guard in guards) or not any(arm.complete for arm in arms):
        return ()
    credited = credited_sentence(looked.study, effects, looked.floor)
    return tuple(filter(None, (credited, *_at_equal_quality(at_equal_quality), *by_verdict(arms))))


def _at_equal_quality(found: Sequence[EqualQuality]) -> list[str]:
    """What curves over budgets say, which no verdict at one budget can; beyond a few arms the section has it."""
    said = [one.sentence for one in found if one.outrun or one.at]
    more = len(said) - MOST_CURVES
    return (
        said if more <= 0 else [*said[:MOST_CURVES], f"{phrases.count(more, 'arm')} more under Time at equal quality."]
    )


def _method(study: Study, floor: Floor, effect: Effect, guards: Sequence[Guard]) -> MethodVerdict:
    reds = [g for g in guards if g.light == "red"]
    if reds or floor.eps is None:
        return MethodVerdict(effect.method, WITHHELD, effect.time, effect.quality, reds[0].sentence if reds else "")
    label = TABLE[time_class(effect.time, floor.eps)][quality_class(effect.quality, study.delta)]
    said = f"{phrases.factor(effect.time)} {phrases.on_clock(study.clock)}, {study.metric} "
    said += f"{phrases.difference(effect.quality)}, {effect.over}."
    return MethodVerdict(effect.method, label, effect.time, effect.quality, said)


def _terms(
    looked: Tables, arms: Sequence[Arm], guards: Mapping[str, Guard]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(fixed before the data, not fixed, not known)."""
    target, terms, winner = (guards.get(name) for name in ("target", "fixed in advance", "winner"))
    study = looked.study
    named = f"{phrases.count(len(study.seeds), 'seed')}, {study.metric} and its margin of {study.delta:g}"
    found: dict[str, list[str]] = {"fixed": [], "not fixed": [], "unknown": []}
    if looked.info.value is not None and target is not None:
        value = f"the target {phrases.quality(looked.info.value)}"
        found["fixed" if target.light == "green" else "not fixed"].append(value)
    if terms is not None:
        found["unknown" if not terms.checked else "fixed" if terms.light == "green" else "not fixed"].append(named)
    if winner is not None and winner.checked and winner.light == "amber":
        found["not fixed"].append(f"which of {phrases.count(sum(not a.baseline for a in arms), 'arm')} to put forward")
    return tuple(found["fixed"]), tuple(found["not fixed"]), tuple(found["unknown"])
