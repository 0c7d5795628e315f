"""Provenance."""

from __future__ import annotations

from expkit.report.blocks import Code, Table
from expkit.sections.provenance import Provenance, flat
from tests.report.example_summary import example


def test_settings_collected_values_and_a_query_per_kind_of_number() -> None:
    table, *queries = Provenance().blocks(example())
    assert isinstance(table, Table)
    rows = {row["key"].text: row["value"].text for row in table.rows}
    assert rows["target"] == "0.8412 (lowest_final)"
    assert rows["code.dirty"] == "no"
    assert rows["correlation over seeds, train_s"] == "0.620"
    assert [q.caption for q in queries if isinstance(q, Code)] == ["expkit query: speedups", "expkit query: fastest"]


def test_nested_values_are_flat_and_nothing_is_a_dash() -> None:
    values = {"a": {"b": 1, "c": [1, {"d": None}]}, "e": None, "f": True, "g": float("nan"), "h": []}
    assert dict(flat(values)) == {"a.b": "1", "a.c": "1, d: –", "e": "–", "f": "yes", "g": "–", "h": "–"}
