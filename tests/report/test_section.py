"""Sections are found by name, stand in order, and leave no heading where they have nothing to say."""

from __future__ import annotations

from dataclasses import replace

from expkit.plugins import build, names
from expkit.report.blocks import ABSENT, Cell, Column, Table
from expkit.report.section import Section, make_page
from tests.report.example_summary import empty, example


def test_page_has_all_sections_in_order() -> None:
    assert [part.name for part in make_page(example()).parts] == [
        "verdict",
        "trust",
        "arms",
        "confirmation",
        "checks",
        "effects",
        "comparisons",
        "tradeoff",
        "equal_quality",
        "curves",
        "target",
        "timing",
        "sensitivity",
        "failures",
        "provenance",
        "trials",
    ]


def test_every_section_is_one_and_has_its_own_place() -> None:
    sections = [build("sections", name, {}) for name in names("sections")]
    assert all(isinstance(s, Section) and s.title for s in sections)
    assert len({s.order for s in sections if isinstance(s, Section)}) == len(sections)


def test_a_section_without_blocks_leaves_no_heading() -> None:
    assert "trust" not in [part.name for part in make_page(empty()).parts]


def test_subtitle_counts_and_says_that_a_sweep_runs() -> None:
    running = replace(example(), running=True, states={"complete": 3, "running": 1, "pending": 41})
    assert (
        make_page(running).subtitle
        == "8 arms · 3 of 45 replicates complete · still running · made 2026-07-01 12:00:00 UTC"
    )


def test_a_cell_that_a_row_lacks_is_a_dash() -> None:
    table = Table((Column("a", "a"), Column("b", "b", "s")), ({"a": Cell("x")},))
    assert [table.cell(table.rows[0], c) for c in table.columns] == [Cell("x"), ABSENT]
    assert table.columns[1].header == "b [s]"
