"""Single trials: run one recipe, or a trial of the store once more, on the same road as a sweep's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from expkit.errors import UsageError
from expkit.launch.compare import Difference, first_difference, series, why_incomparable
from expkit.launch.drive import MISSING, Job, Order, exit_code
from expkit.launch.executor import open_executor
from expkit.launch.session import Session
from expkit.launch.sources import Changed, changed
from expkit.launch.trials import python_path, trial_of
from expkit.plan.trial import Cell, Trial
from expkit.spec.files import load_recipe
from expkit.spec.identity import trial_id
from expkit.spec.recipe import Recipe
from expkit.spec.trust import Trust, read_trust
from expkit.store.find import find
from expkit.store.records import Status
from expkit.store.store import Store

AGAIN = MISSING | {"failed", "diverged"}
FAST_DEV_RUN = ("trainer.max_duration=4ba",)
"""Overrides of `--fast-dev-run`; they give the trial an id of its own."""


@dataclass(frozen=True)
class Ran:
    """A replicate after it was asked for."""

    id12: str
    replicate: int
    state: str
    status: Status | None
    exit_code: int
    already: bool
    """It was complete before; nothing has run."""
    changed: Changed | None = None
    """Where it was: whether its own code has changed since."""


def run_recipe(
    file: Path, recipe: Recipe, runs_dir: Path, *, trust_imports: Sequence[str] = (), wait: bool = False
) -> Ran:
    """Train a recipe as replicate 0 of its trial, unless that is complete."""
    store = Store(runs_dir)
    job = Job(Cell(trial_of(recipe), 0, "arm", 0, 0), 0)
    trust = read_trust(file.parent, trust_imports)
    if store.state_of(job.id12, 0) == "complete":
        status, differs = store.read_status(job.id12, 0), changed(store, [job], python_path(trust))
        return Ran(job.id12, 0, "complete", status, 0, already=True, changed=differs)
    return _run(store, job, trust, wait)


def rerun(prefix: str, runs_dir: Path, *, trust_imports: Sequence[str] = (), wait: bool = False) -> tuple[Ran, Recipe]:
    """Train a trial of the store once more, as its next replicate."""
    store = Store(runs_dir)
    id12 = find(store, prefix).id12
    trust = read_trust(Path.cwd(), trust_imports)
    recipe = load_recipe(store.layout.recipe(id12), trust_imports=trust.patterns)
    known, now = store.read_trial(id12), trial_id(recipe)
    if known is None or known.id != now:
        raise UsageError(f"trial {id12} would have id {now[:12]} in this version of expkit and its plug-ins: the same "
                         "words have come to mean something else, so it cannot be run again as it was")  # fmt: skip
    labels = tuple(method["label"] for method in known.algorithms)
    trial = Trial(known.id, recipe, known.label, labels, {}, known.seed)
    replicate = max(store.replicates(id12), default=-1) + 1
    return _run(store, Job(Cell(trial, replicate, "repeat", 0, 0), replicate), trust, wait), recipe


@dataclass(frozen=True)
class Verified:
    """What a comparison of two replicates found."""

    against: int
    num_values: int
    difference: Difference | None
    incomparable: str | None
    """Why the bits need not agree."""
    changed: tuple[str, ...]
    """What differs in setting or code between the two, as sentences."""


def verify_replicate(runs_dir: Path, ran: Ran, recipe: Recipe) -> Verified:
    """Compare a replicate with the earliest one that has a result."""
    store = Store(runs_dir)
    against = earlier_result(store, ran.id12, ran.replicate)
    one, other = (_series(runs_dir, ran.id12, replicate) for replicate in (against, ran.replicate))
    before, after = store.read_status(ran.id12, against), ran.status
    assert before is not None and after is not None
    keys = sorted(before.setting.keys() | after.setting.keys())
    changed = [f"{key} was {before.setting.get(key)} and is {after.setting.get(key)}"
               for key in keys if before.setting.get(key) != after.setting.get(key)]  # fmt: skip
    if before.code_sha != after.code_sha:
        changed.append(f"code was {before.code_sha} and is {after.code_sha}")
    return Verified(against, len(one), first_difference(one, other), why_incomparable(recipe), tuple(changed))


def earlier_result(store: Store, id12: str, before: int) -> int:
    """The first replicate below `before` that has a result; UsageError where there is none."""
    for replicate in store.replicates(id12):
        if replicate < before and store.state_of(id12, replicate) in ("complete", "diverged"):
            return replicate
    raise UsageError(f"trial {id12} has no result yet to compare with; run it with its sweep, or with expkit run")


def _run(store: Store, job: Job, trust: Trust, wait: bool) -> Ran:
    recipe = job.cell.trial.recipe
    executor = open_executor("local", jobs=1, threads=recipe.runtime.threads, isolation="spawn")
    order = Order(trust=trust.patterns, python_path=python_path(trust))
    with Session(store, executor, order, wait=wait) as session:
        tally = session.drive([job], recipe.metrics.primary.name, states=AGAIN)
        code = exit_code(tally, session.stop)
    state, status = store.state_of(job.id12, job.replicate), store.read_status(job.id12, job.replicate)
    return Ran(job.id12, job.replicate, state, status, code, already=False)


def _series(runs_dir: Path, id12: str, replicate: int) -> dict[tuple[int, str], float]:
    from expkit.store.query import connect

    with connect(runs_dir) as con:
        sql = "SELECT batch, name, value FROM metrics WHERE id = ? AND replicate = ? AND rank = 0"
        return dict(series(con.rows(sql, [id12, replicate])))
