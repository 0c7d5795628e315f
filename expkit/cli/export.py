"""`expkit export`: all that is known of each replicate as one wide table."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from expkit.cli.completion import sweeps
from expkit.cli.options import RUNS, Json, ReadDir, give, say


class What(StrEnum):
    """What is exported."""

    RUNS = "runs"


class Form(StrEnum):
    """As what."""

    CSV = "csv"
    PARQUET = "parquet"


def export(
    what: Annotated[What, typer.Argument(help="runs: a row a replicate.")],
    sweep: Annotated[
        str | None, typer.Argument(help="Those of one sweep; all where none is named.", autocompletion=sweeps)
    ] = None,
    to: Annotated[
        Form | None, typer.Option("--to", help="csv where neither this nor the suffix of --output says it.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here; else to standard output.")
    ] = None,
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """Export trials as one table: columns of the view, every key of the recipes, each metric's last, least and most.

    Example: expkit export runs ablate --to parquet -o ablate.parquet
    """
    from expkit.errors import UsageError
    from expkit.store import answers
    from expkit.store.atomic import write_bytes
    from expkit.store.export import runs, written
    from expkit.store.find import find_sweep
    from expkit.store.query import connect

    if output is not None and output.is_dir():
        raise UsageError(f"{output} is a folder; -o names a file, such as {output / 'runs.csv'}")
    form = to or (Form.PARQUET if output is not None and output.suffix == ".parquet" else Form.CSV)
    if output is None and form is Form.PARQUET and not as_json and sys.stdout.isatty():
        raise UsageError("parquet is no text for a terminal; name a file with -o, or pipe it")
    with connect(runs_dir) as con:
        table = runs(con, find_sweep(con.store, sweep) if sweep is not None else None)
        for unreadable in con.set_aside:
            say(f"set aside: {unreadable}")
    if not len(table):
        say(f"there are no trials in {runs_dir} yet")
    if as_json:
        give(answers.as_json(table))
    elif output is not None:
        write_bytes(output, written(table, form.value))
        say(f"{len(table)} rows, {table.num_columns} columns: {output}")
    else:
        sys.stdout.buffer.write(written(table, form.value))
        sys.stdout.buffer.flush()
