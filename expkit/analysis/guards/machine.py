"""Guards of the machine: what equal code differs by, who else was there, what drifted, whose times count. B5, B6."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval
from expkit.analysis.guards.light import names_of, not_checked, nothing_done
from expkit.analysis.intervals import Array, t_quantile
from expkit.analysis.model import Guard
from expkit.analysis.noise import TOO_NOISY, Floor
from expkit.analysis.replicate import NOT_OWN_WORK, Replicate
from expkit.store.records import CONTENTION_RATIO

NOTABLE_DRIFT = 0.02
"""Log-time that the baseline moved by over the whole sweep; less is no news."""

OUTLIER = 14.826
"""Deviations from the median in units of the median deviation; ten standard deviations, were times normal."""


def aa_floor(floor: Floor, clock: str) -> Guard:
    """A17: whether two runs of identical code differ by no more than chance, and by little."""
    where = f"{phrases.on_clock(clock)}"
    if floor.eps is None or floor.contains_one is None:
        had = phrases.count(floor.pairs, "A/A pair")
        return Guard("noise floor", "red", None, f"No noise floor {where}: {had} where at least 2 are needed.")
    size = f"A/A ratio {phrases.factor(floor.ratio)} {where}, noise floor {phrases.percent(floor.eps)}"
    if floor.eps > TOO_NOISY:
        seen = f"no effect on time below {phrases.percent(floor.eps)} can be seen"
        return Guard("noise floor", "amber", floor.eps, f"Too noisy to tell: {size}, so {seen}.")
    if floor.contains_one:
        return Guard("noise floor", "green", floor.eps, f"{size}: identical code does not differ.")
    return Guard("noise floor", "amber", floor.eps, f"{size}, widened: identical code differs by more than chance.")


def contention(replicates: Sequence[Replicate], clock: str) -> Guard:
    """B5: whether somebody else had the machine; red only where the headline's clock suffers from it."""
    done = [r for r in replicates if r.complete]
    if not done:
        return nothing_done("contention")
    ratios = [ratio for r in done if (ratio := r.wall_over_cpu) is not None]
    median = statistics.median(ratios) if ratios else None
    hit = [r for r in done if r.contended]
    if not hit:
        found = f" (wall/CPU {median:.2f} median)" if median is not None else ""
        return Guard("contention", "green", median, f"No contention: nothing else had the machine{found}.")
    found = f"wall/CPU {median:.2f} median, " if median is not None else ""
    shared = f"Machine was shared ({found}above {CONTENTION_RATIO} or flagged in {len(hit)} of {len(done)} replicates)"
    if clock == "cpu_s":
        return Guard("contention", "amber", median, f"{shared}. Wall-clock ratios withheld; CPU time shown.")
    return Guard("contention", "red", median, f"{shared}: ratios of {phrases.clock_name(clock)} withheld.")


def drift(replicates: Sequence[Replicate], trend: Interval | None = None) -> Guard:
    """B6: replicates around which the reference workload moved by more than 10 %, and the baseline's own `trend`.

    Both are counted and named, and still compared: arms stand beside the baseline of their own block.
    """
    done = [r for r in replicates if r.complete]
    if not done:
        return nothing_done("drift")
    slope = f" (baseline {_over(trend)})" if trend is not None and trend.value is not None else ""
    moved = names_of(r for r in done if "drift" in r.timing_reasons)
    if moved:
        what = f"The reference workload moved by more than 10 % around {len(moved)} of {len(done)} replicates"
        return Guard("drift", "amber", len(moved), f"{what}{slope}: {phrases.listing(moved)}.")
    if trend is not None and trend.lo is not None and trend.hi is not None and not trend.lo <= 0 <= trend.hi:
        return Guard("drift", "amber", trend.value, f"The machine drifted: baseline {_over(trend)}.")
    quiet = "No drift: the reference workload stayed within 10 % around every trial"
    return Guard("drift", "green", 0, f"{quiet}{slope}.")


def baseline_trend(baseline: Iterable[Replicate], clock: str) -> Interval:
    """What the slope of the baseline's ln T against its start comes to over the sweep; least squares, t interval.

    No value below three usable times or where all started at once; no ends where it is below NOTABLE_DRIFT.
    """
    points = [(datetime.fromisoformat(r.started_utc).timestamp(), math.log(seconds))
              for r in baseline
              if r.complete and r.started_utc and not r.why_not(clock) and (seconds := r.time(clock))]  # fmt: skip
    start_s, logs = np.array(points, dtype=float).reshape(-1, 2).T
    n = len(start_s)
    if n < 3 or np.ptp(start_s) < 1.0:
        return Interval(n=n)
    x = (start_s - start_s.mean()) / float(np.ptp(start_s))  # the sweep is 1 long
    slope = float(x @ logs / (x @ x))
    if abs(slope) < NOTABLE_DRIFT:
        return Interval(slope, n=n, method="least squares")
    rest = logs - logs.mean() - slope * x
    half = t_quantile(0.95, n - 2) * math.sqrt(float(rest @ rest) / (n - 2) / float(x @ x))
    return Interval(slope, slope - half, slope + half, n, method="least squares")


def own_timing(replicates: Sequence[Replicate]) -> Guard:
    """Replicates that were resumed or shared the machine by agreement: their pairs are left out on every clock."""
    done = [r for r in replicates if r.complete]
    if not done:
        return nothing_done("timing")
    out = names_of(r for r in done if set(NOT_OWN_WORK) & set(r.timing_reasons))
    if not out:
        return Guard("timing", "green", 0, "Every complete trial ran in one go and by itself.")
    what = f"{len(out)} of {len(done)} replicates resumed or shared, their times left out: {phrases.listing(out)}."
    return Guard("timing", "red" if len(out) == len(done) else "amber", len(out), what)


def headline_clock(replicates: Sequence[Replicate], requested: str) -> tuple[str, str]:
    """(clock, sentence): the requested one, or CPU time where the machine was shared and CPU time can stand in.

    It can where every complete trial was one thread on a CPU: then its CPU time is what the wall clock would have
    shown on a machine of its own. B5, A17.
    """
    done = [r for r in replicates if r.complete]
    name = phrases.clock_name(requested)
    hit = sum(r.contended for r in done)
    if requested == "cpu_s" or not hit:
        return requested, f"Times are read {phrases.on_clock(requested)} ({requested})."
    shared = f"the machine was shared during {hit} of {len(done)} replicates"
    if all(r.single_threaded for r in done):
        return "cpu_s", f"Times are CPU time (cpu_s) instead of {name}, because {shared}; every trial was one thread."
    return requested, f"Times of {name} ({requested}) are withheld: {shared}, and CPU time cannot stand in."


def _over(trend: Interval) -> str:
    """`-0.2 % over the sweep`, with its interval where it has one."""
    signed = [f"{100 * math.expm1(min(v, 50)):+.2g}" for v in (trend.value, trend.lo, trend.hi) if v is not None]
    ends = f" [{signed[1]}, {signed[2]}]" if len(signed) == 3 else ""
    return f"{signed[0]} %{ends} over the sweep"


def modified_z(deviations: Sequence[float]) -> Array:
    """|x| / median |x| of deviations from a median, (n,); zeros where half are none. A17, as hyperfine."""
    sizes = np.abs(np.asarray(deviations, dtype=float))
    usual = float(np.median(sizes)) if len(sizes) else 0.0
    return sizes / usual if usual > 0 else np.zeros(len(sizes))


def outliers(replicates: Sequence[Replicate], clock: str) -> Guard:
    """A17: complete replicates whose log time lies far off the median of their arm, by the median deviation of all.

    None is left out for it. The number counts them.
    """
    by_arm: dict[str, list[tuple[Replicate, float]]] = {}
    for one in replicates:
        seconds = one.time(clock)
        if one.complete and seconds is not None and not one.why_not(clock):
            by_arm.setdefault(one.arm, []).append((one, math.log(seconds)))
    several = [found for found in by_arm.values() if len(found) > 2]
    if not several:
        return not_checked("outliers", "no arm has three usable times")
    centred = [(one, value - statistics.median(v for _, v in found)) for found in several for one, value in found]
    far = [one for (one, _), z in zip(centred, modified_z([d for _, d in centred]), strict=True) if z > OUTLIER]
    if not far:
        return Guard("outliers", "green", 0, f"All {len(centred)} times lie near the median of their arm.")
    named = phrases.listing([f"{name} of {one.arm}" for name, one in zip(names_of(far), far, strict=True)], most=3)
    said = f"{len(far)} of {len(centred)} times {'lies' if len(far) == 1 else 'lie'} far off the median of the arm"
    return Guard("outliers", "amber", len(far), f"{said}, and {'is' if len(far) == 1 else 'are'} kept: {named}.")
