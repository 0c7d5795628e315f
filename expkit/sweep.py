"""Conductor: compares what a sweep file asks for with what the store has, runs what is missing, writes the report."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expkit.errors import UsageError
from expkit.launch import confirmation, pilot, targets
from expkit.launch.confirmation import Wanted
from expkit.launch.drive import MISSING, Order, exit_code
from expkit.launch.executor import open_executor
from expkit.launch.only import Only
from expkit.launch.reconcile import RETRIED, Reconciled, Retry, reconcile
from expkit.launch.session import Session
from expkit.launch.setting import expected
from expkit.launch.sources import Changed, changed
from expkit.launch.targets import Target
from expkit.launch.trials import add, python_path
from expkit.plan.expand import baseline_trial, expand
from expkit.plan.space import Space
from expkit.plan.trial import Cell
from expkit.spec.recipe import Pilot
from expkit.spec.sweep import Sweep
from expkit.spec.sweep_file import load_sweep
from expkit.speech import say
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
    allow_flat: bool = False
    """Whether a target may be too flat to time anything; it is exploratory then."""


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
        target = _target(sweep, store, session, file, request.allow_flat)
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
            [*plan.todo, *plan.elsewhere],
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
        targets.write(path, targets.judged(pilot.derive(sweep, store, session), allow_flat=request.allow_flat))
    return path


def run_confirm(file: Path, request: Request, wanted: Wanted) -> Swept:
    """Train a few arms of a sweep that has ended again, on fresh seeds and judged on test data, and write the report.

    What is confirmed is settled at the first call; a second one goes on with it.
    """
    sweep = _load(file, request)
    store = Store(request.runs_dir)
    with _session(sweep, store, request) as session:
        plan = planned(sweep, store)
        if left := sum(state not in FINAL for state in plan.states):
            raise UsageError(f"{left} of {len(plan.states)} replicates of {sweep.name} have no result yet, so nothing "
                             f"can be chosen; run expkit sweep {file} first")  # fmt: skip
        settled = confirmation.settle(sweep, store, wanted)
        again = confirmation.reconciled(sweep, store, settled, request.retry)
        target = store.targets(sweep.name) or None
        states = MISSING | (RETRIED[request.retry] if request.retry else frozenset())
        store.write_confirmation(sweep.name, confirmation.opened(settled, again))
        target_hash = target["hash"] if target else None
        rows = confirmation.rows(again, store.read_plan(sweep.name), target_hash)
        _write_records(sweep, store, plan, target, rows)
        session.drive(
            [*again.todo, *again.elsewhere], sweep.recipe.metrics.primary.name, states=states, target_hash=target_hash
        )
        tally = Counter(store.state_of(job.id12, job.replicate) for job in again.jobs)
        code = exit_code(tally, session.stop)
    report = write_report(store, sweep.name) if code < 128 else None
    return Swept(sweep.name, code, tally, report, session.num_started, 0)


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


def _target(sweep: Sweep, store: Store, session: Session, file: Path, allow_flat: bool) -> Target | None:
    """What the recipe asks to reach: a number as given, the target file's, or, where it is missing, a pilot's.

    UsageError for a pilot's that is too flat and is not allowed to be.
    """
    wanted = sweep.recipe.metrics.target
    if wanted is None:
        return None
    if not isinstance(wanted, Pilot):
        return targets.given(sweep.recipe.metrics.primary, wanted)
    path = targets.target_file(file)
    if not path.exists():
        say(f"there is no {path}, so the pilot runs first: the baseline on {wanted.seeds} seeds of its own")
        targets.write(path, targets.judged(pilot.derive(sweep, store, session), allow_flat=allow_flat))
    found = targets.read(path)
    _warn_of_another(sweep, found, path)
    target = targets.judged(found, allow_flat=allow_flat)
    if target is not found:
        targets.write(path, target)
    return target


def _is_of_another(sweep: Sweep, target: Target) -> bool:
    """Whether a derived target is of other baseline trials than this sweep's own would be."""
    return [baseline_trial(sweep, seed).id12 for seed in target["seeds"]] != list(target["trials"])


def _warn_of_another(sweep: Sweep, target: Target, path: Path) -> None:
    primary = sweep.recipe.metrics.primary
    if (target["metric"], target["mode"]) != (primary.name, primary.mode):
        raise UsageError(f"{path} is a target for {target['metric']} ({target['mode']}), but the recipe compares by "
                         f"{primary.name} ({primary.mode}); write it anew with expkit pilot --force")  # fmt: skip
    if _is_of_another(sweep, target):
        say(f"{path} was derived from another baseline than this sweep's; expkit pilot --force derives it anew")


def _write_records(
    sweep: Sweep,
    store: Store,
    plan: Reconciled,
    target: Target | None,
    confirmed: Iterable[PlanRow] | None = None,
) -> None:
    """What the store keeps of a sweep: its file, its plan, its target, and what its report needs to know."""
    primary, report = sweep.recipe.metrics.primary, sweep.report
    terms = {"seeds": list(sweep.seeds), "metric": primary.name, "mode": primary.mode, "clock": report.clock,
             "non_inferiority": report.non_inferiority}  # fmt: skip
    before = store.read_plan(sweep.name)
    rows = plan.rows(before, target["hash"] if target else None)
    rows += pilot.rows(sweep, store, target)
    rows += confirmation.behind(rows, before if confirmed is None else confirmed)
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
        "target_of_another": target is not None and _is_of_another(sweep, target),
        "timing": sweep.run.timing,
        "seeds": list(sweep.seeds),
        "candidates": [candidate.label for candidate in sweep.candidates],
        "orders": Space(sweep, sweep.grids[0]).orders() if len(sweep.grids) == 1 else [],
        "named": _named(store.sweep_settings(sweep.name).get("named") or [], terms),
    })  # fmt: skip
    if target:
        store.write_target(sweep.name, target)


def _named(before: list[dict[str, Any]], terms: dict[str, Any]) -> list[dict[str, Any]]:
    """The terms each time they changed, oldest first, with the moment: what a report calls fixed in advance."""
    if before and {key: before[-1].get(key) for key in terms} == terms:
        return before
    return [*before, {"utc": now_utc(), **terms}]
