"""Reconcile: which replicates in the store stand for the cells of a plan, and which of them are to be run now.

A sweep file is desired state: what is there is used, what is missing is run, what the plan no longer asks for stays
in the store. Reads the store, writes nothing.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from expkit.launch.drive import MISSING, Job
from expkit.launch.setting import agrees
from expkit.plan.trial import Cell
from expkit.store.records import FINAL, PlanRow
from expkit.store.store import Store

Reuse = Literal["same_setting", "any", "never"]
Retry = Literal["failed", "diverged", "timing", "all"]
RETRIED: Mapping[str, frozenset[str]] = {
    "failed": frozenset({"failed"}),
    "diverged": frozenset({"diverged"}),
    "timing": frozenset(),
    "all": frozenset({"failed", "diverged"}),
}


@dataclass(frozen=True)
class Reconciled:
    """All jobs of a sweep in run order, and those to be run."""

    jobs: tuple[Job, ...]
    states: tuple[str, ...]
    """Of each job, before anything is run."""
    todo: tuple[Job, ...]
    late: tuple[Job, ...]
    """Baseline replicates added because cells join a block whose baseline ran in an earlier driver run."""
    elsewhere: tuple[Job, ...] = ()
    """Jobs that another driver has running; who wants the sweep whole waits for them, and runs those that get lost."""

    def rows(self, before: Iterable[PlanRow], target_hash: str | None) -> list[PlanRow]:
        """The plan as the store keeps it; what has a result keeps the target's hash that it ran under."""
        recorded = {(row.id, row.replicate): row.target_hash for row in before}
        again = {(job.id12, job.replicate) for job in self.todo}
        rows = []
        for job, state in zip(self.jobs, self.states, strict=True):
            key = (job.id12, job.replicate)
            kept = recorded.get(key) if state in FINAL and key not in again else target_hash
            cell = job.cell
            rows.append(PlanRow(job.id12, job.replicate, cell.trial.arm, cell.role, cell.block, cell.position, kept))
        return rows


def reconcile(
    cells: Iterable[Cell],
    store: Store,
    own: Sequence[PlanRow],
    wanted: Callable[[Cell], Mapping[str, Any]],
    *,
    exclusive: bool,
    reuse: Reuse = "same_setting",
    retry: Retry | None = None,
    only: Callable[[Cell], bool] = lambda _: True,
) -> Reconciled:
    """Match cells with the store; `own` is the sweep's plan as it was, `wanted` gives the setting of a run now.

    Of what is missing just what `only` picks is to be run, and under `exclusive` its block's baseline.
    """
    book = _Book(store, own, wanted, exclusive, reuse, retry in ("timing", "all"))
    jobs = [book.match(cell) for cell in cells]
    jobs += book.late_replicates_kept(jobs)
    states = {(job.id12, job.replicate): store.state_of(job.id12, job.replicate) for job in jobs}
    runnable = MISSING | (RETRIED[retry] if retry else frozenset())
    missing = [job for job in jobs if states[job.id12, job.replicate] in runnable]
    todo = [job for job in missing if only(job.cell)]
    todo += _companions(missing, todo) if exclusive else []
    late = book.late_replicates_needed(jobs, todo) if exclusive else []
    elsewhere = [job for job in jobs if states[job.id12, job.replicate] == "running" and only(job.cell)]
    every = sorted([*jobs, *late], key=_order)
    return Reconciled(
        tuple(every),
        tuple(states.get((job.id12, job.replicate), "pending") for job in every),
        tuple(sorted([*todo, *late], key=_order)),
        tuple(late),
        tuple(elsewhere),
    )


def _companions(missing: Sequence[Job], todo: Sequence[Job]) -> list[Job]:
    """Baselines that are missing and were not picked, in blocks where an arm was: its time is compared with theirs."""
    blocks = {job.cell.block for job in todo}
    picked = {(job.id12, job.replicate) for job in todo}
    return [
        job for job in missing
        if job.cell.role == "baseline" and job.cell.block in blocks and (job.id12, job.replicate) not in picked
    ]  # fmt: skip


def _order(job: Job) -> tuple[int, bool, int]:
    return job.cell.position, job.cell.role != "baseline", job.replicate  # a late baseline goes before its late arm


class _Book:
    """Which replicate numbers of each trial are taken, by this sweep's earlier plan and by the cells so far."""

    def __init__(
        self,
        store: Store,
        own: Sequence[PlanRow],
        wanted: Callable[[Cell], Mapping[str, Any]],
        exclusive: bool,
        reuse: Reuse,
        retry_timing: bool,
    ) -> None:
        self._store = store
        self._wanted = wanted
        self._exclusive = exclusive
        self._reuse = reuse
        self._retry_timing = retry_timing
        self._taken: dict[str, set[int]] = defaultdict(set)
        self._own: dict[tuple[str, bool], list[int]] = defaultdict(list)  # (trial, is repeat) -> replicates, unmatched
        grid = [row for row in own if row.role in ("baseline", "arm", "repeat")]
        for row in sorted(grid, key=lambda row: row.replicate):
            self._own[row.id, row.role == "repeat"].append(row.replicate)
            self._taken[row.id].add(row.replicate)

    def match(self, cell: Cell) -> Job:
        """The sweep's own replicate, else one of another sweep that satisfies it, else the next number."""
        mine = self._own[cell.trial.id12, cell.role == "repeat"]
        while mine:
            replicate = mine.pop(0)
            if not (self._retry_timing and self._timing_invalid(cell, replicate)):
                return Job(cell, replicate)
        return Job(cell, self._foreign(cell))

    def late_replicates_kept(self, jobs: Sequence[Job]) -> list[Job]:
        """Further baseline replicates that earlier runs added for late cells."""
        baselines = {job.id12: job.cell for job in jobs if job.cell.role == "baseline"}
        return [
            Job(dataclasses.replace(cell, replicate=replicate), replicate)
            for id12, cell in baselines.items()
            for replicate in self._own.pop((id12, False), [])
        ]

    def late_replicates_needed(self, jobs: Sequence[Job], todo: Sequence[Job]) -> list[Job]:
        """One more baseline replicate for each block in which arms will run and no baseline would."""
        baselines = {job.cell.block: job.cell for job in jobs if job.cell.role == "baseline"}
        late: dict[int, Job] = {}
        accompanied = {job.cell.block for job in todo if job.cell.role in ("baseline", "repeat")}
        for job in sorted(todo, key=_order):
            block = job.cell.block
            if job.cell.role == "arm" and block in baselines and block not in accompanied and block not in late:
                cell = baselines[block]
                replicate = self._next(cell)
                late[block] = Job(dataclasses.replace(cell, replicate=replicate, position=job.cell.position), replicate)
        return list(late.values())

    def _foreign(self, cell: Cell) -> int:
        for replicate in self._store.replicates(cell.trial.id12):
            if replicate not in self._taken[cell.trial.id12] and self._satisfies(cell, replicate):
                self._taken[cell.trial.id12].add(replicate)
                return replicate
        return self._next(cell)

    def _satisfies(self, cell: Cell, replicate: int) -> bool:
        """A complete one in our setting with valid timing where that matters, or one that may be run as ours."""
        if self._reuse == "never":
            return False
        state = self._store.state_of(cell.trial.id12, replicate)
        if state in MISSING or state == "running":
            return True
        status = self._store.read_status(cell.trial.id12, replicate)
        if state == "failed" or status is None:
            return False
        if self._reuse == "any":
            return True
        return agrees(status.setting, self._wanted(cell)) and not (self._exclusive and status.timing_valid is False)

    def _timing_invalid(self, cell: Cell, replicate: int) -> bool:
        status = self._store.read_status(cell.trial.id12, replicate)
        return status is not None and status.state == "complete" and status.timing_valid is False

    def _next(self, cell: Cell) -> int:
        id12 = cell.trial.id12
        number = max([-1, *self._store.replicates(id12), *self._taken[id12]]) + 1
        self._taken[id12].add(number)
        return number
