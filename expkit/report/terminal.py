"""The report on a terminal: rich tables in its width; plain text where the output is no terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from expkit.report.blocks import ABSENT, Block, Cell, Chart, Code, Column, Page, Table, Text, Tone, Verdicts
from expkit.report.plain import chart_line, is_folded, left_out, to_plain, together, width_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

STYLES: dict[Tone, str] = {"": "", "good": "green", "bad": "red", "warn": "yellow", "quiet": "dim"}
FOLD = 24


def to_terminal(page: Page, console: Console) -> None:
    """Print the page; where a table is too wide, columns marked minor go first, then rows become paragraphs."""
    if not console.is_terminal:
        console.file.write(to_plain(page))
        return
    _line(console, page.title, "bold")
    _line(console, page.subtitle, "dim")
    for part in page.parts:
        console.print()
        _line(console, part.title, "bold underline")
        for blocks in together(part.blocks):
            if is_folded(blocks[0]):
                _line(console, left_out(blocks), "dim")
            else:
                _block(console, blocks[0])


def _block(console: Console, block: Block) -> None:
    if isinstance(block, Verdicts):
        _verdicts(console, block)
    elif isinstance(block, Text):
        _line(console, block.text)
    elif isinstance(block, Code):
        _line(console, block.caption, "dim")
        _line(console, block.text)
    elif isinstance(block, Table):
        _table(console, block)
    elif isinstance(block, Chart):
        _line(console, chart_line(block), "dim")


def _line(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text as RichText

    console.print(RichText(text, style))  # a Text has no markup: brackets in names stay brackets


def _verdicts(console: Console, block: Verdicts) -> None:
    from rich.panel import Panel
    from rich.text import Text as RichText

    first, *others = (*block.lines, "")
    lines = [RichText(first, "bold"), *(RichText(line) for line in others if line)]
    lines += [RichText(note, "dim") for note in block.notes]
    console.print(Panel(RichText("\n").join(lines), border_style="cyan", width=min(console.width, 110)))


def _table(console: Console, table: Table) -> None:
    columns = list(table.columns)
    while _needs(table, columns) > console.width and any(c.minor for c in columns):
        columns.remove(next(c for c in reversed(columns) if c.minor))
    if _needs(table, columns) > console.width:
        _records(console, table)
    else:
        console.print(_rich(table, columns))
        hidden = [c.title for c in table.columns if c not in columns]
        if hidden:
            _line(console, f"Left out for want of width: {', '.join(hidden)}.", "dim")
    if table.note:
        _line(console, table.note, "dim")


def _records(console: Console, table: Table) -> None:
    """Where even the columns that matter do not fit: a paragraph a row, nothing left out."""
    from rich.padding import Padding
    from rich.text import Text as RichText

    if table.caption:
        _line(console, table.caption, "bold")
    for row in table.rows:
        first, *others = table.columns
        shown = [(c, table.cell(row, c)) for c in others if table.cell(row, c) != ABSENT]
        parts = [RichText(f"{c.title} ") + RichText(cell.text, _style(cell)) for c, cell in shown]
        _line(console, table.cell(row, first).text, "bold")
        console.print(Padding(RichText("; ").join(parts), (0, 0, 0, 4)))


def _needs(table: Table, columns: list[Column]) -> int:
    return sum(_width(table, c) + 3 for c in columns) + 1


def _width(table: Table, column: Column) -> int:
    """What a column cannot do without: numbers are never folded, names and sentences may be, down to FOLD."""
    title = max(width_of(column.title), width_of(column.unit))
    cells = max((width_of(table.cell(row, column).text) for row in table.rows), default=0)
    return max(title, cells if column.align == "right" else min(cells, FOLD))


def _rich(table: Table, columns: list[Column]) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    if table.caption:
        made.title, made.title_justify, made.title_style = RichText(table.caption), "left", "bold"
    for c in columns:
        header = RichText(c.title, "bold") + RichText(f"\n{c.unit}" if c.unit else "", "dim")
        made.add_column(
            header, justify=c.align, no_wrap=c.align == "right", overflow="fold", min_width=_width(table, c)
        )
    for row in table.rows:
        cells = [table.cell(row, c) for c in columns]
        made.add_row(*(RichText(_folded(cell.text) if cell.code else cell.text, _style(cell)) for cell in cells))
    return made


def _folded(name: str) -> str:
    """A long name broken after its pluses, so that methods stay whole."""
    lines = [""]
    for piece in re.findall(r"[^+]*\+|[^+]+", name):
        if lines[-1] and width_of(lines[-1] + piece) > FOLD:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def _style(cell: Cell) -> str:
    return " ".join(filter(None, [STYLES[cell.tone], "bold" if cell.strong else ""]))
