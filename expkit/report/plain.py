"""The report as plain text for pipes and files: aligned columns, no colour, no boxes, lines as long as they need."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from expkit.report.blocks import Block, Chart, Code, Page, Table, Text, Verdicts


def to_plain(page: Page) -> str:
    """Tables that start closed on the page are named and left out; the files beside have them."""
    lines = [page.title, page.subtitle]
    for part in page.parts:
        lines += ["", part.title.upper()]
        for blocks in together(part.blocks):
            lines += [left_out(blocks)] if is_folded(blocks[0]) else _block(blocks[0])
    return "\n".join(line.rstrip() for line in lines) + "\n"


def together(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """The blocks in order, one by one; folded ones that follow each other as one list."""
    for closed, group in itertools.groupby(blocks, is_folded):
        run = list(group)
        yield from [run] if closed else [[block] for block in run]


def is_folded(block: Block) -> bool:
    """Whether it starts closed on the page."""
    return isinstance(block, Table | Code) and block.folded


def left_out(blocks: Sequence[Block]) -> str:
    """The one sentence in place of what is folded; what all captions begin with, `expkit query:`, is said once."""
    names = [getattr(b, "caption", "") or ("Table" if isinstance(b, Table) else "Text") for b in blocks]
    shared = names[0].rpartition(": ")[0] + ": "
    if len(names) > 1 and all(name.startswith(shared) for name in names):
        names = [names[0], *(name.removeprefix(shared) for name in names[1:])]
    return f"{', '.join(names)}: in report.md and index.html"


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
