"""expkit query: ask the store in SQL."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from expkit.cli.options import RUNS, Json, ReadDir, give, say

if TYPE_CHECKING:
    import pyarrow as pa

    from expkit.store.query import Connection

Format = Literal["table", "csv", "json"]


def query(
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="One SELECT; - reads it from stdin.")] = None,
    *,
    format: Annotated[Format, typer.Option("--format", "-f", help="How the answer is printed.")] = "table",
    json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Show all views and macros, each with an example.")] = False,
    runs_dir: ReadDir = RUNS,
) -> None:
    """Ask every metric of every trial in SQL; nothing can be changed or read but the results.

    Example: expkit query "SELECT label, avg(train_s) FROM trials GROUP BY label ORDER BY 2"
    """
    if json:
        format = "json"
    if schema:
        _show_schema(format)
        return
    from expkit.errors import UsageError
    from expkit.store.query import connect

    text = sys.stdin.read() if sql == "-" else sql
    if text is None:
        raise UsageError("there is nothing to ask; give a SELECT, or --schema to see what there is")
    with connect(runs_dir) as connection:
        try:
            _print(connection.table(text), format)
        finally:
            _say_set_aside(connection)
    if not runs_dir.exists():
        say(f"there are no results in {runs_dir} yet; --runs-dir names another folder")


def _print(table: pa.Table, format: Format) -> None:
    from expkit.store import answers

    if format == "json":
        give(answers.as_json(table))
    elif format == "csv":
        print(answers.as_csv(table))
    elif sys.stdout.isatty():
        _print_pretty(table)
    else:
        print(answers.as_text(table))


def _print_pretty(table: pa.Table) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from expkit.store import answers

    pretty = Table()
    for field in table.schema:
        pretty.add_column(Text(field.name), justify="right" if answers.numeric(field.type) else "left", overflow="fold")
    for row in answers.cells(table):
        pretty.add_row(*(Text(cell, style="dim" if cell == answers.NULL else "") for cell in row))
    Console().print(pretty)


def _say_set_aside(connection: Connection) -> None:
    for unreadable in connection.set_aside:
        say(f"set aside: {unreadable}")


def _show_schema(format: Format) -> None:
    from expkit.store.views import VIEWS

    if format == "json":
        give([{"name": v.signature, "columns": v.columns, "doc": v.doc, "example": v.example} for v in VIEWS])
        return
    for view in VIEWS:
        print(f"{view.signature}\n  {view.doc}\n  columns: {', '.join(view.columns)}\n  example: {view.example}\n")
