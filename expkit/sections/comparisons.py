"""All arms at once: p values and intervals adjusted for their number, and the arms that may be the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.comparisons import Best, Comparison
from expkit.analysis.model import Summary
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.credit import small
from expkit.report.numbers import cell, fixed, interval, level, ratio_cell, unique
from expkit.report.ranking import ranked
from expkit.report.section import Section

MOST_ROWS = 60
NONE = "No arm has a pair with its baseline yet, so there is nothing to compare at once."
HOW = {
    "Dunnett": "Adjusted by Dunnett's comparisons with a control, one error for all arms",
    "Holm": "Adjusted by Holm from the paired t tests, intervals by Bonferroni, as the arms have no common error",
}
NOTE = (
    "Faster: the share of blocks in which the arm is faster than the baseline; called better where its interval lies "
    "above 0.5 and it is 0.75 or more. Not worse, equal: p of the one-sided tests against the margin."
)


@dataclass(frozen=True)
class Comparisons(Section):
    """One row an arm, and one a question for the best."""

    title: ClassVar[str] = "All arms at once"
    order: ClassVar[int] = 45

    def blocks(self, summary: Summary) -> Sequence[Block]:
        return [*_best(summary), *_arms(summary)] or [Text(NONE)]


def _best(summary: Summary) -> list[Block]:
    if not summary.many.best:
        return []
    if summary.withheld:
        return [Text("Which arm may be the best is withheld, as the headline is.")]
    points = any(one.point for one in summary.many.best)
    columns = (
        Column("question", "best by"),
        *([Column("point", "at")] if points else []),
        Column("winner", "arm"),
        Column("value", "its value", "× or quality", "right"),
        Column("shrunk", "shrunk", "× or quality", "right", minor=True),
        Column("luck", "luck of choosing", "× or quality", "right", minor=True),
        Column("tied", "cannot be told from it", "arms", "right"),
        Column("sentence", "in words"),
    )
    note = (
        "The set holds the best arm with the level of the intervals (Hsu, or paired t with Bonferroni). Shrunk: drawn "
        "towards the mean of all arms as far as their spread is noise. Luck: what the best of so many equal arms leads "
        "by. Whoever wins is to be run again on fresh seeds."
    )
    rows = tuple(_best_row(one, points) for one in summary.many.best)
    return [Table(columns, rows, "Which arm may be the best", note)]


def _best_row(one: Best, points: bool) -> dict[str, Cell]:
    digits = 3 if one.question.startswith("time") else 4
    named = {"point": cell(one.point or "–")} if points else {}
    return {
        "question": Cell(one.question),
        "winner": Cell(one.winner, code=True),
        "value": cell(fixed(one.value, digits), one.value),
        "shrunk": cell(fixed(one.shrunk, digits), one.shrunk),
        "luck": cell(fixed(one.luck, digits), one.luck),
        "tied": Cell(f"{len(one.tied) - 1} of {one.arms}", len(one.tied) - 1),
        "sentence": Cell(one.sentence),
        **named,
    }


def _arms(summary: Summary) -> list[Block]:
    by_label = {one.arm: one for one in summary.many.arms}
    rows = [by_label[arm.label] for arm in ranked(summary) if arm.label in by_label]
    if not any(one.improvement.n for one in rows):
        return []
    named = any(one.p_confirmatory is not None for one in rows)
    ci = unique([level(one.simultaneous) for one in rows])
    columns = (
        Column("arm", "arm"),
        Column("simultaneous", "speedup, all at once", f"×, {ci} interval", "right"),
        Column("p", "adjusted p", "", "right"),
        *([Column("confirmatory", "Holm, confirmatory", "", "right")] if named else []),
        Column("improvement", "faster", f"share of blocks, {ci} interval", "right"),
        Column("sooner", "sooner at target", "probability", "right", minor=True),
        Column("not_worse", "not worse", "p", "right", minor=True),
        Column("equal", "equal", "p", "right", minor=True),
    )
    how = HOW.get(summary.many.family, "Fewer than two arms have pairs, so nothing is adjusted")
    out = f" The {len(rows) - MOST_ROWS:,} slowest arms are in the JSON alone." if len(rows) > MOST_ROWS else ""
    caption = "Each arm as one of many"
    shown = tuple(_arm_row(one, named) for one in rows[:MOST_ROWS])
    return [Table(columns, shown, caption, f"{how}. {NOTE}{out}", folded=True)]


def _arm_row(one: Comparison, named: bool) -> dict[str, Cell]:
    confirmatory = {"confirmatory": small(one.p_confirmatory)} if named else {}
    return {
        "arm": Cell(one.arm, code=True),
        "simultaneous": ratio_cell(one.simultaneous),
        "p": small(one.p),
        "improvement": cell(interval(one.improvement, 2), one.improvement.value),
        "sooner": cell(fixed(one.sooner, 2), one.sooner),
        "not_worse": small(one.p_not_worse),
        "equal": small(one.p_equal),
        **confirmatory,
    }
