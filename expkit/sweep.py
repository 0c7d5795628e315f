"""Conductor: compares what a sweep file asks for with what the store has, runs what is missing, writes the report."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expkit.errors import TrialFailure, UsageError
from expkit.launch import targets
from expkit.launch.drive import MISSING, Job, Order, exit_code
from expkit.launch.executor import open_executor
from expkit.launch.only import Only
from expkit.launch.progress import say
from expkit.launch.reconcile import RETRIED, Reconciled, Retry, reconcile
from expkit.launch.session import Session
from expkit.launch.setting import expected
from expkit.launch.sources import Changed, changed
from expkit.launch.targets import Target
from expkit.launch.trials import add, pilots, python_path
from expkit.plan.expand import baseline_trial, expand
from expkit.plan.trial import Cell
from expkit.spec.recipe import Pilot
from expkit.spec.sweep import Sweep
from expkit.spec.sweep_file import load_sweep
from expkit.store.records import FINAL, PlanRow, now_utc
from expkit.store.store import Store


@dataclass(frozen=True)
class Request:
    """What a command line says beside the file."""

    runs_dir: Path
    presets: Sequence[str] = ()
    overrides: Sequence[str] = ()
    trust_imports: Sequence[str] = ()
    jobs: int | None = None
    """Trials at a time, where the file is not to decide."""
    wait: bool = False
    retry: Retry | None = None
    only: str | None = None
    """A condition; what it does not pick is not run now."""
    isolation: str = "fork"


@dataclass(frozen=True)
class Swept:
    """How a sweep ended."""

    name: str
    exit_code: int
    states: Counter[str]
    """Of all replicates that the plan asks for (of those that `only` picks), not only of those that ran now."""
    report: Path | None
    """The page, None where we were interrupted before it could be written."""
    num_run: int
    """Trials that this call began, whatever became of them."""
    num_pilots: int
    """Pilots that it began before them."""


def run_sweep(file: Path, request: Request) -> Swept:
    """Make the store what the file asks for, and write the report; a second call trains nothing."""
    sweep = _load(file, request)
    store = Store(request.runs_dir)
    with _session(sweep, store, request) as session:
        target = _target(sweep, store, session, file)
        num_pilots = session.num_started
        only = Only(request.only) if request.only is not None else None
        plan = planned(sweep, store, retry=request.retry, only=only)
        _write_records(sweep, store, plan, target)
        settled = (job for job, state in zip(plan.jobs, plan.states, strict=True) if state in FINAL)
        add(store, (job.cell.trial for job in settled))  # a record that was lost must not take a result with it
        states = MISSING | (RETRIED[request.retry] if request.retry else frozenset())
        metric = sweep.recipe.metrics.primary.name
        if differ := changed_code(sweep, store, plan):
            say(str(differ))
        for job in plan.late:
            say(f"the baseline runs once more in block {job.cell.block}, beside cells that join it: {job.name()}")
        session.drive(
            plan.todo,
            metric,
            states=states,
            target_hash=target["hash"] if target else None,
            succeeded=any(state in ("complete", "diverged") for state in plan.states),
        )
        asked = [job for job in plan.jobs if only is None or only(job.cell)]
        tally = Counter(store.state_of(job.id12, job.replicate) for job in asked)
        code = exit_code(tally, session.stop)
    report = write_report(store, sweep.name) if code < 128 else None
    return Swept(sweep.name, code, tally, report, session.num_started - num_pilots, num_pilots)


def run_pilot(file: Path, request: Request, *, force: bool = False) -> Path:
    """Train the baseline on seeds of its own and write the target file beside the sweep file; gives its path."""
    sweep = _load(file, request)
    path = targets.target_file(file)
    if not isinstance(sweep.recipe.metrics.target, Pilot):
        raise UsageError(f"{file}: metrics.target is {sweep.recipe.metrics.target}, not a pilot; "
                         "a target is derived where it says {pilot: {seeds: 5}}")  # fmt: skip
    if path.exists() and not force:
        raise UsageError(f"{path} is there already; a target that is changed after trials ran is exploratory: --force")
    store = Store(request.runs_dir)
    with _session(sweep, store, request) as session:
        targets.write(path, _pilot(sweep, store, session))
    return path


def planned(sweep: Sweep, store: Store, *, retry: Retry | None = None, only: Only | None = None) -> Reconciled:
    """The replicates that a sweep would use and run now; changes nothing."""
    cells: Iterable[Cell] = expand(sweep)
    if only is not None:
        cells = list(cells)
        only.check(cells)
    return reconcile(
        cells,
        store,
        store.read_plan(sweep.name),
        lambda cell: expected(cell.trial.recipe.runtime),
        exclusive=sweep.run.timing == "exclusive",
        reuse=sweep.run.reuse,
        retry=retry,
        only=only or (lambda _: True),
    )


def changed_code(sweep: Sweep, store: Store, plan: Reconciled) -> Changed | None:
    """Complete replicates of a plan that ran other code of the user's own than they would now; imports none."""
    complete = (job for job, state in zip(plan.jobs, plan.states, strict=True) if state == "complete")
    return changed(store, complete, python_path(sweep.trust))


def write_report(store: Store, name: str) -> Path:
    """The report of what the store has of a sweep; the page's path."""
    from expkit.analysis.summary import summarise
    from expkit.report.write import write_report as write_faces
    from expkit.store.query import connect

    with connect(store.layout.root, thorough=True) as con:  # what it claims must be what was measured
        return write_faces(summarise(con, name), store.layout.report(name)).html


def _load(file: Path, request: Request) -> Sweep:
    sweep = load_sweep(file, presets=request.presets, overrides=request.overrides, trust_imports=request.trust_imports)
    jobs = request.jobs or sweep.run.jobs
    if jobs > 1 and sweep.run.timing == "exclusive":
        raise UsageError(f"jobs is {jobs}, but run.timing is exclusive: trials that run side by side disturb each "
                         "other's times; use jobs 1, or run.timing: shared")  # fmt: skip
    if next(iter(expand(sweep)), None) is None:
        raise UsageError(f"{file} leaves no trial to run; expkit plan {file} shows which rule removed how many")
    return dataclasses.replace(sweep, run=dataclasses.replace(sweep.run, jobs=jobs))


@contextlib.contextmanager
def _session(sweep: Sweep, store: Store, request: Request) -> Iterator[Session]:
    threads = sweep.recipe.runtime.threads
    executor = open_executor(sweep.run.executor, jobs=sweep.run.jobs, threads=threads, isolation=request.isolation)
    order = Order(
        trust=sweep.trust.patterns,
        python_path=python_path(sweep.trust),
        exclusive=sweep.run.timing == "exclusive",
    )
    with Session(store, executor, order, wait=request.wait) as session:
        yield session


def _target(sweep: Sweep, store: Store, session: Session, file: Path) -> Target | None:
    """What the recipe asks to reach: a number as given, the target file's, or, where it is missing, a pilot's."""
    wanted = sweep.recipe.metrics.target
    if wanted is None:
        return None
    if not isinstance(wanted, Pilot):
        return targets.given(sweep.recipe.metrics.primary, wanted)
    path = targets.target_file(file)
    if not path.exists():
        say(f"there is no {path}, so the pilot runs first: the baseline on {wanted.seeds} seeds of its own")
        targets.write(path, _pilot(sweep, store, session))
    target = targets.read(path)
    _warn_of_another(sweep, target, path)
    return target


def _warn_of_another(sweep: Sweep, target: Target, path: Path) -> None:
    now = [baseline_trial(sweep, seed).id12 for seed in target["seeds"]]
    primary = sweep.recipe.metrics.primary
    if (target["metric"], target["mode"]) != (primary.name, primary.mode):
        raise UsageError(f"{path} is a target for {target['metric']} ({target['mode']}), but the recipe compares by "
                         f"{primary.name} ({primary.mode}); write it anew with expkit pilot --force")  # fmt: skip
    if now != target["trials"]:
        say(f"{path} was derived from another baseline than this sweep's; expkit pilot --force derives it anew")


def _pilot(sweep: Sweep, store: Store, session: Session) -> Target:
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
    return targets.derived(primary, pilot, seeds, firsts, finals, [job.id12 for job in jobs])


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


def _or_nan(value: float | None) -> float:
    """What was recorded and was no finite number is NULL in the view."""
    return math.nan if value is None else value


def _write_records(sweep: Sweep, store: Store, plan: Reconciled, target: Target | None) -> None:
    """What the store keeps of a sweep: its file, its plan, its target, and what its report needs to know."""
    primary, report = sweep.recipe.metrics.primary, sweep.report
    terms = {"seeds": list(sweep.seeds), "metric": primary.name, "mode": primary.mode, "clock": report.clock,
             "non_inferiority": report.non_inferiority}  # fmt: skip
    rows = plan.rows(store.read_plan(sweep.name), target["hash"] if target else None)
    rows += _pilot_rows(sweep, store, target)
    store.write_plan(sweep.name, sweep.text, rows, file=str(sweep.path))
    store.write_settings(sweep.name, {
        "clock": report.clock,
        "ci": report.ci,
        "non_inferiority": report.non_inferiority,
        "confirmatory": list(report.confirmatory),
        "rates": {"per_hour": report.price_per_hour, "per_kwh": report.price_per_kwh, "watts": report.watts},
        "metric": primary.name,
        "mode": primary.mode,
        "baseline_arm": "+".join(sorted(level.label for level in sweep.baseline)) or "none",
        "target_rule": target["rule"] if target else None,
        "timing": sweep.run.timing,
        "seeds": list(sweep.seeds),
        "candidates": [candidate.label for candidate in sweep.candidates],
        "named": _named(store.sweep_settings(sweep.name).get("named") or [], terms),
    })  # fmt: skip
    if target:
        store.write_target(sweep.name, target)


def _named(before: list[dict[str, Any]], terms: dict[str, Any]) -> list[dict[str, Any]]:
    """The terms each time they changed, oldest first, with the moment: what a report calls fixed in advance."""
    if before and {key: before[-1].get(key) for key in terms} == terms:
        return before
    return [*before, {"utc": now_utc(), **terms}]


def _pilot_rows(sweep: Sweep, store: Store, target: Target | None) -> list[PlanRow]:
    """The pilot's trials, where they ran into this store and not on another machine."""
    trials = [baseline_trial(sweep, seed) for seed in target["seeds"]] if target else []
    here = [job for job in pilots(trials) if store.replicates(job.trial.id12)]
    return [PlanRow(c.trial.id12, 0, c.trial.arm, c.role, c.block, c.position, None) for c in here]
