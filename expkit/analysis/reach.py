"""How an arm's trials come to the primary target, those that never do among them, beside the baseline's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.attainment import first_ended
from expkit.analysis.censored import WITHOUT_MISSES, tobit, tobit_speedup
from expkit.analysis.estimates import Interval, Reach
from expkit.analysis.pairs import best_session
from expkit.analysis.replicate import Replicate
from expkit.analysis.study import Study
from expkit.analysis.survival import Curve, Times, kaplan_meier, log_rank, mean_difference, median_s, restricted_mean
from expkit.analysis.time_to_target import Crossing


@dataclass(frozen=True)
class _Side:
    """The trials of the arm, or of its baseline, in one session."""

    times: Times
    curve: Curve
    limit_s: float
    """Up to where the curve is known."""
    lost: int
    """Trials that failed or diverged."""


def reach(study: Study, label: str) -> Reach:
    """Everything about an arm's time to the primary target that needs its misses; without a target nothing.

    Times are of one session, that with most trials of both sides. Several replicates of a trial give the geometric
    mean of their times, a lower bound of it where one of them missed. A trial that failed or diverged never came: it
    is at risk up to the arm's horizon. The Tobit model takes no such trial for a late one and has no value then.
    """
    if None not in study.attained.targets:
        return Reach()
    members, is_baseline = study.by_arm[label], study.is_baseline(label)
    base = members if is_baseline else study.baseline_of(label)
    session = best_session(members, base, study.clock)
    mine = _side(study, members, session)
    trials = first_ended(members)
    hits = sum(one.complete and study.attained.of(one).hit for one in trials)
    found = replace(_alone(mine, study.ci), n=len(trials), hits=hits)
    if is_baseline or not mine.times.n:
        return replace(found, sentence=_sentence(found, mine.lost, None))
    return _against(found, mine, _side(study, base, session), study.ci)


def _alone(mine: _Side, level: float) -> Reach:
    if not mine.times.n:
        return Reach()
    typical = tobit((mine.times,)) if 2 * mine.times.hits >= mine.times.n and not mine.lost else None
    return Reach(
        timed=mine.times.n,
        median_s=median_s(mine.curve),
        typical_s=None if typical is None else math.exp(typical.mu[0]),
        tau_s=mine.limit_s,
        restricted_mean_s=restricted_mean(mine.curve, mine.limit_s, level),
        curve=tuple(zip(mine.curve.time_s.tolist(), mine.curve.share.tolist(), strict=True)),
    )


def _against(found: Reach, mine: _Side, base: _Side, level: float) -> Reach:
    if not base.times.n:
        return replace(found, sentence=_sentence(found, mine.lost, None))
    tau = min(mine.limit_s, base.limit_s)
    test = log_rank(base.times, mine.times)
    lost = mine.lost + base.lost
    ratio = Interval(level=level) if lost else tobit_speedup(base.times, mine.times, level)
    return replace(
        found,
        tau_s=tau,
        restricted_mean_s=restricted_mean(mine.curve, tau, level),
        difference_s=mean_difference(base.curve, mine.curve, tau, level),
        log_rank_p=None if test is None else test[1],
        speedup=ratio,
        sentence=_sentence(found, lost, ratio),
    )


def _side(study: Study, members: Sequence[Replicate], session: tuple[str, str] | None) -> _Side:
    trials: dict[str, list[Crossing]] = {}
    for one in members:
        crossing = study.attained.of(one)
        usable = one.complete and one.session == session and not one.why_not(study.clock)
        if usable and crossing.horizon is not None and crossing.horizon > 0:
            trials.setdefault(one.id, []).append(crossing)
    seen = [_one_time(crossings) for crossings in trials.values()]
    lost = sum(not one.complete for one in first_ended(members))
    horizon = max((c.horizon or 0.0 for crossings in trials.values() for c in crossings), default=math.nan)
    seen += [(horizon, 1)] * lost
    times = Times.of([seconds for seconds, _ in seen], [late for _, late in seen])
    curve = kaplan_meier(times)
    all_came = len(curve.share) > 0 and curve.share[-1] == 0
    return _Side(times, curve, horizon if all_came else curve.followed_s, lost)


def _one_time(crossings: Sequence[Crossing]) -> tuple[float, int]:
    """(geometric mean, 1 where a replicate missed, -1 where one was there from the first evaluation on, else 0)."""
    seconds = [c.t if c.t is not None else c.horizon or 0.0 for c in crossings]
    late = 1 if not all(c.hit for c in crossings) else -1 if any(c.left_censored for c in crossings) else 0
    if len(seconds) == 1:
        return seconds[0], late
    return (math.exp(float(np.mean(np.log(seconds)))) if min(seconds) > 0 else 0.0), late


def _sentence(found: Reach, lost: int, ratio: Interval | None) -> str:
    if not found.n:
        return "No trial has ended."
    hits = f"{found.hits} of {phrases.count(found.n, 'trial')} reached the target"
    if found.hits < found.n:
        hits += "; a miss counts as later than its last evaluation"
    if ratio is None or ratio.method == WITHOUT_MISSES:
        return f"{hits}."
    if lost:
        return f"{hits}; {lost} failed or diverged, and no model says when they would have come."
    if ratio.value is None:
        return f"{hits}; no speedup to it, as fewer than half of a side's trials came."
    return f"{hits}; speedup to it {phrases.factor(ratio)} with misses censored, unpaired."
