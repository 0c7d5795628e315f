"""Confirmation: what is settled before its first trial, once, and the replicates that belong to it.

The record in the store says which arms, chosen how and from how many, on which seeds, and when test data was opened.
It is written before anything runs, so that a second call goes on with the same and cannot choose by what the first has
shown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from expkit.errors import UsageError
from expkit.launch.reconcile import Reconciled, Retry, reconcile
from expkit.launch.setting import expected
from expkit.launch.targets import seed_of
from expkit.plan import confirmation as plan
from expkit.spec.sweep import Sweep
from expkit.store.records import PlanRow, now_utc
from expkit.store.store import Store

TOP, SEEDS = 3, 5
Settled = Mapping[str, Any]
"""{utc, rule, of, top, arms: [{arm, verdict, speedup, quality}], seeds, metric, test, why, opened_utc, expkit,
earlier}."""


@dataclass(frozen=True)
class Wanted:
    """What a command line asks for; None where it leaves that open."""

    top: int | None = None
    """How many arms."""
    seeds: int | None = None
    arms: tuple[str, ...] = ()
    """Labels of arms, where the user chooses."""
    again: bool = False
    """Whether another confirmation is begun although there is one."""


def settle(sweep: Sweep, store: Store, wanted: Wanted) -> Settled:
    """The confirmation that is under way, else a new one; UsageError where something else than that is asked for."""
    known = store.confirmation(sweep.name)
    if not known or wanted.again:
        return _new(sweep, store, wanted, known)
    labels = [arm["arm"] for arm in known["arms"]]
    differs = [
        f"{what} {got}, not {asked}"
        for what, got, asked in (
            ("top", known["top"], wanted.top),
            ("seeds", len(known["seeds"]), wanted.seeds),
            ("arms", ", ".join(labels), ", ".join(wanted.arms) or None),
        )
        if asked is not None and asked != got
    ]
    if differs:
        raise UsageError(f"the confirmation of {sweep.name} was settled on {known['utc'][:10]} with "
                         f"{'; '.join(differs)}: call it without options to go on with that, or with --again to begin "
                         "another on other seeds")  # fmt: skip
    return known


def reconciled(sweep: Sweep, store: Store, settled: Settled, retry: Retry | None) -> Reconciled:
    """The replicates of a confirmation, and those that are to be run now; changes nothing."""
    cells = plan.cells(sweep, [arm["arm"] for arm in settled["arms"]], settled["seeds"])
    baselines = {cell.trial.id12 for cell in cells if cell.role == "baseline"}
    return reconcile(
        cells,
        store,
        _as_grid(store.read_plan(sweep.name), baselines),
        lambda cell: expected(cell.trial.recipe.runtime),
        exclusive=sweep.run.timing == "exclusive",
        reuse=sweep.run.reuse,
        retry=retry,
    )


def opened(settled: Settled, found: Reconciled) -> Settled:
    """With the moment at which test data is opened, where it is now and was not before."""
    now = settled["test"] and not settled["opened_utc"] and found.todo
    return {**settled, "opened_utc": now_utc()} if now else settled


def rows(found: Reconciled, before: Iterable[PlanRow], target_hash: str | None) -> list[PlanRow]:
    """The plan's rows of a confirmation, behind those of earlier ones."""
    before = [row for row in before if row.role == "confirm"]
    now = [dataclasses.replace(row, role="confirm") for row in found.rows(before, target_hash)]
    keys = {(row.id, row.replicate) for row in now}
    former = [row for row in before if (row.id, row.replicate) not in keys]
    return [*former, *behind(former, now)]


def behind(grid: Iterable[PlanRow], before: Iterable[PlanRow]) -> list[PlanRow]:
    """Rows that confirm, with blocks and positions behind those of the grid, however large it has become."""
    grid = list(grid)
    again = sorted((row for row in before if row.role == "confirm"), key=lambda row: row.position)
    first, position = (max((getattr(row, name) for row in grid), default=-1) + 1 for name in ("block", "position"))
    blocks = {block: first + i for i, block in enumerate(dict.fromkeys(row.block for row in again))}
    return [dataclasses.replace(row, block=blocks[row.block], position=position + i) for i, row in enumerate(again)]


def _new(sweep: Sweep, store: Store, wanted: Wanted, known: Settled) -> Settled:
    from expkit import __version__
    from expkit.analysis.choice import fastest, named
    from expkit.analysis.summary import summarise
    from expkit.store.query import connect

    with connect(store.layout.root, thorough=True) as con:
        summary = summarise(con, sweep.name)
    chosen = named(summary, wanted.arms) if wanted.arms else fastest(summary, wanted.top or TOP)
    data, why = plan.held_out(sweep.recipe)
    arms = [
        {"arm": arm.label, "verdict": arm.verdict, "speedup": dataclasses.asdict(arm.speedup),
         "quality": dataclasses.asdict(arm.quality_difference)} for arm in chosen.arms
    ]  # fmt: skip
    labels = [arm.label for arm in chosen.arms]
    return {
        "utc": now_utc(),
        "rule": chosen.rule,
        "of": chosen.of,
        "top": None if wanted.arms else wanted.top or TOP,
        "arms": arms,
        "seeds": _fresh_seeds(sweep, store, labels, wanted.seeds or SEEDS),
        "metric": plan.held_out_metric(sweep.recipe) if data else sweep.recipe.metrics.primary.name,
        "test": data is not None,
        "why": why,
        "opened_utc": None,
        "expkit": __version__,
        "earlier": [*known.get("earlier", ()), _former(known)] if known else [],
    }


def _former(known: Settled) -> dict[str, Any]:
    return {key: known[key] for key in ("utc", "seeds", "opened_utc")} | {"arms": [arm["arm"] for arm in known["arms"]]}


def _fresh_seeds(sweep: Sweep, store: Store, arms: list[str], count: int) -> list[int]:
    """The first seeds of this purpose that no trial of these arms or of their baseline has run with in this store."""
    found: list[int] = []
    index = 0
    while len(found) < count:
        seed = seed_of("confirm", index)
        index += 1
        if not any(store.replicates(cell.trial.id12) for cell in plan.cells(sweep, arms, [seed])):
            found.append(seed)
    return found


def _as_grid(rows: Iterable[PlanRow], baselines: set[str]) -> list[PlanRow]:
    """Rows that confirm, in the roles of a grid: of a baseline the first is itself, the second its repeat."""
    seen: dict[str, int] = {}
    found = []
    for row in sorted((row for row in rows if row.role == "confirm"), key=lambda row: row.replicate):
        rank = seen[row.id] = seen.get(row.id, -1) + 1
        role = "arm" if row.id not in baselines else "repeat" if rank == 1 else "baseline"
        found.append(dataclasses.replace(row, role=role))
    return found
