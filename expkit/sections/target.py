"""Time to target: how many trials of each arm reached which quality, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.budgets import budget_of
from expkit.analysis.model import Arm, Summary, TargetTime
from expkit.report.blocks import ABSENT, Block, Cell, Column, Table, Text
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
from expkit.report.ranking import primary_time, ranked
from expkit.report.section import Section

RULES = {
    "first": "first evaluation there",
    "sustained": "and the next one too",
    "interpolated": "sustained, interpolated",
    "to_end": "there to the end",
    "median3": "median of three there",
    "endpoint": "whole runs that end there",
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
        return [*sentence, *_ladders(summary, arms), *_missed(summary, arms), _rules(summary, arms)]


def _ladders(summary: Summary, arms: list[Arm]) -> list[Table]:
    """One table, or one a budget where each has a ladder of its own."""
    if not summary.target.ladders:
        return [_ladder(summary, arms, "Ladder of targets")]
    by_budget = {b: [arm for arm in arms if budget_of(arm.label)[1] == b] for b, _ in reversed(summary.target.ladders)}
    return [_ladder(summary, own, f"Ladder of targets at {budget:g} of the length")
            for budget, own in by_budget.items() if own]  # fmt: skip


def _ladder(summary: Summary, arms: list[Arm], title: str) -> Table:
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
    return Table(columns, rows, title, note)


def _rung(summary: Summary, arms: list[Arm], share: float | None) -> Column:
    target = next(t.target for arm in arms for t in arm.target_times if t.share == share)
    value = fixed(target, quality_decimals(summary))
    title = f"target {value}" if share is None else f"{100 * share:g} % of gain, {value}"
    return Column(str(share), title, "s, hits", "right", minor=share is not None)


def _missed(summary: Summary, arms: list[Arm]) -> list[Block]:
    """Only where some trial missed the primary target: else the ladder has it all."""
    if all(arm.reach.hits == arm.reach.n for arm in arms):
        return []
    ci = unique([level(arm.reach.restricted_mean_s) for arm in arms])
    columns = (
        Column("arm", "arm"),
        Column("hits", "hits", "of n trials", "right"),
        Column("median", "median", "s, Kaplan-Meier", "right"),
        Column("mean", "restricted mean", f"s, {ci} interval", "right"),
        Column("saved", "saved up to the horizon", f"s, {ci} interval", "right"),
        Column("p", "p of log-rank", "", "right", minor=True),
        Column("speedup", "speedup, misses censored", f"×, {ci} interval", "right"),
    )
    rows = tuple(
        {
            "arm": Cell(arm.label, code=True, strong=arm.baseline),
            "hits": Cell(f"{it.hits} / {it.n}", it.hits, "warn" if it.hits < it.n else ""),
            "median": cell(seconds(it.median_s), it.median_s),
            "mean": cell(interval(it.restricted_mean_s, 2), it.restricted_mean_s.value),
            "saved": cell(interval(it.difference_s, 2, signed=True), it.difference_s.value),
            "p": cell(fixed(it.log_rank_p, 4), it.log_rank_p),
            "speedup": ratio_cell(it.speedup),
        }
        for arm in arms
        for it in (arm.reach,)
    )
    note = (
        f"A miss is later than its last evaluation; no more is known. On {summary.clock}. Restricted mean: "
        "mean of the time, cut at the shorter horizon of arm and baseline. Speedup: ratio of the medians of two "
        "log-normal times by the censored (Tobit) likelihood, unpaired; none where fewer than half of a side came."
    )
    return [Table(columns, rows, "The primary target with its misses", note)]


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
