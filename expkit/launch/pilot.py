"""Pilot: the baseline on seeds of its own, whose ends fix the target before anything else is run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from expkit.errors import TrialFailure, UsageError
from expkit.launch import targets
from expkit.launch.drive import MISSING, Job
from expkit.launch.session import Session
from expkit.launch.targets import Target
from expkit.launch.trials import pilots
from expkit.plan.expand import baseline_trial
from expkit.spec.recipe import Pilot, Primary
from expkit.spec.sweep import Sweep
from expkit.store.records import PlanRow
from expkit.store.store import Store


def derive(sweep: Sweep, store: Store, session: Session) -> Target:
    """The target of a sweep that asks for a pilot; its trials are run where they have no result yet."""
    pilot, primary = sweep.recipe.metrics.target, sweep.recipe.metrics.primary
    assert isinstance(pilot, Pilot)
    cells = pilots(baseline_trial(sweep, seed) for seed in targets.pilot_seeds(pilot.seeds))
    jobs = [Job(cell, cell.replicate) for cell in cells]
    again = MISSING | {"failed"}  # without its pilot a sweep cannot begin, so asking for it is asking for a retry
    session.drive(
        [job for job in jobs if store.state_of(job.id12, 0) in again | {"running"}], primary.name, states=again
    )
    session.stop.raise_if_asked("the pilot was stopped before it could fix the target; run it again to go on")
    for job in jobs:
        if (state := store.state_of(job.id12, job.replicate)) not in ("complete", "diverged"):
            raise TrialFailure(f"pilot trial {job.id12} ({job.name()}) is {state}, so no target could be derived")
    firsts, finals = _ends(store, jobs, primary.name)
    seeds = [job.cell.trial.seed for job in jobs]
    goal = None if pilot.rule == "lowest_final" else targets.value_of(pilot.rule, firsts, finals, primary.mode)
    slopes = _slopes(store, jobs, primary, goal)
    return targets.derived(primary, pilot, seeds, firsts, finals, [job.id12 for job in jobs], slopes)


def rows(sweep: Sweep, store: Store, target: Target | None) -> list[PlanRow]:
    """The pilot's trials, where they ran into this store and not on another machine."""
    trials = [baseline_trial(sweep, seed) for seed in target["seeds"]] if target else []
    here = [job for job in pilots(trials) if store.replicates(job.trial.id12)]
    return [PlanRow(c.trial.id12, 0, c.trial.arm, c.role, c.block, c.position, None) for c in here]


def _ends(store: Store, jobs: Sequence[Job], metric: str) -> tuple[list[float], list[float]]:
    """First and last recorded value of a metric in each job."""
    from expkit.store.query import connect

    with connect(store.layout.root) as con:
        rows = con.rows("SELECT id, replicate, first, last FROM final WHERE name = ?", [metric])
    found = {(row["id"], row["replicate"]): (_or_nan(row["first"]), _or_nan(row["last"])) for row in rows}
    missing = [job for job in jobs if (job.id12, job.replicate) not in found]
    if missing:
        raise UsageError(f"{metric} was not recorded by pilot trial {missing[0].id12}; "
                         "metrics.primary must name what an evaluator makes, such as eval/accuracy")  # fmt: skip
    ends = [found[job.id12, job.replicate] for job in jobs]
    return [first for first, _ in ends], [last for _, last in ends]


def _slopes(store: Store, jobs: Sequence[Job], primary: Primary, goal: float | None) -> list[float | None]:
    """What each job gains per doubling of training around the goal, or towards its end."""
    from expkit.analysis.target import slope
    from expkit.store.query import connect

    select = "SELECT batch, value FROM metrics WHERE name = ? AND id = ? AND replicate = ? AND rank = 0 ORDER BY batch"
    with connect(store.layout.root) as con:
        found = [con.rows(select, [primary.name, job.id12, job.replicate]) for job in jobs]
    series = [([row["batch"] for row in rows], [row["value"] for row in rows]) for rows in found]
    return [slope(batches, values, primary.mode, goal) for batches, values in series]


def _or_nan(value: float | None) -> float:
    """What was recorded and was no finite number is NULL in the view."""
    return math.nan if value is None else value
