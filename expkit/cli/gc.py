"""`expkit gc`: remove what nobody will read, and on request what one may do without."""

from __future__ import annotations

from typing import Annotated

import typer

from expkit.cli.options import RUNS, Json, RunsDir, Yes, agreed, amount, give, say


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    unused: Annotated[
        bool,
        typer.Option("--unused", help="Also trials that no sweep uses, without tag or note; those of expkit run too."),
    ] = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Also checkpoints of replicates that have a result.")
    ] = False,
    yes: Yes = False,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Remove what interrupted removals and killed writers left behind. Results go only where they are asked for.

    Example: expkit gc --checkpoints --dry-run
    """
    from dataclasses import asdict

    from expkit.report.numbers import count
    from expkit.store.garbage import collect, garbage
    from expkit.store.removal import take_rows_out
    from expkit.store.store import Store

    store = Store(runs_dir)
    found = garbage(store, unused=unused, checkpoints=checkpoints)
    if as_json:
        give([{**asdict(each), "path": str(each.path), "removed": not dry_run} for each in found])
    else:
        for each in found:
            print(f"{amount(each.num_bytes):>9}  {each.path}: {each.why}")
    size = f"{count(len(found), 'item')}, {amount(sum(each.num_bytes for each in found))}"
    if not found:
        say(f"nothing to remove in {runs_dir}")
    elif dry_run:
        say(f"would remove {size}")
    elif not (unused or checkpoints) or agreed(f"remove {size}", yes):
        for each in found:
            collect(each)
        say(f"removed {size}")
    if not dry_run:
        for remark in take_rows_out(store):
            say(remark)
