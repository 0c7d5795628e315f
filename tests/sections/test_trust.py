"""The trust panel."""

from __future__ import annotations

from expkit.report.blocks import Table
from expkit.sections.trust import Trust
from tests.report.example_summary import empty, example


def test_worst_first_with_word_and_sign() -> None:
    [table] = Trust().blocks(example())
    assert isinstance(table, Table)
    assert table.caption == "1 red, 3 amber, 4 green"
    assert [row["light"].text for row in table.rows] == ["✕ red", *["! amber"] * 3, *["✓ green"] * 4]


def test_the_panel_has_no_column_of_numbers_without_a_unit() -> None:
    [table] = Trust().blocks(example())
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == ["light", "guard", "what it found"]


def test_no_guards_no_panel() -> None:
    assert list(Trust().blocks(empty())) == []
