"""All arms of a sweep against their baselines at once: adjusted p, intervals, improvement, equivalence. A9, A11, A13.

1,024 arms of 10 seeds take two seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from expkit.analysis import improvement
from expkit.analysis.attainment import first_ended
from expkit.analysis.comparisons import Comparison
from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import exp, t_interval
from expkit.analysis.model import Arm
from expkit.analysis.multiplicity import holm
from expkit.analysis.pairs import best_session
from expkit.analysis.quality import equivalence_p
from expkit.analysis.replicate import methods_of, split_arm
from expkit.analysis.simultaneous import EQUAL, dunnett_p, dunnett_quantile
from expkit.analysis.study import Study

Adjusted = Mapping[str, tuple[float | None, Interval]]
"""Arm -> (adjusted p, simultaneous interval of its speedup)."""


def comparisons(study: Study, arms: Sequence[Arm], confirmatory: Sequence[str]) -> tuple[str, tuple[Comparison, ...]]:
    """(how they were adjusted, one row an arm that is no baseline).

    With one error for all arms, Dunnett's comparisons with a control at each parameter point. Without, Holm's p of the
    paired t tests and Bonferroni's intervals. `confirmatory`: sets of methods, or whole arms: a family of their own.
    """
    judged = [a for a in arms if not a.baseline]
    family, adjusted = _adjusted(study, judged)
    own = _confirmatory(judged, confirmatory)
    return family, tuple(_comparison(study, arm, adjusted, own) for arm in judged)


def _comparison(study: Study, arm: Arm, adjusted: Adjusted, confirmatory: Mapping[str, float]) -> Comparison:
    p, interval = adjusted.get(arm.label, (None, Interval(level=study.ci)))
    sooner = _sooner(study, arm.label)
    not_worse, equal = equivalence_p(arm.quality_difference, study.delta)
    return Comparison(
        arm=arm.label,
        simultaneous=interval,
        p=p,
        p_confirmatory=confirmatory.get(arm.label),
        improvement=improvement.paired(list(study.pairs(arm.label, study.clock).log_speedups().values()), study.ci),
        sooner=None if sooner is None else sooner[0],
        sooner_p=None if sooner is None else sooner[1],
        p_not_worse=not_worse,
        p_equal=equal,
    )


def _adjusted(study: Study, arms: Sequence[Arm]) -> tuple[str, Adjusted]:
    compared = [a for a in arms if a.pairs >= 2 and a.checks.p is not None]
    if len(compared) < 2:
        return "", {}
    if study.time_error is not None:
        return "Dunnett", _dunnett(study, compared)
    return "Holm", _holm(study, compared)


def _dunnett(study: Study, arms: Sequence[Arm]) -> Adjusted:
    error, n, rows = study.time_error, len(study.seeds), _rows(study)
    assert error is not None
    points = [split_arm(a.label)[1] for a in arms]
    lambdas = [[EQUAL] * points.count(point) for point in dict.fromkeys(points)]
    means = np.array([study.log_speed_CS[rows[a.label]].mean() for a in arms])
    one = error.sd * math.sqrt(2 / n)
    if one == 0:
        return {a.label: (float(m == 0), exp(Interval(m, m, m, n, study.ci, "Dunnett")))
                for a, m in zip(arms, means.tolist(), strict=True)}  # fmt: skip
    p = dunnett_p(means / one, error.df, lambdas)
    half = dunnett_quantile(study.ci, error.df, lambdas) * one
    return {
        a.label: (max(float(each), 0.0), exp(Interval(m, m - half, m + half, n, study.ci, "Dunnett")))
        for a, m, each in zip(arms, means.tolist(), p, strict=True)
    }


def _holm(study: Study, arms: Sequence[Arm]) -> Adjusted:
    rows, level = _rows(study), 1 - (1 - study.ci) / len(arms)
    p = holm([math.nan if a.checks.p is None else a.checks.p for a in arms])
    found = {}
    for arm, each in zip(arms, p, strict=True):
        own = t_interval(study.log_speed_CS[rows[arm.label]], level)
        found[arm.label] = float(each), exp(Interval(own.value, own.lo, own.hi, own.n, study.ci, "Bonferroni"))
    return found


def _confirmatory(arms: Sequence[Arm], named: Sequence[str]) -> dict[str, float]:
    wanted = {methods_of(name) for name in named}
    family = [a for a in arms if a.label in named or (methods_of(a.label) in wanted and not a.parameters)]
    p = holm([math.nan if a.checks.p is None else a.checks.p for a in family])
    return {a.label: float(each) for a, each in zip(family, p, strict=True) if math.isfinite(each)}


def _sooner(study: Study, label: str) -> tuple[float, float] | None:
    """Who is at the primary target first, of trials of one session; whoever never is, is last."""
    if None not in study.attained.targets:
        return None
    members, base = study.by_arm[label], study.baseline_of(label)
    session = best_session(members, base, study.clock)
    sides = []
    for side in (base, members):
        ended = [one for one in first_ended(side) if not one.complete or
                 (one.session == session and not one.why_not(study.clock))]  # fmt: skip
        sides.append([study.attained.of(one).t or math.inf if one.complete else math.inf for one in ended])
    return improvement.unpaired(*sides)


def _rows(study: Study) -> dict[str, int]:
    return {arm: i for i, arm in enumerate(study.by_arm)}
