"""expkit query: ask the store in SQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expkit.cli.formats import BINARY, Format, format_of, whole_file, write
from expkit.cli.options import RUNS, Json, MemoryLimit, ReadDir, Threads, TimeLimit, give, limits, say

if TYPE_CHECKING:
    import pyarrow as pa

    from expkit.store.query import Connection


def query(
    sql: Annotated[
        str | None, typer.Argument(metavar="[SQL|FILE.sql|-]", help="One SELECT, a file with one, or - for stdin.")
    ] = None,
    *,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=VALUE",
            help="Value of $NAME: a number where it reads as one, else text; NAME='\"17\"' is text. Repeatable.",
        ),
    ] = None,
    format: Annotated[
        Format | None, typer.Option("--format", "-f", help="How the answer is written; table where nothing says it.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here; its suffix gives the format.")
    ] = None,
    json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Show all views and macros, each with an example.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="First look at every byte of the metrics; what was changed is left out.")
    ] = False,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    threads: Threads = None,
    runs_dir: ReadDir = RUNS,
) -> None:
    """Ask every metric of every trial in SQL; nothing can be changed or read but the results.

    Example: expkit query "SELECT label, avg(train_s) FROM trials GROUP BY label ORDER BY 2"
    """
    asked = format or ("json" if json else None) or (format_of(output) if output is not None else "table")
    if schema:
        _show_schema(asked)
        return
    from expkit.cli.params import parameters
    from expkit.store.query import connect

    text, values = _text(sql), parameters(param or [])
    if output is None and asked in BINARY and sys.stdout.isatty():
        from expkit.errors import UsageError

        raise UsageError(f"{asked} is no text for a terminal; name a file with -o, or pipe it")
    with connect(runs_dir, limits(time_limit, memory_limit, threads), thorough=verify) as connection:
        try:
            rows = _answer(connection, text, values, asked, output)
        finally:
            for unreadable in connection.set_aside:
                say(f"set aside: {unreadable}")
    if not runs_dir.exists():
        say(_nothing_in(runs_dir))  # whatever was counted
    elif not rows:
        say("no rows")


def _text(sql: str | None) -> str:
    from expkit.errors import UsageError

    if sql is not None and sql.endswith(".sql") and len(sql.split()) == 1:
        try:
            return Path(sql).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError(f"{sql} is no UTF-8 text") from None
        except FileNotFoundError:
            raise UsageError(f"there is no file {sql}") from None
    if sql == "-" or (sql is None and not sys.stdin.isatty()):
        sql = sys.stdin.read()
    if not (sql or "").strip():
        raise UsageError("there is nothing to ask; give a SELECT, or --schema to see what there is")
    return sql or ""


def _answer(connection: Connection, sql: str, values: dict[str, Any], format: Format, output: Path | None) -> int:
    """Writes it, and says how many rows it had."""
    if output is not None:
        stream = output.suffix == ".arrows"

        def into_file(rows: pa.RecordBatchReader) -> int:
            with whole_file(output) as out:
                return write(rows, format, out, stream=stream)

        return connection.stream(sql, values, into_file)
    if format == "table" and sys.stdout.isatty():
        from expkit.cli.pretty import print_pretty

        table = connection.table(sql, values)
        print_pretty(table)
        return int(table.num_rows)
    return connection.stream(sql, values, lambda rows: write(rows, format, sys.stdout.buffer))


def _nothing_in(runs_dir: Path) -> str:
    return f"there are no results in {runs_dir} yet; --runs-dir names another folder"


def _show_schema(format: Format) -> None:
    from expkit.errors import UsageError
    from expkit.store import schema

    if format == "json":
        give([each.to_json() for each in schema.described()])
    elif format == "markdown":
        print(schema.as_markdown(schema.described()), end="")
    elif format == "table":
        print(schema.as_text(schema.described()))
    else:
        raise UsageError(f"--schema is shown as table, markdown or json, but got {format}")
