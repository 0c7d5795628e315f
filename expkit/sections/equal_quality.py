"""The three questions side by side: time at equal budget, quality at equal budget, time at equal quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.budgets import budget_of
from expkit.analysis.model import Arm, EqualQuality, Interval, Summary
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.numbers import (
    cell,
    fixed,
    interval,
    level,
    metric_name,
    quality_decimals,
    ratio_cell,
    seconds,
    unique,
)
from expkit.report.section import Section
from expkit.spec.axes import BUDGET

NONE = (
    "Time at equal quality is not measured: it takes whole runs at several budgets, such as "
    "`budgets: {ssr: [0.25, 0.5, 1.0]}`, whose schedules have all ended."
)


@dataclass(frozen=True)
class EqualQualities(Section):
    """A row an arm; the points of its curve, folded."""

    title: ClassVar[str] = "Time at equal quality"
    order: ClassVar[int] = 55

    def blocks(self, summary: Summary) -> Sequence[Block]:
        if not summary.equal_quality:
            return [Text(NONE)]
        return [_questions(summary), _points(summary)]


def _questions(summary: Summary) -> Table:
    longest = _at_full(summary.arms)
    rows = tuple(_row(summary, found, longest.get(found.arm)) for found in summary.equal_quality)
    compared = [longest[found.arm] for found in summary.equal_quality if found.arm in longest]
    ci, dq = unique([level(a.speedup) for a in compared]), unique([level(a.quality_difference) for a in compared])
    columns = (
        Column("arm", "arm"),
        Column("time", "speedup at the longest budget", f"×, {ci} interval", "right"),
        Column("quality", "quality difference there", f"{dq} interval", "right"),
        Column("equal", "speedup at equal quality", f"×, {ci} interval", "right"),
        Column("at", "at", metric_name(summary), "right"),
        Column("range", "over all common qualities", "×", "right"),
        Column("n", "n", "seeds", "right"),
        Column("sentence", "in words"),
    )
    note = (
        f"Each budget is a run of its own ({BUDGET} scales every schedule) and one point: its time on {summary.clock}, "
        "its last quality. Between budgets quality is linear in log-time, beyond them nothing is said. Speedup at "
        "equal quality = baseline's time to it / arm's, paired by seed."
    )
    return Table(columns, rows, "Three questions", note)


def _at_full(arms: Sequence[Arm]) -> dict[str, Arm]:
    """Label without the budget -> the arm at the longest of its budgets."""
    found: dict[str, tuple[float, Arm]] = {}
    for arm in arms:
        family, budget = budget_of(arm.label)
        if budget is not None and budget > found.get(family, (0.0, arm))[0]:
            found[family] = budget, arm
    return {family: arm for family, (_, arm) in found.items()}


def _row(summary: Summary, found: EqualQuality, arm: Arm | None) -> dict[str, Cell]:
    decimals = quality_decimals(summary)
    at = found.at[0] if found.at else None
    difference = Interval() if arm is None else arm.quality_difference
    spread = "" if found.least is None else f"{fixed(found.least, 3)} to {fixed(found.greatest, 3)}"
    return {
        "arm": Cell(found.arm, code=True),
        "time": ratio_cell(Interval() if arm is None else arm.speedup),
        "quality": cell(interval(difference, decimals, signed=True), difference.value),
        "equal": ratio_cell(Interval() if at is None else at.speedup),
        "at": cell(fixed(None if at is None else at.quality, decimals), None if at is None else at.quality),
        "range": cell(spread or "–", found.least),
        "n": Cell(str(found.seeds), found.seeds),
        "sentence": cell(found.sentence or "–"),
    }


def _points(summary: Summary) -> Table:
    decimals = quality_decimals(summary)
    columns = (
        Column("arm", "arm"),
        Column("quality", metric_name(summary), "", "right"),
        Column("preset", "set before", minor=True),
        Column("baseline", "baseline", "s", "right"),
        Column("own", "arm's own", "s", "right"),
        Column("speedup", "speedup", "×", "right"),
        Column("smooth", "by a monotone cubic", "×", "right", minor=True),
    )
    rows = tuple(
        {
            "arm": Cell(found.arm, code=True),
            "quality": cell(fixed(at.quality, decimals), at.quality),
            "preset": Cell("yes") if at.preset else Cell("no", tone="quiet"),
            "baseline": cell(seconds(at.baseline_s), at.baseline_s),
            "own": cell(seconds(at.arm_s), at.arm_s),
            "speedup": ratio_cell(at.speedup),
            "smooth": cell(fixed(at.smooth, 3), at.smooth),
        }
        for found in summary.equal_quality
        for at in found.at
    )
    note = "Set before: the target or a rung of its ladder; the others are quartiles of what both curves reach."
    return Table(columns, rows, "At several qualities", note, folded=True)
