"""The same speedups by other estimators."""

from __future__ import annotations

from dataclasses import replace

from expkit.analysis.model import Interval
from expkit.report.blocks import Table, Text
from expkit.sections.checks import Checks
from tests.report.example_summary import example


def test_a_row_per_arm_with_rho_and_a_note_on_the_pooled_error() -> None:
    table, note = Checks().blocks(example())
    assert isinstance(table, Table) and isinstance(note, Text)
    assert table.folded
    assert len(table.rows) == 7
    assert table.rows[0]["rho"].text == "+0.62"
    assert note.text.startswith("One error is pooled")


def test_what_parts_the_estimators_stands_above_and_an_unbounded_set_is_said() -> None:
    base = example()
    unbounded = Interval(1.2, None, None, 2, 0.95, "Fieller, unbounded")
    odd = replace(base.arms[1].checks, sentence="The interval excludes 1; it does not.", ratio_of_means=unbounded)
    arms = (base.arms[0], replace(base.arms[1], checks=odd), *base.arms[2:])
    text, table, _ = Checks().blocks(replace(base, arms=arms))
    assert isinstance(text, Text) and isinstance(table, Table)
    assert text.text == "ema: The interval excludes 1; it does not."
    assert {row["arm"].text: row["means"].text for row in table.rows}["ema"] == "1.200 (unbounded)"
