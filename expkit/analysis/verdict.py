"""One verdict per arm: the first early exit that holds, else where speed and quality meet in a table of sixteen.

Early exits in order: FAILED, NO EFFECT BY CONSTRUCTION, NO PAIRS, WITHHELD. The axes: both intervals at equal budget,
speed against the noise floor eps, quality against the margin delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval
from expkit.analysis.model import Guard
from expkit.analysis.quality import reading

TABLE = {
    "FASTER": {
        "better": "FASTER AND BETTER",
        "equal or not worse": "FASTER at equal quality",
        "undecided": "FASTER, quality not established",
        "worse": "TRADE: faster, worse",
    },
    "SAME": {
        "better": "BETTER at equal time",
        "equal or not worse": "NO EFFECT",
        "undecided": "NO TIME EFFECT, quality not established",
        "worse": "WORSE at equal time",
    },
    "SLOWER": {
        "better": "TRADE: slower, better",
        "equal or not worse": "SLOWER",
        "undecided": "SLOWER, quality not established",
        "worse": "SLOWER AND WORSE",
    },
    "UNRESOLVED": {
        "better": "BETTER, time unresolved",
        "equal or not worse": "INCONCLUSIVE",
        "undecided": "INCONCLUSIVE",
        "worse": "WORSE, time unresolved",
    },
}
"""`NO EFFECT` names the noise floor that bounds it behind it."""
BASELINE, FAILED, BY_CONSTRUCTION, NO_PAIRS, WITHHELD = (
    "BASELINE", "FAILED", "NO EFFECT BY CONSTRUCTION", "NO PAIRS", "WITHHELD",
)  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """Trials of an arm, by how they ended."""

    planned: int = 0
    complete: int = 0
    failed: int = 0
    diverged: int = 0


@dataclass(frozen=True)
class Evidence:
    """All that an arm's verdict rests on."""

    counts: Counts
    baseline_counts: Counts
    speedup: Interval
    quality: Interval
    """Difference to the baseline, more is better, 90 % interval."""
    eps: float | None
    aa_pairs: int
    delta: float
    clock: str
    metric: str
    equals: str | None = None
    """The arm that this one equals because some of its methods did nothing."""
    equals_baseline: bool = False
    red: Sequence[Guard] = ()
    time_missing: str = ""
    """Why pairs are missing from the time comparison, empty where none is."""


@dataclass(frozen=True)
class Verdict:
    """The label of an arm with its one sentence; the classes are empty where an early exit was taken."""

    label: str
    sentence: str
    time_class: str = ""
    quality_class: str = ""


def verdict(arm: Evidence) -> Verdict:
    """The first that holds: FAILED, NO EFFECT BY CONSTRUCTION, NO PAIRS, WITHHELD, else the table."""
    counts = arm.counts
    if not counts.complete and counts.failed + counts.diverged:
        return Verdict(FAILED, f"No trial is complete: {_lost(counts)}.")
    if arm.equals_baseline and counts.complete:
        return Verdict(BY_CONSTRUCTION, "No method of it found anything to do: it is a second baseline.")
    pairs = min(arm.speedup.n, arm.quality.n)
    if pairs < 2:
        return Verdict(NO_PAIRS, _no_pairs(arm, pairs))
    if reason := _withheld(arm):
        return Verdict(WITHHELD, reason)
    assert arm.eps is not None
    speed, worth = time_class(arm.speedup, arm.eps), quality_class(arm.quality, arm.delta)
    equal = f"; some of its methods did nothing, so it equals {arm.equals}" if arm.equals else ""
    label = TABLE[speed][worth]
    bound = f" (bounded by {phrases.percent(arm.eps)})" if label == "NO EFFECT" else ""
    return Verdict(f"{label}{bound}", f"{_time(arm, speed)}; {_quality(arm)}{equal}.", speed, worth)


def time_class(speedup: Interval, eps: float) -> str:
    """FASTER (lo > e^eps), SAME (inside [e^-eps, e^eps]), SLOWER (hi < e^-eps), else UNRESOLVED."""
    lo, hi = speedup.lo, speedup.hi
    if lo is None or hi is None:
        return "UNRESOLVED"
    floor = math.exp(eps)
    if lo > floor:
        return "FASTER"
    if hi < 1 / floor:
        return "SLOWER"
    return "SAME" if lo >= 1 / floor and hi <= floor else "UNRESOLVED"


def quality_class(difference: Interval, delta: float) -> str:
    """better (lo > 0), equal or not worse (lo > -delta), worse (hi < 0), else undecided; first match."""
    found = reading(difference, delta)
    return "equal or not worse" if found in ("equal", "not worse") else found


def _lost(counts: Counts) -> str:
    parts = [f"{k} of {counts.planned} {what}" for k, what in
             ((counts.diverged, "diverged"), (counts.failed, "failed")) if k]  # fmt: skip
    return " and ".join(parts)


def _no_pairs(arm: Evidence, pairs: int) -> str:
    counts = arm.counts
    if not counts.complete:
        return f"No trial has ended yet: 0 of {counts.planned} complete."
    why = f"; {arm.time_missing}" if arm.time_missing else ""
    return (
        f"{phrases.count(pairs, 'pair')} with the baseline where at least 2 are needed "
        f"({counts.complete} of {counts.planned} trials complete{why})."
    )


def _withheld(arm: Evidence) -> str:
    if arm.red:
        return arm.red[0].sentence
    if arm.eps is None or arm.aa_pairs < 2:
        return f"No noise floor: {phrases.count(arm.aa_pairs, 'A/A pair')} where at least 2 blocks need one."
    for whose, counts in (("its", arm.counts), ("the baseline's", arm.baseline_counts)):
        if counts.failed + counts.diverged:
            return f"Of {whose} trials {_lost(counts)}; what the others say would be a selection."
    return ""


def _time(arm: Evidence, speed: str) -> str:
    floor = f"the noise floor of {phrases.percent(arm.eps or 0)}"
    said = {
        "FASTER": f"faster beyond {floor}",
        "SAME": f"no time effect larger than {floor}",
        "SLOWER": f"slower beyond {floor}",
        "UNRESOLVED": f"a time effect beyond {floor} is neither shown nor excluded",
    }[speed]
    return f"{phrases.factor(arm.speedup)} {phrases.on_clock(arm.clock)}: {said}"


def _quality(arm: Evidence) -> str:
    said = {
        "better": "better",
        "equal": f"equal within {arm.delta:g}",
        "not worse": f"not worse by {arm.delta:g}",
        "worse": "worse",
        "undecided": f"undecided at a margin of {arm.delta:g}",
    }[reading(arm.quality, arm.delta)]
    return f"{arm.metric} {phrases.difference(arm.quality)}: {said}"
