"""The same speedups by other estimators: what they say, what pairing was worth, whether the error was pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Arm, Interval, Summary
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.numbers import cell, fixed, level, ratio_cell, unique
from expkit.report.ranking import ranked
from expkit.report.section import Section


@dataclass(frozen=True)
class Checks(Section):
    """A folded table; an arm on whose estimators the conclusion hangs is named above it."""

    title: ClassVar[str] = "The same speedups by other estimators"
    order: ClassVar[int] = 35

    def blocks(self, summary: Summary) -> Sequence[Block]:
        arms = [arm for arm in ranked(summary) if arm.checks.ratio_of_means.value is not None]
        if not arms:
            return [Text("No arm has a pair of times yet that could be looked at in other ways.")]
        parted = [Text(f"{arm.label}: {arm.checks.sentence}") for arm in arms if arm.checks.sentence]
        pooling = [Text(summary.pooling.sentence, note=True)] if summary.pooling.sentence else []
        return [*parted, _table(summary, arms), *pooling]


def _table(summary: Summary, arms: list[Arm]) -> Table:
    ci = unique([level(arm.checks.ratio_of_means) for arm in arms])
    columns = (
        Column("arm", "arm"),
        Column("n", "n", "pairs", "right"),
        Column("paired", "paired, log-time", f"×, {ci} interval", "right"),
        Column("means", "ratio of means", f"×, {ci} Fieller", "right"),
        Column("hl", "Hodges-Lehmann", f"×, {ci} exact", "right"),
        Column("medians", "ratio of medians", "×", "right", minor=True),
        Column("welch", "unpaired", f"×, {ci} Welch", "right", minor=True),
        Column("p", "p of t", "", "right"),
        Column("flips", "p of sign flips", "", "right"),
        Column("rho", "rho", "", "right"),
    )
    note = (
        f"On {summary.clock}, baseline / arm. Paired: exp of the mean log ratio. Means: total bill against total bill. "
        "Hodges-Lehmann: median of the averages of two log ratios, interval from 6 pairs on. Medians: a bootstrap "
        "interval from 20 pairs on. n pairs give no p of sign flips below 2 / 2^n. rho: correlation of log times "
        "over pairs; pairing is worth 1 / (1 − rho) times the seeds."
    )
    return Table(columns, tuple(_row(arm) for arm in arms), "By other estimators", note, folded=True)


def _row(arm: Arm) -> dict[str, Cell]:
    same = arm.checks
    return {
        "arm": Cell(arm.label, code=True),
        "n": Cell(str(arm.pairs), arm.pairs),
        "paired": ratio_cell(arm.speedup),
        "means": _fieller(same.ratio_of_means),
        "hl": ratio_cell(same.hodges_lehmann),
        "medians": ratio_cell(same.ratio_of_medians),
        "welch": ratio_cell(same.unpaired),
        "p": cell(fixed(same.p, 4), same.p),
        "flips": cell(fixed(same.p_sign_flip, 4), same.p_sign_flip),
        "rho": cell(fixed(same.rho, 2, signed=True), same.rho),
    }


def _fieller(ratio: Interval) -> Cell:
    """Its set may be all numbers; that is an answer, and no missing interval."""
    if "unbounded" in ratio.method:
        return Cell(f"{fixed(ratio.value, 3)} (unbounded)", ratio.value, "warn")
    return ratio_cell(ratio)
