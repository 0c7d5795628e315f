"""Several sweeps, each a workload: what an arm does over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import t_quantile
from expkit.analysis.model import Arm, Summary
from expkit.analysis.workloads import (
    LogSpeedup,
    baseline_relative_score,
    best_relative_score,
    first_place,
    geometric_mean,
)
from expkit.errors import UsageError


@dataclass(frozen=True)
class Over:
    """One arm over all workloads; a workload whose report withholds its headline is said and still counted."""

    arm: str
    speedups: tuple[Interval, ...]
    """One a workload, in their order."""
    verdicts: tuple[str, ...]
    random: Interval
    """Geometric mean with its t interval over workloads: a claim about other workloads like these."""
    fixed: Interval
    """The same with the interval over seeds: a claim about these workloads."""
    baseline_score: float
    """Profile relative to the baseline; the baseline has 0.5."""
    best_score: float
    """AlgoPerf's profile score among these arms and the baseline; depends on who is in the set."""
    first: float
    """Probability of the largest mean speedup, approximate."""


@dataclass(frozen=True)
class Across:
    """What several sweeps say together."""

    sweeps: tuple[str, ...]
    withheld: tuple[str, ...]
    """Sweeps whose headline a red guard withholds."""
    arms: tuple[Over, ...]
    left_out: tuple[str, ...]
    """Arms that some sweep lacks or has no pair of."""
    sentence: str


def across(summaries: Sequence[Summary], seed: int = 0) -> Across:
    """Arms that every sweep has, by label, the best first; UsageError for fewer than two sweeps or clocks that differ.

    `seed` is that of the draws of `first`.
    """
    if len(summaries) < 2:
        raise UsageError(f"several workloads are two sweeps or more, but got {len(summaries)}")
    clocks = sorted({s.clock for s in summaries})
    if len(clocks) > 1:
        raise UsageError(f"all sweeps must be read on one clock, but theirs are {phrases.listing(clocks)}; "
                         "report.clock in their files says which")  # fmt: skip
    by_sweep = [{a.label: a for a in s.arms if not a.baseline} for s in summaries]
    labels = list(dict.fromkeys(label for arms in by_sweep for label in arms))
    shared = [label for label in labels if all(_known(arms.get(label)) for arms in by_sweep)]
    made = _over(shared, [[arms[label] for arms in by_sweep] for label in shared], summaries, seed)
    return Across(
        sweeps=tuple(s.sweep for s in summaries),
        withheld=tuple(s.sweep for s in summaries if s.withheld),
        arms=tuple(sorted(made, key=lambda one: -(one.random.value or 0.0))),
        left_out=tuple(label for label in labels if label not in shared),
        sentence=_sentence(summaries, len(shared)),
    )


def _known(arm: Arm | None) -> bool:
    return arm is not None and arm.speedup.value is not None


def _over(labels: Sequence[str], arms: Sequence[Sequence[Arm]], summaries: Sequence[Summary], seed: int) -> list[Over]:
    if not labels:
        return []
    logs = [[_log(arm, s) for arm, s in zip(row, summaries, strict=True)] for row in arms]
    values = np.array([[one.value for one in row] for row in logs])
    errors = np.array([[one.error if math.isfinite(one.error) else 0.0 for one in row] for row in logs])
    ratios = np.exp(-values)
    best = best_relative_score(np.vstack((ratios, np.ones(len(summaries)))))  # the baseline is one of the set
    first = first_place(values, errors, np.random.default_rng(seed))
    scores = baseline_relative_score(ratios)
    level = summaries[0].ci
    found = []
    for i, label in enumerate(labels):
        mean = geometric_mean(logs[i], level)
        found.append(
            Over(label, tuple(a.speedup for a in arms[i]), tuple(a.verdict for a in arms[i]), mean.random, mean.fixed,
                 float(scores[i]), float(best[i]), float(first[i]))
        )  # fmt: skip
    return found


def _log(arm: Arm, summary: Summary) -> LogSpeedup:
    """From the arm's interval: half-width = t_df * standard error on ln S."""
    it = arm.speedup
    value = math.log(it.value or 1.0)
    df = float(summary.pooling.df or 0) if it.method == "pooled t" else float(it.n - 1)
    if it.hi is None or not it.hi > 0 or df <= 0:
        return LogSpeedup(value, math.inf, df)
    return LogSpeedup(value, (math.log(it.hi) - value) / t_quantile(it.level, df), df)


def _sentence(summaries: Sequence[Summary], shared: int) -> str:
    names = phrases.listing([s.sweep for s in summaries])
    if not shared:
        return f"No arm has pairs in all of {names}."
    return (
        f"{phrases.count(shared, 'arm')} in all of {names}; {len(summaries)} workloads, and no claim beyond their like."
    )
