"""Learning curves of the primary metric, by training time and by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Curve, Summary
from expkit.report import charts
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.numbers import cell, count, fixed, metric_name, quality_decimals, seconds, span
from expkit.report.ranking import looks, ranked
from expkit.report.section import Section


@dataclass(frozen=True)
class Curves(Section):
    """The same curves against two axes: seconds say what is worth having, steps say why."""

    title: ClassVar[str] = "Learning curves"
    order: ClassVar[int] = 60

    def blocks(self, summary: Summary) -> Sequence[Block]:
        curves = _ordered(summary)
        if not curves:
            return [Text(f"No complete trial has recorded {summary.metric}, so there is no curve to draw.")]
        return [
            _chart(summary, curves, "by training time", "training time, train_s [s]", [c.train_s for c in curves]),
            _chart(summary, curves, "by step", "step [batches]", [c.step for c in curves]),
        ]


def _ordered(summary: Summary) -> list[Curve]:
    place = {arm.label: i for i, arm in enumerate(ranked(summary))}
    found = [c for c in summary.curves if c.metric == summary.metric and c.mean and c.arm in place]
    return sorted(found, key=lambda c: place[c.arm])


def _chart(summary: Summary, curves: list[Curve], how: str, axis: str, xs: Sequence[Sequence[float]]) -> Block:
    lines = {
        c.arm: [charts.Step(*each) for each in zip(x, c.mean, c.lo, c.hi, strict=True)]
        for c, x in zip(curves, xs, strict=True)
    }
    decimals = quality_decimals(summary)
    target = summary.target.value if summary.target.metric == summary.metric else None
    has_ends = any(end is not None for c in curves for end in c.lo)
    band = f" and {100 * summary.ci:.3g} % interval (shaded)" if has_ends else ""
    words = charts.Words(
        title=f"{summary.metric} {how}",
        x=axis,
        y=metric_name(summary),
        caption=f"Mean over seeds{band}, n = {span(n for c in curves for n in c.n)}.",
        alt=f"Learning curves of {count(len(lines), 'arm')} {how}; last values: {_last(curves, decimals)}.",
    )
    note = None if target is None else (target, f"target {fixed(target, decimals)}")
    return charts.curves(words, lines, looks(summary), note, _table(summary, curves))


def _last(curves: list[Curve], decimals: int) -> str:
    return "; ".join(f"{c.arm} {fixed(c.mean[-1], decimals)}" for c in curves[: charts.MOST_LINES])


def _table(summary: Summary, curves: list[Curve]) -> Table:
    columns = (
        Column("arm", "arm"),
        Column("step", "step", "batches", "right"),
        Column("sample", "samples", "", "right"),
        Column("train_s", "train_s", "s", "right"),
        Column("mean", metric_name(summary), "mean", "right"),
        Column("lo", "from", f"{100 * summary.ci:.3g} % interval", "right"),
        Column("hi", "to", f"{100 * summary.ci:.3g} % interval", "right"),
        Column("n", "n", "seeds", "right"),
    )
    decimals = quality_decimals(summary)
    rows = [row for c in curves[: charts.MOST_LINES] for row in _rows(c, decimals)]
    return Table(columns, tuple(rows), folded=True)


def _rows(c: Curve, decimals: int) -> list[dict[str, Cell]]:
    points = list(zip(c.step, c.sample, c.train_s, c.mean, c.lo, c.hi, c.n, strict=True))
    return [
        {
            "arm": Cell(c.arm, code=True),
            "step": Cell(f"{step:,}", step),
            "sample": Cell(f"{sample:,}", sample),
            "train_s": cell(seconds(train_s), train_s),
            "mean": cell(fixed(mean, decimals), mean),
            "lo": cell(fixed(lo, decimals), lo),
            "hi": cell(fixed(hi, decimals), hi),
            "n": Cell(str(n), n),
        }
        for step, sample, train_s, mean, lo, hi, n in points[:: max(1, len(points) // 50)]
    ]
