"""What each method does by itself, averaged over all contexts of the grid, in time and in quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Effect, Interval, Summary
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.charts import MOST, Estimate, Words, forest
from expkit.report.credit import aliases_column, credit, only
from expkit.report.noise import band_of
from expkit.report.numbers import cell, interval, level, metric_name, quality_decimals, ratio_cell, span, unique
from expkit.report.section import Section

NONE = "Main effects need arms that differ in one method only and are complete for the same seeds; there are none yet."


@dataclass(frozen=True)
class Effects(Section):
    """Main effects with intervals: a table, and a chart per axis."""

    title: ClassVar[str] = "What each method does"
    order: ClassVar[int] = 40

    def blocks(self, summary: Summary) -> Sequence[Block]:
        if not summary.effects:
            return [Text(NONE)]
        return [_table(summary), *_charts(summary), *credit(summary)]


def _table(summary: Summary) -> Table:
    ci = unique([level(e.time) for e in summary.effects])
    contrasts = all(e.contrast for e in summary.effects)
    columns = (
        Column("method", "method"),
        Column("time", "speedup", f"×, {ci} interval", "right"),
        Column("time_resolved", "excludes 1", minor=True),
        Column("quality", f"difference in {metric_name(summary)}", f"{ci} interval", "right"),
        Column("quality_resolved", "excludes 0", minor=True),
        Column("n", "n", "seeds", "right"),
        Column("contexts", "arms" if contrasts else "contexts", "", "right", minor=True),
        *aliases_column(summary.effects),
    )
    note = "A main effect is the mean over all contexts of switching the method on, linear in log-time."
    if contrasts:
        note = "A main effect is the mean of all arms with the method minus that of all without it, linear in log-time."
    return only(columns, [_row(summary, e) for e in summary.effects], note=note)


def _row(summary: Summary, effect: Effect) -> dict[str, Cell]:
    decimals = quality_decimals(summary)
    return {
        "method": Cell(effect.method, code=True),
        "time": ratio_cell(effect.time),
        "time_resolved": _yes(effect.resolved_time),
        "quality": _points(effect.quality, decimals),
        "quality_resolved": _yes(effect.resolved_quality),
        "n": Cell(str(effect.time.n), effect.time.n),
        "contexts": Cell(str(effect.contexts), effect.contexts),
        "aliases": cell(", ".join(effect.aliases) or "–"),
    }


def _yes(holds: bool) -> Cell:
    return Cell("yes") if holds else Cell("no", tone="quiet")


def _points(it: Interval, decimals: int) -> Cell:
    return cell(interval(it, decimals, signed=True), it.value)


def _charts(summary: Summary) -> list[Block]:
    decimals = quality_decimals(summary)
    time = _estimates([(e.method, e.time, interval(e.time, 3)) for e in summary.effects])
    quality = _estimates([(e.method, e.quality, interval(e.quality, decimals, signed=True)) for e in summary.effects])
    charts = [_time_chart(summary, time)] if time else []
    return [*charts, *([_quality_chart(summary, quality)] if quality else [])]


def _time_chart(summary: Summary, estimates: list[Estimate]) -> Block:
    words = Words(
        title="Main effects on time",
        x=f"speedup on {summary.clock} [×], faster to the right",
        y="",
        caption=f"{_caption(summary, estimates)} Grey: the noise floor.",
        alt="Main effect of each method on time: " + _told(estimates),
    )
    return forest(words, estimates, centre=1.0, band=band_of(summary), log=True, what="method")


def _quality_chart(summary: Summary, estimates: list[Estimate]) -> Block:
    words = Words(
        title="Main effects on quality",
        x=f"difference in {metric_name(summary)}, better to the right",
        y="",
        caption=f"{_caption(summary, estimates)} Grey: the non-inferiority margin, ±{summary.delta:g}.",
        alt="Main effect of each method on quality: " + _told(estimates),
    )
    band = (-summary.delta, summary.delta) if summary.delta > 0 else None
    return forest(words, estimates, centre=0.0, band=band, log=False, what="method")


def _caption(summary: Summary, estimates: list[Estimate]) -> str:
    ci = unique([level(e.time) for e in summary.effects])
    what = "Contrast of all arms" if all(e.contrast for e in summary.effects) else "Mean over contexts"
    return f"{what} and {ci} interval, n = {span(e.n for e in estimates)} seeds."


def _told(estimates: list[Estimate]) -> str:
    return "; ".join(f"{e.label} {e.text}" for e in estimates[:MOST]) + "."


def _estimates(rows: list[tuple[str, Interval, str]]) -> list[Estimate]:
    return [Estimate(label, it.value, it.lo, it.hi, it.n, text) for label, it, text in rows if it.value is not None]
