"""What other metrics say of quality: whether a verdict hangs on which of them judges."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from expkit.analysis.estimates import Interval
from expkit.analysis.load import Views
from expkit.analysis.pairs import quality_pairs
from expkit.analysis.quality import quality_difference
from expkit.analysis.replicate import Replicate
from expkit.analysis.study import Study
from expkit.analysis.terms import mode_by_name

_FINALS = """
  SELECT p.id, p.replicate, f.name, f.last FROM sweep_trials p JOIN final f USING (id, replicate)
  WHERE p.sweep = $sweep AND list_contains($names, f.name) AND f.last IS NOT NULL"""

Differences = Mapping[str, Mapping[str, Interval]]
"""Metric -> arm -> its difference in quality, the sweep's own metric among them; more is better."""


def differences(con: Views, sweep: str, study: Study, names: Sequence[str]) -> Differences:
    """The difference of each arm in each of the metrics: 90 % intervals over seeds, as the report's own."""
    finals: dict[str, dict[tuple[str, int], float]] = {name: {} for name in names}
    for row in con.rows(_FINALS, {"sweep": sweep, "names": list(names)}):
        finals[row["name"]][row["id"], row["replicate"]] = row["last"]
    found = {study.metric: _of(study, study.mode, {(r.id, r.replicate): r.quality for r in study.replicates})}
    return found | {name: _of(study, mode_by_name(name), values) for name, values in finals.items()}


def _of(
    study: Study, mode: Literal["max", "min"], values: Mapping[tuple[str, int], float | None]
) -> dict[str, Interval]:
    judging = {(r.id, r.replicate): dataclasses.replace(r, quality=values.get((r.id, r.replicate)))
               for r in study.replicates}  # fmt: skip

    def judged(members: Sequence[Replicate]) -> list[Replicate]:
        return [judging[r.id, r.replicate] for r in members]

    return {
        arm: quality_difference(*quality_pairs(judged(members), judged(study.baseline_of(arm))), mode=mode)
        for arm, members in study.by_arm.items()
        if not study.is_baseline(arm)
    }


def turned(found: Differences, metric: str) -> dict[str, tuple[str, Interval, Interval]]:
    """Arms that are better by one metric and worse by another: arm -> (the other, by `metric`, by the other)."""
    arms = {}
    for other in sorted(found.keys() - {metric}):
        for arm, own in found[metric].items():
            if arm not in arms and _side(own) * _side(found[other].get(arm, Interval())) < 0:
                arms[arm] = other, own, found[other][arm]
    return arms


def _side(difference: Interval) -> int:
    """1 where the interval lies above 0, -1 where below, 0 where it holds 0 or there is none."""
    if difference.lo is None or difference.hi is None:
        return 0
    return (difference.lo > 0) - (difference.hi < 0)
