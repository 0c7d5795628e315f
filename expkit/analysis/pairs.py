"""Which time is compared with which: arm and baseline in one block, one setting and one driver run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from expkit.analysis.intervals import Array
from expkit.analysis.replicate import Replicate

TimeOf = Callable[[Replicate], float | None]
"""Seconds of a replicate, None where it has none (a missed target, a clock that was not read)."""


@dataclass(frozen=True)
class Pairs:
    """Times of baseline and arm, one pair a block; `dropped` counts the blocks left out, by reason."""

    blocks: tuple[int, ...] = ()
    base: tuple[float, ...] = ()
    arm: tuple[float, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    def log_speedups(self) -> dict[int, float]:
        """ln T_0 - ln T_c by block."""
        return {b: math.log(t0) - math.log(tc) for b, t0, tc in zip(self.blocks, self.base, self.arm, strict=True)}


def by_block(replicates: Iterable[Replicate]) -> dict[int, list[Replicate]]:
    """Complete replicates of each block, in order of their number."""
    blocks: dict[int, list[Replicate]] = {}
    for one in sorted(replicates, key=attrgetter("block", "id", "replicate")):
        if one.complete:
            blocks.setdefault(one.block, []).append(one)
    return blocks


def time_pairs(arm: Iterable[Replicate], base: Iterable[Replicate], clock: str, time_of: TimeOf | None = None) -> Pairs:
    """A pair for each block in which arm and baseline ran in one session with a usable time.

    T_0 is the geometric mean of the baseline's replicates in the arm's driver run and setting; an arm with several
    usable replicates gives the geometric mean over them of both sides. speedup-science A5, A17.
    """
    read = time_of or (lambda one: one.time(clock))
    blocks, t0, tc, dropped = [], [], [], Counter[str]()
    bases = by_block(base)
    for block, candidates in by_block(arm).items():
        found, why = _times(candidates, bases.get(block, []), clock, read)
        if found is None:
            dropped[why] += 1
            continue
        blocks.append(block)
        t0.append(found[0])
        tc.append(found[1])
    return Pairs(tuple(blocks), tuple(t0), tuple(tc), dict(dropped))


def best_session(arm: Iterable[Replicate], base: Iterable[Replicate], clock: str) -> tuple[str, str] | None:
    """The session, of those in which both sides ran, that has most usable trials of the smaller side; None without."""
    return _best(_trials(arm, clock), _trials(base, clock))


def unpaired_times(
    arm: Sequence[Replicate], base: Sequence[Replicate], clock: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(baseline, arm) times of all usable trials in their best session, pairs or not.

    A trial with several replicates there gives their geometric mean. Seeds of one side need not be those of the other.
    """
    sides = _trials(base, clock), _trials(arm, clock)
    session = _best(*sides)
    if session is None:
        return (), ()
    t0, tc = (tuple(_geometric_mean(times) for times in side[session].values() if times) for side in sides)
    return t0, tc


_Trials = dict[tuple[str, str], dict[str, list[float]]]
"""Session -> trial -> times of its usable replicates."""


def _best(a: _Trials, b: _Trials) -> tuple[str, str] | None:
    return max(sorted(a.keys() & b.keys()), key=lambda session: min(len(a[session]), len(b[session])), default=None)


def _trials(replicates: Iterable[Replicate], clock: str) -> _Trials:
    found: _Trials = {}
    for one in replicates:
        if one.complete and not one.why_not(clock):
            seconds = one.time(clock)
            times = found.setdefault(one.session, {}).setdefault(one.id, [])
            times += [] if seconds is None else [seconds]
    return found


def aa_pairs(replicates: Iterable[Replicate], clock: str) -> tuple[list[float], list[float]]:
    """Times of the first two usable replicates of one trial in one session, for each block that has them."""
    groups: dict[tuple[int, str, tuple[str, str]], list[float]] = {}
    for block, members in by_block(replicates).items():
        for one in members:
            seconds = one.time(clock)
            if seconds is not None and not one.why_not(clock):
                groups.setdefault((block, one.id, one.session), []).append(seconds)
    doubles = [times for _, times in sorted(groups.items()) if len(times) > 1]
    return [times[0] for times in doubles], [times[1] for times in doubles]


def quality_pairs(arm: Iterable[Replicate], base: Iterable[Replicate]) -> tuple[Array, Array]:
    """(baseline, arm) finals of the blocks that have both; one value a trial, that of its first replicate."""
    bases, arms = first_quality(base), first_quality(arm)
    both = [block for block in arms if block in bases]
    return np.array([bases[b] for b in both], dtype=float), np.array([arms[b] for b in both], dtype=float)


def first_quality(replicates: Iterable[Replicate]) -> dict[int, float]:
    """Block -> finite final quality of its first complete replicate whose metrics could be read."""
    found = {}
    for block, members in by_block(r for r in replicates if not r.unreadable).items():
        if members[0].quality is not None and math.isfinite(members[0].quality):
            found[block] = members[0].quality
    return found


def dropped_sentence(dropped: Mapping[str, int]) -> str:
    """`2 blocks resumed, 1 block without a baseline`, empty where nothing was dropped."""
    return ", ".join(f"{n} block{'s' if n > 1 else ''} {why}" for why, n in sorted(dropped.items()))


def _times(
    candidates: Sequence[Replicate], bases: Sequence[Replicate], clock: str, read: TimeOf
) -> tuple[tuple[float, float] | None, str]:
    found = []
    why = "without a time"
    for one in candidates:
        why = one.why_not(clock) or why
        seconds = read(one)
        if one.why_not(clock) or seconds is None:
            continue
        baseline, why = _baseline(bases, one.session, clock, read)
        if baseline is not None:
            found.append((baseline, seconds))
    if not found:
        return None, why
    t0, tc = zip(*found, strict=True)
    return (_geometric_mean(t0), _geometric_mean(tc)), ""


def _baseline(
    bases: Sequence[Replicate], session: tuple[str, str], clock: str, read: TimeOf
) -> tuple[float | None, str]:
    times = [read(b) for b in bases if b.session == session and not b.why_not(clock)]
    found = [t for t in times if t is not None]
    if not times:
        return None, "without a baseline of the same setting and driver run"
    if len(found) < len(times):  # a missed target is later than any time: a mean of the others would be too early
        return None, "with a baseline without a time"
    return _geometric_mean(found), ""


def _geometric_mean(times: Sequence[float]) -> float:
    """Logs are summed in order, as the macro `speedups` does it; a time that is alone keeps its last digit."""
    if len(times) == 1:
        return times[0]
    total = 0.0
    for one in times:
        total += math.log(one)  # sum() compensates from Python 3.12 on
    return math.exp(total / len(times))
