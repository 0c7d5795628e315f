"""What each method does by itself, averaged over all contexts of the grid, in time and in quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Effect, Interval, Summary
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.charts import Estimate, forest
from expkit.report.noise import band_of
from expkit.report.numbers import cell, interval, level, metric_name, quality_decimals, ratio_cell, unique
from expkit.report.section import Section


@dataclass(frozen=True)
class Effects(Section):
    """Main effects with intervals: a table, and a chart per axis."""

    title: ClassVar[str] = "What each method does"
    order: ClassVar[int] = 40

    def blocks(self, summary: Summary) -> Sequence[Block]:
        if not summary.effects:
            return [Text("Main effects need arms that differ in one method only and are complete for the same seeds; there are none yet.")]  # fmt: skip
        return [_table(summary), *_charts(summary), *_shapley(summary)]


def _table(summary: Summary) -> Table:
    ci = unique([level(e.time) for e in summary.effects])
    columns = (
        Column("method", "method"),
        Column("time", "speedup", f"×, {ci} interval", "right"),
        Column("time_resolved", "excludes 1"),
        Column("quality", f"difference in {metric_name(summary)}", f"{ci} interval", "right"),
        Column("quality_resolved", "excludes 0"),
        Column("n", "n", "seeds", "right"),
        Column("contexts", "contexts", "", "right", minor=True),
    )
    note = "A main effect is the mean over all contexts of switching the method on, linear in log-time."
    return Table(columns, tuple(_row(summary, e) for e in summary.effects), note=note)


def _row(summary: Summary, effect: Effect) -> dict[str, Cell]:
    decimals = quality_decimals(summary)
    return {
        "method": Cell(effect.method, code=True),
        "time": ratio_cell(effect.time),
        "time_resolved": Cell("yes" if effect.resolved_time else "no", tone="" if effect.resolved_time else "quiet"),
        "quality": _points(effect.quality, decimals),
        "quality_resolved": Cell("yes" if effect.resolved_quality else "no", tone="" if effect.resolved_quality else "quiet"),
        "n": Cell(str(effect.time.n), effect.time.n),
        "contexts": Cell(str(effect.contexts), effect.contexts),
    }  # fmt: skip


def _shapley(summary: Summary) -> list[Block]:
    credited = [e for e in summary.effects if e.shapley_time.value is not None or e.shapley_quality.value is not None]
    if not credited:
        return []
    ci, decimals = unique([level(e.shapley_time) for e in credited]), quality_decimals(summary)
    columns = (
        Column("method", "method"),
        Column("time", "credit in speedup", f"×, {ci} interval", "right"),
        Column("quality", f"credit in {metric_name(summary)}", f"{ci} interval", "right"),
        Column("n", "n", "seeds", "right"),
        Column("sentence", "in words"),
    )
    rows = tuple(
        {
            "method": Cell(e.method, code=True),
            "time": ratio_cell(e.shapley_time),
            "quality": _points(e.shapley_quality, decimals),
            "n": Cell(str(e.shapley_time.n), e.shapley_time.n),
            "sentence": cell(e.sentence or "–"),
        }
        for e in credited
    )
    note = "Credits in time multiply, credits in quality add up, to the effect of all methods together."
    return [Table(columns, rows, "Shapley credit of each method", note, folded=True)]


def _points(it: Interval, decimals: int) -> Cell:
    return cell(interval(it, decimals, signed=True), it.value)


def _charts(summary: Summary) -> list[Block]:
    decimals = quality_decimals(summary)
    time = _estimates([(e.method, e.time, interval(e.time, 3)) for e in summary.effects])
    quality = _estimates([(e.method, e.quality, interval(e.quality, decimals, signed=True)) for e in summary.effects])
    ci, n = unique([level(e.time) for e in summary.effects]), max(e.time.n for e in summary.effects)
    caption = f"Mean over contexts and {ci} interval, n = {n} seeds."
    charts: list[Block] = []
    if time:
        charts.append(forest(
            "Main effects on time", f"speedup on {summary.clock} [×], faster to the right", time, centre=1.0,
            band=band_of(summary), log=True, caption=f"{caption} Grey: the noise floor.", label="method",
            alt="Main effect of each method on time: " + "; ".join(f"{e.label} {e.text}" for e in time),
        ))  # fmt: skip
    if quality:
        charts.append(forest(
            "Main effects on quality", f"difference in {metric_name(summary)}, better to the right", quality, centre=0.0,
            band=(-summary.delta, summary.delta) if summary.delta > 0 else None, log=False, label="method",
            caption=f"{caption} Grey: the non-inferiority margin, ±{summary.delta:g}.",
            alt="Main effect of each method on quality: " + "; ".join(f"{e.label} {e.text}" for e in quality),
        ))  # fmt: skip
    return charts


def _estimates(rows: list[tuple[str, Interval, str]]) -> list[Estimate]:
    return [Estimate(label, it.value, it.lo, it.hi, it.n, text) for label, it, text in rows if it.value is not None]
