"""Guard of convergence: whether the baseline learns as fast per sample as in the pilots that fixed its target. B9."""

from __future__ import annotations

import math
from collections.abc import Sequence

from expkit.analysis import phrases
from expkit.analysis.convergence import LEAST, olympic_mean, reference_convergence
from expkit.analysis.guards.light import not_checked
from expkit.analysis.guards.tables import Tables
from expkit.analysis.model import Guard
from expkit.analysis.replicate import Replicate
from expkit.analysis.time_to_target import time_to_target

NAME = "convergence"


def convergence(pilots: Sequence[float], baseline: Sequence[float]) -> Guard:
    """Samples to the target of each run, inf for a miss. Amber where the baseline needs fewer than the pilots explain.

    Nothing was switched on between them, so something else was changed: data, code, or a schedule. Judged by the wider
    of MLPerf's two bounds; the number is mean of the pilots / mean of the baseline, without fastest and slowest.
    """
    if len(pilots) < LEAST or len(baseline) < 3 or not all(map(math.isfinite, pilots)):
        return not_checked(NAME, f"it takes {LEAST} pilots that reached the target and 3 trials of the baseline")
    mean, expected = olympic_mean(baseline), reference_convergence(pilots, len(baseline))
    if not math.isfinite(mean):
        return not_checked(NAME, "two trials of the baseline or more missed the target")
    if expected.least_of_all <= 0:
        return not_checked(NAME, "the pilots' samples to the target differ too much to expect any number of them")
    rules, checker = (phrases.times(ratio) for ratio in expected.allowed)
    said = (
        f"Baseline: {round(mean):,} samples to the target, its pilots {round(expected.mean):,} "
        f"({phrases.times(expected.mean / mean)}); seeds explain up to {rules} by MLPerf's rules, "
        f"{checker} by its checker"
    )
    if mean < expected.least_of_all:
        return Guard(NAME, "amber", expected.mean / mean, f"{said}: data, code or a schedule have changed since.")
    return Guard(NAME, "green", expected.mean / mean, f"{said}.")


def of_tables(t: Tables) -> Guard:
    """Pilots of this sweep, and the baseline at their parameter point."""
    pilots = [r for r in t.data.replicates if r.role == "pilot" and r.complete and not r.unreadable]
    if not pilots:
        return not_checked(NAME, "no pilot of this sweep is in the store")
    baseline = [r for r in t.ended if r.complete and r.arm == pilots[0].arm]
    return convergence([_samples(t, r) for r in pilots], [_samples(t, r) for r in baseline])


def _samples(t: Tables, one: Replicate) -> float:
    series, target = t.data.series.get((one.id, one.replicate)), t.info.value
    if series is None or target is None:
        return math.inf
    found = time_to_target(series.sample, series.value, target, t.study.mode).t
    return math.inf if found is None else found
