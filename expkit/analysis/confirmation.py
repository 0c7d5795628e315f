"""What fresh seeds say of the arms that a sweep has chosen, beside what the sweep itself said of them.

The fastest of many arms is partly the luckiest; on seeds that nothing was chosen by it is not. The few that are
confirmed are a family of their own: intervals at 1 - (1 - ci) / m hold together (Bonferroni), and p values are Holm's.
speedup-science A13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.arms import arms
from expkit.analysis.attainment import attained
from expkit.analysis.estimates import Interval
from expkit.analysis.guards.machine import headline_clock
from expkit.analysis.headline import noise_sentence
from expkit.analysis.load import Row, Settings, Sweep, Views, load
from expkit.analysis.model import Arm, Confirmation, Confirmed, Noise, TargetInfo
from expkit.analysis.multiplicity import holm
from expkit.analysis.noise import aa_floor
from expkit.analysis.pairs import aa_pairs
from expkit.analysis.replicate import Replicate
from expkit.analysis.study import Study
from expkit.analysis.terms import rungs_of

Record = Mapping[str, Any]
"""What was settled before the first trial, as the store has it."""


def confirmation(
    con: Views, row: Row, data: Sweep, study: Study, info: TargetInfo, wanted: Settings
) -> Confirmation | None:
    """The confirmation of a sweep, on the sweep's own terms; None where there is none."""
    record = con.store.confirmation(data.name)
    if not record:
        return None
    judged_by = load(con, row, record["metric"], exclusive=wanted.exclusive) if record["test"] else data
    members = _members(judged_by, record["seeds"])
    clock, clock_sentence = headline_clock(members, wanted.clock)
    rungs = rungs_of(info, data.replicates)
    reached = attained(data.series, info.value, info.ladder, study.mode, clock, rungs)
    again = _study(study, members, record, clock, reached)
    floor = aa_floor(*aa_pairs(members, clock))
    noise = Noise(clock, floor.eps, floor.ratio, floor.pairs, floor.contains_one, noise_sentence(clock, floor))
    found = {arm.label: arm for arm in arms(again, floor, ()) if not arm.baseline}
    confirmed = _confirmed(record, found, again)
    return Confirmation(
        utc=record["utc"],
        rule=record["rule"],
        of=record["of"],
        seeds=tuple(record["seeds"]),
        states=dict(sorted(Counter(r.state for r in members).items())),
        metric=again.metric,
        test=record["test"],
        opened_utc=record["opened_utc"],
        clock=clock,
        level=again.ci,
        noise=noise,
        arms=confirmed,
        earlier=tuple(former["utc"] for former in record["earlier"]),
        sentences=_sentences(record, clock_sentence, again.ci, study.ci),
        headline=_headline(record, confirmed),
    )


def _members(data: Sweep, seeds: Sequence[int]) -> tuple[Replicate, ...]:
    """Those of this confirmation; what has not begun may have no seed yet."""
    return tuple(r for r in data.replicates if r.role == "confirm" and (r.seed is None or r.seed in seeds))


def _study(study: Study, members: tuple[Replicate, ...], record: Record, clock: str, reached: Any) -> Study:
    """The same terms on the trials that confirm, with intervals that hold together."""
    other = study.other_clock if clock == study.clock else study.clock
    level = 1 - (1 - study.ci) / max(len(record["arms"]), 1)
    return Study(members, record["metric"], study.mode, clock, other, level, study.delta, study.baseline, reached)


def _confirmed(record: Record, found: Mapping[str, Arm], study: Study) -> tuple[Confirmed, ...]:
    """In the order in which they were chosen; one that has not begun has no row yet."""
    chosen = [one for one in record["arms"] if one["arm"] in found]
    p = [found[one["arm"]].checks.p for one in chosen]
    missing = len(record["arms"]) - len(chosen)
    adjusted = holm([np.nan if v is None else v for v in p] + [1.0] * missing)  # what is not known yet counts
    return tuple(
        Confirmed(arm, was, Interval(**one["quality"]), None if known is None else float(q), _sentence(arm, was, study))
        for one, known, q in zip(chosen, p, adjusted, strict=False)
        for arm, was in [(found[one["arm"]], Interval(**one["speedup"]))]
    )


def _sentence(arm: Arm, was: Interval, study: Study) -> str:
    """`ema: FASTER at equal quality. x1.16 [1.10, 1.22] (n=5), was x1.17; test/accuracy +0.001 [...] (n=5).`"""
    said = f"{arm.label}: {arm.verdict}. {phrases.factor(arm.speedup)}, was {_short(was)}"
    return f"{said}; {study.metric} {phrases.difference(arm.quality_difference)}."


def _short(ratio: Interval) -> str:
    return phrases.factor(replace(ratio, lo=None, hi=None)).partition(" (")[0]


def _sentences(record: Record, clock_sentence: str, level: float, together: float) -> tuple[str, ...]:
    arms, seeds = len(record["arms"]), len(record["seeds"])
    settled = (
        f"{phrases.count(arms, 'arm')}, {record['rule']}, on {phrases.count(seeds, 'seed')} that "
        f"nothing was chosen by; settled on {record['utc'][:10]}, before the first of these trials ran."
    )
    held = f"Each interval of a speedup is one of {100 * level:.3g} %: all hold together with {100 * together:g} %."
    return tuple(filter(None, (settled, _data(record), held if arms > 1 else "", _earlier(record), clock_sentence)))


def _data(record: Record) -> str:
    if not record["test"]:
        return f"Judged by {record['metric']} as in the sweep: {record['why']}. The seeds are fresh, the data are not."
    if record["opened_utc"] is None:
        return "The test split has not been opened yet."
    once = "" if not record["earlier"] else "again "
    return f"Selection on validation; the test split was opened {once}on {record['opened_utc'][:10]}, for these trials."


def _earlier(record: Record) -> str:
    dates = [former["utc"][:10] for former in record["earlier"]]
    if not dates:
        return ""
    return (
        f"This is confirmation number {len(dates) + 1}; earlier ones were settled on {phrases.listing(dates)}: the "
        "best of several is a choice again."
    )


def _headline(record: Record, confirmed: Sequence[Confirmed]) -> str:
    said = [
        f"{one.arm.label} {phrases.factor(one.arm.speedup)} (was {_short(one.was)}), {one.arm.verdict}"
        for one in confirmed
        if one.arm.speedup.value is not None
    ]
    if not said:
        return ""
    seeds = phrases.count(len(record["seeds"]), "fresh seed")
    return f"Chosen out of {phrases.count(record['of'], 'arm')} and run again on {seeds}: {'; '.join(said)}."
