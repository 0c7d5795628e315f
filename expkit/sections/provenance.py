"""Where the numbers come from: code, machine, target, settings, and the queries that give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from expkit.analysis.model import Summary
from expkit.report.blocks import Block, Cell, Code, Column, Table
from expkit.report.numbers import DASH, cell, metric_name, moment
from expkit.report.section import Section

COLUMNS = (Column("key", "what"), Column("value", "value"))


@dataclass(frozen=True)
class Provenance(Section):
    """The report's own settings, what was collected when it ran, one query per kind of number."""

    title: ClassVar[str] = "Provenance"
    order: ClassVar[int] = 100

    def blocks(self, summary: Summary) -> Sequence[Block]:
        rows = tuple(
            {"key": Cell(key), "value": cell(value)} for key, value in [*_settings(summary), *flat(summary.provenance)]
        )
        queries = [Code(sql, "sql", f"expkit query: {name}", folded=True) for name, sql in summary.sql.items()]
        return [Table(COLUMNS, rows, folded=len(rows) > 40), *queries]


def _settings(summary: Summary) -> Iterator[tuple[str, str]]:
    target = summary.target
    yield "sweep", summary.sweep
    yield "report made", moment(summary.generated_utc)
    yield "sweep begun", moment(summary.created_utc)
    yield "metric", f"{metric_name(summary)}, {summary.mode}"
    yield "clock", summary.clock
    yield "interval", f"{100 * summary.ci:g} %"
    yield "non-inferiority margin", f"{summary.delta:g}"
    exploratory = ", exploratory" if target.exploratory else ""
    yield "target", DASH if target.value is None else f"{target.value:.6g} ({target.rule}{exploratory})"
    if target.hash:
        yield "target hash", target.hash
    if target.seeds:
        yield "pilot seeds", ", ".join(map(str, target.seeds))
    yield from ((f"correlation over seeds, {key}", f"{value:.3f}") for key, value in summary.rho.items())


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested JSON values as dotted keys and text; nothing is shown as a dash, lists in one line."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{name}.")
        else:
            yield name, _text(value)


def _text(value: Any) -> str:
    if value is None or value in ("", [], ()) or value != value:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return ", ".join(f"{k}: {v}" for k, v in flat(value)) if isinstance(value, Mapping) else str(value)
