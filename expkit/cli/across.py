"""`expkit across`: what several sweeps, each a workload, say together. Reads only."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.completion import sweeps
from expkit.cli.options import RUNS, Json, ReadDir, give, say

if TYPE_CHECKING:
    from expkit.analysis.across import Across


def across(
    names: Annotated[
        list[str],
        typer.Argument(metavar="SWEEP...", help="Two sweeps or more, by name or file.", autocompletion=sweeps),
    ],
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """Say what each arm does over several workloads, each a sweep: the geometric mean of its speedups, both ways.

    Arms are the same where their labels are. Nothing is trained.

    Example: expkit across ablate ablate_language
    """
    from expkit.analysis.across import across as over
    from expkit.analysis.summary import summarise
    from expkit.store.find import find_sweep
    from expkit.store.query import connect
    from expkit.store.store import Store

    store = Store(runs_dir)
    with connect(runs_dir) as con:
        found = over([summarise(con, find_sweep(store, name)) for name in names])
    if as_json:
        give(dataclasses.asdict(found))
        return
    print("\n".join(lines_of(found)))
    for sweep in found.withheld:
        say(f"the headline of {sweep} is withheld; expkit report {sweep} says why")
    say(f"next: expkit report {found.sweeps[0]}")


def lines_of(found: Across) -> list[str]:
    """The sentence, a row an arm, and what has no row."""
    from expkit.analysis.phrases import factor
    from expkit.report.clean import clean

    lines = [found.sentence]
    for one in found.arms:
        each = ", ".join(f"{name} {factor(it)}" for name, it in zip(found.sweeps, one.speedups, strict=True))
        lines += [
            f"{clean(one.arm)}",
            f"  over workloads  {factor(one.random)}",
            f"  over seeds      {factor(one.fixed)}",
            f"  profile         {one.baseline_score:.3f} against the baseline (0.5), {one.best_score:.3f} in the set",
            f"  first           in {100 * one.first:.0f} % of draws",
            f"  each            {each}",
        ]
    if found.left_out:
        lines.append(f"not in all of them: {', '.join(map(clean, found.left_out))}")
    return lines
