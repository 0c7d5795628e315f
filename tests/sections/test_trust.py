"""The trust panel."""

from __future__ import annotations

from expkit.report.blocks import Table
from expkit.sections.trust import Trust
from tests.report.example_summary import empty, example


def test_worst_first_with_word_sign_and_number() -> None:
    [table] = Trust().blocks(example())
    assert isinstance(table, Table)
    assert table.caption == "1 red, 3 amber, 4 green"
    assert [row["light"].text for row in table.rows] == ["✕ red", *["! amber"] * 3, *["✓ green"] * 4]
    assert (table.rows[0]["number"].text, table.rows[4]["number"].text) == ("1", "–")


def test_no_guards_no_panel() -> None:
    assert list(Trust().blocks(empty())) == []
