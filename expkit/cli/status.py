"""`expkit status`: how far the sweeps are; reads only, starts nothing."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.completion import sweeps
from expkit.cli.options import RUNS, Json, ReadDir, give, say

if TYPE_CHECKING:
    from expkit.launch.overview import Overview


def status(
    sweep: Annotated[
        str | None, typer.Argument(help="Name of a sweep; all of them where none is given.", autocompletion=sweeps)
    ] = None,
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """Show the replicates of sweeps by state, the running ones with their progress, the lost and failed by name.

    Example: expkit status ablate
    """
    from expkit.launch.overview import overviews
    from expkit.store.store import Store

    store = Store(runs_dir)
    found = overviews(store, sweep)
    if as_json:
        give([{**dataclasses.asdict(overview), "total": overview.total} for overview in found])
    else:
        for overview in found:
            print("\n".join(lines_of(overview)))
        if not found:
            say(f"there is nothing in {runs_dir} yet; begin with: expkit sweep ablate.yaml")
    for unreadable in store.set_aside:
        say(f"set aside: {unreadable}")


def lines_of(overview: Overview) -> list[str]:
    """One line with the counts, then one for each replicate that needs a look."""
    counts = ", ".join(f"{count} {state}" for state, count in overview.counts.items())
    lines = [f"{overview.sweep or '(no sweep)'}: {overview.total} replicates: {counts or 'none'}"]
    for each in overview.standing:
        progress = f", batch {each.batch} of {each.num_batches}" if each.num_batches and each.state == "running" else ""
        cause = f" ({each.cause})" if each.cause else ""
        why = f": {each.message.splitlines()[0]}" if each.message else ""
        seed = f" seed {each.seed}" if each.seed is not None else ""
        lines.append(f"  {each.state}{cause} {each.id} r{each.replicate} {each.arm}{seed}{progress}{why}")
    return lines
