"""`expkit list`: which plug-ins there are, which numbers a report has; which trials, chosen, sorted, any columns."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.completion import kinds, sweeps
from expkit.cli.options import RUNS, Json, ReadDir, give, say

if TYPE_CHECKING:
    import pyarrow as pa

    from expkit.store.listing import Asked

ALSO = {"methods": "algorithms", "data": "datasets", "nets": "models", "runs": "trials"}
"""Other words for a kind."""
_COLUMNS = "A column of the views, a key of the recipe (optimizer.sgd.lr, or just lr), a metric (its last value)"


def list(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="trials; or plug-ins: algorithms, models, ...; or statistics, guards; all plug-ins if left out.",
            autocompletion=kinds,
        ),
    ] = None,
    sweep: Annotated[
        str | None, typer.Argument(help="Of trials: those of this sweep, planned ones too.", autocompletion=sweeps)
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Trials for which this holds: 'lr > 0.1 AND \"eval/accuracy\" > 0.8'."),
    ] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Order of trials; -train_s: the largest first.")
    ] = None,
    cols: Annotated[str | None, typer.Option(metavar="COLUMNS", help=f"{_COLUMNS}; with commas between.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Show what is not the same in all trials listed.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most so many trials.")] = None,
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """List trials, or plug-ins by name, each with its first sentence.

    Example: expkit list trials ablate --where "status = 'complete'" --sort -eval/accuracy --cols id,label,lr
    """
    from expkit.errors import UsageError
    from expkit.store.listing import Asked

    asked = Asked(sweep, where, _words(sort), _words(cols), changed, limit)
    if ALSO.get(kind or "", kind) == "trials":
        _list_trials(runs_dir, asked, as_json)
    elif kind in ("statistics", "guards") and asked == Asked():
        _list_statistics(kind, as_json)
    elif asked != Asked():
        raise UsageError("a sweep, --where, --sort, --cols, --changed and --limit are for trials: expkit list trials")
    else:
        _list_plugins(kind, as_json)


def _list_plugins(kind: str | None, as_json: bool) -> None:
    from expkit import plugins

    asked = [ALSO.get(kind, kind)] if kind else plugins.KINDS
    rows = [(k, name, plugins.summary(k, name)) for k in asked for name in plugins.names(k)]
    if as_json:
        give([{"kind": k, "name": name, "summary": text} for k, name, text in rows])
        return
    width = max((len(name) for _, name, _ in rows), default=0)
    for k, name, text in rows:
        print(f"{name:<{width}}  {text}" if kind else f"{k:<11} {name:<{width}}  {text}")


def _list_statistics(kind: str, as_json: bool) -> None:
    from expkit.analysis.glossary import find

    rows = [(find.typed_name(one.name), one.text.split(". ")[0].rstrip(".") + ".", one) for one in find.KINDS[kind]]
    if as_json:
        give([{"kind": kind, "name": name, "summary": text, "formula": one.formula} for name, text, one in rows])
        return
    width = max(len(name) for name, _, _ in rows)
    for name, text, _ in rows:
        print(f"{name:<{width}}  {text}")


def _list_trials(runs_dir: Path, asked: Asked, as_json: bool) -> None:
    from dataclasses import replace

    from expkit.store import answers
    from expkit.store.find import find_sweep
    from expkit.store.listing import listing
    from expkit.store.query import connect

    with connect(runs_dir) as con:
        if asked.sweep is not None:
            asked = replace(asked, sweep=find_sweep(con.store, asked.sweep))
        table = listing(con, asked)
        for unreadable in con.set_aside:
            say(f"set aside: {unreadable}")
    if as_json:
        give(answers.as_json(table))
    elif len(table):
        print(answers.as_text(_plain(table)))
    else:
        say(f"no trial in {runs_dir} fits" if runs_dir.exists() else f"there are no results in {runs_dir} yet")


def _plain(table: pa.Table) -> pa.Table:
    """Lists as words, and numbers to six digits; --json and expkit export have all of them."""
    import pyarrow as pa

    for i, column in enumerate(table.schema):
        values = table.column(i).to_pylist()
        if pa.types.is_list(column.type):
            table = table.set_column(i, column.name, pa.array([" ".join(map(str, v or ())) for v in values]))
        elif pa.types.is_floating(column.type):
            short = pa.array([None if v is None else float(f"{v:.6g}") for v in values], pa.float64())
            table = table.set_column(i, column.name, short)
    return table


def _words(text: str | None) -> tuple[str, ...]:
    """Words with commas between; one with a comma in it stands in double quotes."""
    if text is None:
        return ()
    return tuple(word.strip() for word in next(csv.reader([text], skipinitialspace=True), []) if word.strip())
