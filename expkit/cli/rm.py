"""`expkit rm`: take trials, replicates or a whole sweep out of the runs folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.completion import sweeps, trials
from expkit.cli.options import RUNS, Json, RunsDir, Yes, agreed, amount, give, say

if TYPE_CHECKING:
    from expkit.store.find import Found
    from expkit.store.store import Store


def rm(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID...", help="First digits of trials' ids, 3f2a/r1, last or last~1.", autocompletion=trials
        ),
    ] = None,
    sweep: Annotated[
        str | None, typer.Option(help="This sweep, and the trials that no other sweep uses.", autocompletion=sweeps)
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Replicates for which this holds, as expkit list trials --where.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also what is running, and what more than one sweep uses.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    yes: Yes = False,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Remove trials, replicates or a sweep, after asking. What is running, or used by several sweeps, stays.

    Example: expkit rm 3f2a 9c04/r1 --dry-run
    """
    from expkit.errors import UsageError
    from expkit.report.clean import clean
    from expkit.report.numbers import count
    from expkit.store.discard import discard
    from expkit.store.find import find_sweep
    from expkit.store.removal import check, of_sweep, removals, remove, take_rows_out
    from expkit.store.store import Store

    store = Store(runs_dir)
    if not ids and sweep is None and where is None:
        raise UsageError("nothing to remove; give ids of trials, --sweep NAME or --where CONDITION")
    name = find_sweep(store, sweep) if sweep is not None else None
    own, shared = of_sweep(store, name) if name is not None else ([], [])
    planned = removals(store, [*own, *_chosen(store, ids or [], where)])
    if shared:
        say(f"{count(len(shared), 'trial')} stay, for other sweeps use them: {', '.join(shared)}")
    if not force:
        check(planned)
    folder = [] if name is None else [store.layout.sweep(name)]
    told = [clean(f"{each}  ({', '.join(each.sweeps) or 'no sweep'})") for each in planned]
    told += [f"sweep {name}" for _ in folder]
    if as_json:
        give([{**vars(each), "removed": not dry_run} for each in planned])
    elif told:
        print("\n".join(told))
    else:
        say(f"nothing in {runs_dir} fits")
    size = f"{count(len(planned), 'trial')}, {amount(sum(each.num_bytes for each in planned))}"
    if dry_run and told:
        say(f"would remove {size}")
    if dry_run or not told or not agreed(f"remove {size}", yes):
        return
    for each in planned:
        remove(store, each, force=force)
    for remark in take_rows_out(store):
        say(remark)
    for path in folder:  # last: until then the same command finishes what was interrupted
        discard(path)
    say(f"removed {size}")


def _chosen(store: Store, ids: list[str], where: str | None) -> list[Found]:
    from expkit.store.find import Found, find
    from expkit.store.listing import Asked, listing
    from expkit.store.query import connect

    chosen = [find(store, written) for written in ids]
    if where is not None:
        with connect(store.layout.root) as con:
            rows = listing(con, Asked(where=where, columns=("id", "replicate"))).to_pylist()
        chosen += [Found(row["id"], row["replicate"]) for row in rows]
    return chosen
