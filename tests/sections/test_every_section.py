"""What holds for each section alike: it survives any sweep, says rather than shows nothing, and uses no HTML."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from expkit.analysis.model import Interval, Summary
from expkit.plugins import build, names
from expkit.report.blocks import Block, Cell, Chart, Code, Table, Text, Verdicts
from expkit.report.section import Section
from tests.report.example_summary import all_failed, empty, example, hostile, many


def one_seed() -> Summary:
    """Values without ends, as n = 1 gives."""
    base = example()
    arms = tuple(
        replace(
            a,
            pairs=0 if a.baseline else 1,
            speedup=Interval(a.speedup.value, None, None, 1),
            quality_difference=Interval(a.quality_difference.value, None, None, 1, 0.9),
            quality=Interval(a.quality.value, None, None, 1),
        )
        for a in base.arms
    )
    curves = tuple(replace(c, lo=(None,) * len(c.mean), hi=(None,) * len(c.mean)) for c in base.curves)
    return replace(base, arms=arms, curves=curves, noise=())


def running() -> Summary:
    return replace(example(), running=True, states={"complete": 20, "running": 1, "pending": 24})


SUMMARIES = [example, empty, all_failed, hostile, one_seed, running, lambda: many(7)]


def texts(blocks: list[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Text | Code):
            yield block.text
        elif isinstance(block, Verdicts):
            yield from (*block.lines, *block.notes)
        else:
            table = block.table if isinstance(block, Chart) else block
            yield from (c.header for c in table.columns)
            yield from (cell.text for row in table.rows for cell in row.values())
            yield from (table.caption, table.note)
            yield from (block.title, block.alt, block.caption) if isinstance(block, Chart) else ()


def section(name: str) -> Section:
    found = build("sections", name, {})
    assert isinstance(found, Section)
    return found


@pytest.mark.parametrize("name", names("sections"))
@pytest.mark.parametrize("make", SUMMARIES)
def test_any_sweep_gives_blocks_without_nan_or_none(name: str, make: Callable[[], Summary]) -> None:
    said = list(texts(list(section(name).blocks(make()))))
    assert not [text for text in said if re.search(r"\b(nan|NaN|None|null)\b", text)]


@pytest.mark.parametrize("name", names("sections"))
def test_tables_hold_only_cells_of_their_columns_and_finite_values(name: str) -> None:
    for make in SUMMARIES:
        for block in section(name).blocks(make()):
            for table in [block] if isinstance(block, Table) else [block.table] if isinstance(block, Chart) else []:
                keys = {c.key for c in table.columns}
                assert len(keys) == len(table.columns)
                for row in table.rows:
                    assert set(row) <= keys
                    assert all(
                        isinstance(c, Cell) and (c.value is None or math.isfinite(c.value)) for c in row.values()
                    )


@pytest.mark.parametrize("name", names("sections"))
def test_numbers_stand_right_aligned(name: str) -> None:
    for block in section(name).blocks(example()):
        for column in block.columns if isinstance(block, Table) else ():
            cells = [block.cell(row, column) for row in block.rows]
            if cells and all(c.value is not None for c in cells):
                assert column.align == "right", column.title


@pytest.mark.parametrize("name", [n for n in names("sections") if n != "trust"])
def test_no_sweep_leaves_a_section_empty(name: str) -> None:
    for make in (empty, all_failed):
        assert section(name).blocks(make())
