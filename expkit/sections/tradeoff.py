"""Quality against time: each arm as a cross of its two intervals, the baseline in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Arm, Summary
from expkit.analysis.pareto import FRONT, POSSIBLE
from expkit.report.blocks import ABSENT, Block, Cell, Chart, Column, Table, Text
from expkit.report.charts import Cross, Words, crosses
from expkit.report.noise import band_of
from expkit.report.numbers import (
    cell,
    count,
    fixed,
    interval,
    level,
    metric_name,
    quality_decimals,
    ratio_cell,
    span,
    unique,
)
from expkit.report.ranking import looks, ranked
from expkit.report.section import Section


@dataclass(frozen=True)
class Tradeoff(Section):
    """Up and to the right is better on both axes."""

    title: ClassVar[str] = "Quality against time"
    order: ClassVar[int] = 50

    def blocks(self, summary: Summary) -> Sequence[Block]:
        arms = [a for a in ranked(summary) if a.speedup.value is not None and a.quality_difference.value is not None]
        if not arms:
            return [Text("No arm has both a speedup and a quality difference yet.")]
        return [_chart(summary, arms)]


def _chart(summary: Summary, arms: list[Arm]) -> Chart:
    ci, dq = unique([level(a.speedup) for a in arms]), unique([level(a.quality_difference) for a in arms])
    words = Words(
        title="Quality against time at equal budget",
        x=f"speedup on {summary.clock} [×], faster to the right",
        y=f"difference in {metric_name(summary)}",
        caption=f"Bars: {ci} interval of the speedup, {dq} of the quality difference (up is better), "
        f"n = {span(a.pairs for a in arms)} pairs of seeds. Grey band: noise floor. "
        f"Dashed line: −{summary.delta:g}, the worst that still counts as not worse.",
        alt=f"Quality difference against speedup of {count(len(arms), 'arm')}; the baseline is at 1 and 0.",
    )
    baseline = [Cross(a.label, (1.0, None, None), (0.0, None, None)) for a in summary.arms if a.baseline]
    return crosses(
        words,
        [*baseline, *map(_point, arms)],
        looks(summary),
        centre=(1.0, 0.0),
        band=band_of(summary),
        floor=-summary.delta,
        table=_table(summary, arms, ci, dq),
    )


def _point(arm: Arm) -> Cross:
    s, q = arm.speedup, arm.quality_difference
    assert s.value is not None and q.value is not None
    return Cross(arm.label, (s.value, s.lo, s.hi), (q.value, q.lo, q.hi))


def _table(summary: Summary, arms: list[Arm], ci: str, dq: str) -> Table:
    columns = (
        Column("arm", "arm"),
        Column("speedup", "speedup", f"×, {ci} interval", "right"),
        Column("difference", f"difference in {metric_name(summary)}", f"{dq} interval", "right"),
        Column("n", "n", "pairs", "right"),
        Column("front", "beaten by no arm", "share of resamples", "right"),
    )
    decimals, shares = quality_decimals(summary), dict(p for front in summary.fronts for p in front.probability)
    rows = tuple(
        {
            "arm": Cell(a.label, code=True),
            "speedup": ratio_cell(a.speedup),
            "difference": cell(interval(a.quality_difference, decimals, signed=True), a.quality_difference.value),
            "n": Cell(str(a.pairs), a.pairs),
            "front": _front(shares.get(a.label)),
        }
        for a in arms
    )
    return Table(columns, rows, note=_note(summary), folded=True)


def _front(share: float | None) -> Cell:
    if share is None:
        return ABSENT
    word = "front" if share >= FRONT else "possible" if share > POSSIBLE else ""
    return Cell(f"{fixed(share, 2)} {word}".strip(), share, "" if word else "quiet")


def _note(summary: Summary) -> str:
    """What the last column is, where any front could be drawn."""
    if not any(front.probability for front in summary.fronts):
        return ""
    n = span(front.seeds for front in summary.fronts if front.probability)
    return (
        "Beaten by no arm: in which share of resampled sets of seeds no other arm at its parameters is at least as "
        f"fast and as good, and better in one; approximate, n = {n} seeds."
    )
