"""What this sweep could have shown, what more would take, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.comparisons import Tuning
from expkit.analysis.model import Summary
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.numbers import cell, count, fixed, metric_name
from expkit.report.section import Section

NONE = "Nothing is known of the noise of one run yet: no arm has two pairs with its baseline."
SHOWN = (1, 2, 3, 5, 10, 20, 50)


@dataclass(frozen=True)
class Sensitivity(Section):
    """Smallest speedups that show, seeds for smaller ones, warm-up, tuning at equal budget, the bill."""

    title: ClassVar[str] = "What this sweep could show, and its cost"
    order: ClassVar[int] = 85

    def blocks(self, summary: Summary) -> Sequence[Block]:
        steady = summary.many.steadiness
        said = [steady.sentence] if steady is not None else []
        return [*_seeds(summary), *map(Text, said), *_tuning(summary), *_cost(summary)] or [Text(NONE)]


def _seeds(summary: Summary) -> list[Block]:
    found = summary.many.sensitivity
    if not found.seeds:
        return [Text(NONE)] if summary.arms else []
    columns = (Column("speedup", "to show a speedup of", "×", "right"), Column("seeds", "seeds per arm", "", "right"))
    rows = tuple(
        {"speedup": Cell(f"{s:.2f}", s), "seeds": Cell("more than a million" if k is None else f"{k:,}", k)}
        for s, k in found.seeds
    )
    note = (
        f"Two-sided at {100 * found.alpha:g} %, power {100 * found.power:g} %, with the noise of this sweep. A "
        f"probability of improvement of 0.75 takes {found.blocks_of_improvement} blocks (Noether)."
    )
    return [Text(found.sentence), Table(columns, rows, "Seeds that smaller effects would take", note)]


def _tuning(summary: Summary) -> list[Block]:
    found = summary.many.tuning
    if not found:
        return []
    numbers = [n for n in SHOWN if n <= max(one.configurations for one in found)]
    columns = (
        Column("arm", "methods"),
        Column("tried", "configurations", "", "right"),
        *(Column(f"n{n}", f"best of {n}", "", "right") for n in numbers),
    )
    rows = tuple(_tuning_row(one, numbers) for one in found)
    note = f"Expected best {metric_name(summary)} of n configurations; only equal n may be compared."
    return [Table(columns, rows, "What tuning alone gives", note, folded=True)]


def _tuning_row(one: Tuning, numbers: Sequence[int]) -> dict[str, Cell]:
    known = {n: one.expected[n - 1] for n in numbers if n <= one.configurations}
    return {
        "arm": Cell(one.arm, code=True),
        "tried": Cell(str(one.configurations), one.configurations),
        **{f"n{n}": cell(fixed(known.get(n), 4), known.get(n)) for n in numbers},
    }


def _cost(summary: Summary) -> list[Block]:
    found = summary.many.cost
    if not found.sentence:
        return []
    if not found.per_run:
        return [Text(found.sentence)]
    columns = (Column("arm", "arm"), Column("price", "price of one run", "", "right"))
    rows = tuple({"arm": Cell(arm, code=True), "price": Cell(fixed(price, 4), price)} for arm, price in found.per_run)
    caption = f"What {count(len(rows), 'arm')} cost to run once"
    return [Text(found.sentence), Table(columns, rows, caption, "At the rates of the sweep file.", folded=True)]
