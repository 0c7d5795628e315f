"""The report as plain text for pipes and files: aligned columns, no colour, no boxes, lines as long as they need."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from expkit.report.blocks import Block, Chart, Code, Page, Table, Text, Verdicts


def to_plain(page: Page) -> str:
    """Tables that start closed on the page are named and left out; the files beside have them."""
    lines = [page.title, page.subtitle]
    for part in page.parts:
        lines += ["", part.title.upper()]
        for block in part.blocks:
            lines += _block(block)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def left_out(block: Table | Code) -> str:
    """What stands in place of something folded."""
    what = block.caption or ("Table" if isinstance(block, Table) else "Text")
    return f"{what}: in report.md and index.html"


def chart_line(chart: Chart) -> str:
    """What stands in place of a chart; its numbers are in the tables."""
    return f"Chart in index.html: {chart.title}"


def width_of(text: str) -> int:
    """Columns of a terminal: wide and composed characters counted as terminals show them."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Verdicts):
        yield from (f"  {line}" for line in (*block.lines, *block.notes))
    elif isinstance(block, Text):
        yield block.text
    elif isinstance(block, Table | Code) and block.folded:
        yield left_out(block)
    elif isinstance(block, Code):
        yield from [block.caption, *(f"    {line}" for line in block.text.splitlines())]
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Chart):
        yield chart_line(block)


def _table(table: Table) -> Iterator[str]:
    if table.caption:
        yield table.caption
    grid = [
        [c.header for c in table.columns],
        *([table.cell(row, c).text for c in table.columns] for row in table.rows),
    ]
    widths = [max(map(width_of, column)) for column in zip(*grid, strict=True)]
    for row in grid:
        cells = [
            _pad(text, w, c.align == "right") for text, w, c in zip(row, widths, table.columns, strict=True)
        ]  # fmt: skip
        yield "  " + "  ".join(cells)
    if table.note:
        yield table.note


def _pad(text: str, width: int, right: bool) -> str:
    room = " " * (width - width_of(text))
    return room + text if right else text + room
