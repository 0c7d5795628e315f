"""An answer in a terminal: a table with lines, long values folded, NULL dimmed; texts are never obeyed as markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def print_pretty(table: pa.Table) -> None:
    """Print all rows of it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from expkit.store import answers

    pretty = Table()
    for field in table.schema:
        pretty.add_column(
            Text(answers.shown(field.name)), justify="right" if answers.numeric(field.type) else "left", overflow="fold"
        )
    for row in answers.cells(table):
        pretty.add_row(*(Text(cell, style="dim" if cell == answers.NULL else "") for cell in row))
    Console().print(pretty)
