"""Guards of the methods: less work that saves no time, methods that overlap, or did nothing. B14, B19, B20."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval
from expkit.analysis.guards.light import not_checked, nothing_done
from expkit.analysis.intervals import exp, t_interval
from expkit.analysis.model import Guard

NOTABLE = 1.05
"""Factor by which an arm's backward passes must be shorter to count as less work."""


def less_work(arms: Mapping[str, tuple[Interval, Interval]]) -> Guard:
    """B14: (baseline / arm of backward seconds, of the whole run) by arm: work that is saved, and no time with it.

    The number is the largest saving of work that bought no time, as a factor; samples and operations are no speedup
    by themselves, and only seconds are compared.
    """
    known = {arm: pair for arm, pair in arms.items() if pair[0].value is not None and pair[1].value is not None}
    if not known:
        return not_checked("less work", "backward seconds of no arm can be compared with its baseline's")
    empty = {arm: work.value or 1.0 for arm, (work, whole) in known.items()
             if (work.lo or 0) > NOTABLE and (whole.lo is None or whole.lo <= 1)}  # fmt: skip
    if not empty:
        return Guard("less work", "green", None, "Seconds are compared; no arm saves work without saving time.")
    named = [f"{arm} {phrases.share(1 - 1 / saved)} less time in backward passes, whole run {_short(known[arm][1])}"
             for arm, saved in sorted(empty.items(), key=lambda each: -each[1])]  # fmt: skip
    said = f"Less work, no measurable time saved: {phrases.listing(named, most=3)}."
    return Guard("less work", "amber", max(empty.values()), said)


def overlap(methods: Sequence[str], together: Sequence[float], singles: Sequence[float], eps: float | None) -> Guard:
    """B19: ln S of all methods together, and the sum of ln S of each alone, seed by seed.

    Amber where they differ beyond chance and beyond the noise floor; the number is together / product of singles.
    """
    if len(methods) < 2:
        return Guard("overlap", "green", None, "Fewer than two methods: nothing can overlap.")
    if not together:
        return not_checked("overlap", "not every method ran both alone and with all others")
    gap = t_interval(np.array(together) - np.array(singles))
    both, product = (math.exp(min(float(np.mean(side)), 50.0)) for side in (together, singles))
    said = f"together {phrases.times(both)}, product of singles {phrases.times(product)}"
    said += f" (ratio {phrases.factor(exp(gap))})"
    beyond = gap.lo is not None and gap.hi is not None and not gap.lo <= 0 <= gap.hi
    ratio = math.exp(gap.value or 0.0)
    if beyond and abs(gap.value or 0.0) > (eps or 0.0):
        how = "overlap" if (gap.value or 0.0) < 0 else "help each other"
        return Guard("overlap", "amber", ratio, f"{phrases.listing(methods)} {how}: {said}.")
    return Guard("overlap", "green", ratio, f"Methods are not shown to overlap: {said}.")


def methods_effective(idle: Mapping[str, frozenset[str]]) -> Guard:
    """B20: methods that found nothing to do, by arm that has a complete trial; they get no credit."""
    if not idle:
        return nothing_done("methods applied")
    arms = sorted(arm for arm, methods in idle.items() if methods)
    methods = sorted(set().union(*idle.values()))
    if not arms:
        return Guard("methods applied", "green", 0, "Every method did something in every trial.")
    did = f"{phrases.listing(methods)} did nothing in {phrases.count(len(arms), 'arm')}: {phrases.listing(arms)}."
    return Guard("methods applied", "amber", len(arms), f"{did} No credit for that.")


def _short(ratio: Interval) -> str:
    return phrases.factor(ratio).partition(" (n=")[0]
