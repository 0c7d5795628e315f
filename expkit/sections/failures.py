"""Replicates without a result, and methods that did nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Failure, Summary
from expkit.report.blocks import Block, Cell, Code, Column, Table, Text
from expkit.report.numbers import cell, count
from expkit.report.section import Section

COLUMNS = (
    Column("arm", "arm"),
    Column("seed", "seed", align="right"),
    Column("replicate", "replicate"),
    Column("state", "state"),
    Column("cause", "cause"),
    Column("message", "message"),
    Column("log", "log", minor=True),
)
MOST = 20


@dataclass(frozen=True)
class Failures(Section):
    """A row a failed replicate with its cause; its last lines behind it; methods without effect."""

    title: ClassVar[str] = "Failures and methods without effect"
    order: ClassVar[int] = 90

    def blocks(self, summary: Summary) -> Sequence[Block]:
        return [*_failures(summary), *_without_effect(summary)]


def _failures(summary: Summary) -> list[Block]:
    if not summary.failures:
        return [Text("No replicate failed." if summary.trials else "No replicate has started.")]
    rows = tuple(map(_row, summary.failures))
    table = Table(
        COLUMNS, rows, f"{count(len(rows), 'replicate')} without a result", "Logs are relative to the runs folder."
    )
    tails = [
        Code(f.message, "text", f"{f.arm}, {f.id} r{f.replicate}: last lines", folded=True)
        for f in summary.failures[:MOST]
        if "\n" in f.message.strip()
    ]
    return [table, *tails]


def _row(failure: Failure) -> dict[str, Cell]:
    first = next((line for line in failure.message.splitlines() if line.strip()), "–")
    return {
        "arm": Cell(failure.arm, code=True),
        "seed": cell("–" if failure.seed is None else str(failure.seed)),
        "replicate": Cell(f"{failure.id} r{failure.replicate}", code=True),
        "state": Cell(failure.state, tone="bad"),
        "cause": cell(failure.cause or "–"),
        "message": cell(first),
        "log": Cell(failure.log, code=True) if failure.log else cell("–"),
    }


def _without_effect(summary: Summary) -> list[Block]:
    seen: dict[tuple[str, str], int] = {}
    for trial in summary.trials:
        for method, effective in trial.effective.items():
            if not effective and trial.state == "complete":
                seen[trial.arm, method] = seen.get((trial.arm, method), 0) + 1
    if not seen:
        return []
    columns = (
        Column("arm", "arm"),
        Column("method", "method"),
        Column("replicates", "replicates", "without effect", "right"),
    )
    rows = tuple(
        {"arm": Cell(arm, code=True), "method": Cell(method, code=True), "replicates": Cell(str(number), number)}
        for (arm, method), number in seen.items()
    )
    note = "An arm none of whose methods had an effect is a second baseline."
    return [Table(columns, rows, "Methods that found nothing to do", note)]
