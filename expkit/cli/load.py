"""`expkit load`: open a bundle, and add it to a runs folder where that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expkit.cli.options import Json, give, say

if TYPE_CHECKING:
    from expkit.store.unpack import Bundle


def load(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A zip of expkit report SWEEP --bundle.")],
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Add its sweep and trials to this runs folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Open a bundle: check every byte, say what is in it. Every command that reads takes it as --runs-dir.

    Example: expkit load ablate.zip --into runs
    """
    from expkit.report.clean import clean
    from expkit.store.store import Store
    from expkit.store.unpack import add, unpacked

    opened = unpacked(bundle)
    kept = add(opened, Store(into)) if into is not None else []
    counts = _counts(opened)
    if as_json:
        give(
            {
                "sweep": opened.sweep,
                "made_utc": opened.made_utc,
                "expkit": opened.expkit,
                "files": opened.num_files,
                "replicates": counts,
                "report": str(opened.page),
                "runs": str(into or opened.runs),
                "kept": kept,
            }
        )
        return  # fmt: skip
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    print(f"{opened.sweep}: {sum(counts.values())} replicates: {states or 'none'}")
    made = clean(f"made {opened.made_utc} by expkit {opened.expkit}")
    print(f"{made}; {opened.num_files} files, each as it was packed")
    print(f"report: {opened.page}")
    if kept:
        say(f"{into} keeps its own results of {', '.join(kept)}, which the bundle has otherwise")
    say(f"next: expkit list trials {opened.sweep} --runs-dir {into or bundle}")


def _counts(bundle: Bundle) -> dict[str, Any]:
    from expkit.store.listing import replicates_of
    from expkit.store.query import connect

    with connect(bundle.runs) as con:
        sql, params = replicates_of(bundle.sweep)
        rows = con.rows(f"SELECT status, count(*) AS n FROM ({sql}) GROUP BY ALL ORDER BY ALL", params)  # noqa: S608
        for unreadable in con.set_aside:
            say(f"set aside: {unreadable}")
    return {row["status"]: row["n"] for row in rows}
