"""Time to target: how many trials of each arm reached which quality, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Arm, Summary, TargetTime
from expkit.report.blocks import ABSENT, Block, Cell, Column, Table, Text
from expkit.report.numbers import fixed, metric_name, quality_decimals
from expkit.report.ranking import primary_time, ranked
from expkit.report.section import Section

RULES = {
    "first": "first evaluation there",
    "sustained": "and the next one too",
    "interpolated": "sustained, interpolated",
    "to_end": "there to the end",
    "median3": "median of three there",
}


@dataclass(frozen=True)
class Target(Section):
    """The ladder of targets, and what the rule of counting changes at the primary one."""

    title: ClassVar[str] = "Time to target"
    order: ClassVar[int] = 70

    def blocks(self, summary: Summary) -> Sequence[Block]:
        arms = [arm for arm in ranked(summary) if arm.target_times and any(a.complete for a in summary.arms)]
        sentence = [Text(summary.target.sentence)] if summary.target.sentence else []
        if not arms:
            why = "No target is set" if summary.target.value is None else "No complete trial has recorded the metric"
            return [*sentence, Text(f"{why}, so there is no time to it.")]
        return [*sentence, _ladder(summary, arms), _rules(summary, arms)]


def _ladder(summary: Summary, arms: list[Arm]) -> Table:
    shares = sorted({t.share for arm in arms for t in arm.target_times}, key=lambda s: (s is not None, s or 0.0))
    columns = (Column("arm", "arm"), *(_rung(summary, arms, share) for share in shares))
    rows = tuple(
        {"arm": Cell(arm.label, code=True, strong=arm.baseline)}
        | {str(share): _cell(primary_time(arm, share)) for share in shares}
        for arm in arms
    )
    note = (
        f"Median time on {summary.clock} and hits of n trials, a miss counted as longer than any hit: '> 41 s (1/5)' "
        f"says that one of five trials got there and the median lies beyond 41 s. Targets in {metric_name(summary)}; "
        "shares are of the baseline's median gain."
    )
    return Table(columns, rows, "Ladder of targets", note)


def _rung(summary: Summary, arms: list[Arm], share: float | None) -> Column:
    target = next(t.target for arm in arms for t in arm.target_times if t.share == share)
    value = fixed(target, quality_decimals(summary))
    title = f"target {value}" if share is None else f"{100 * share:g} % of gain, {value}"
    return Column(str(share), title, "s, hits", "right", minor=share is not None)


def _rules(summary: Summary, arms: list[Arm]) -> Table:
    rules = [r for r in RULES if any(t.rule == r and t.share is None for arm in arms for t in arm.target_times)]
    columns = (Column("arm", "arm"), *(Column(rule, RULES[rule], "s, hits", "right") for rule in rules))
    rows = tuple(
        {"arm": Cell(arm.label, code=True, strong=arm.baseline)}
        | {t.rule: _cell(t) for t in arm.target_times if t.share is None}
        for arm in arms
    )
    return Table(
        columns, rows, "What the rule of counting changes", f"At the primary target, on {summary.clock}.", True
    )


def _cell(time: TargetTime | None) -> Cell:
    return (
        ABSENT
        if time is None or not time.n
        else Cell(time.text, time.median_s, "quiet" if time.median_s is None else "")
    )
