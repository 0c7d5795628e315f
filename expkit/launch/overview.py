"""Overview: how far the sweeps of a runs folder are, read from the records of their replicates. Starts nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial

from expkit.errors import UsageError, unknown
from expkit.launch.progress import progress_of
from expkit.store import index
from expkit.store.find import trials
from expkit.store.records import PlanRow
from expkit.store.store import Store

SHOWN = ("running", "claimed", "lost", "failed", "interrupted")
"""States whose replicates are named one by one."""


@dataclass(frozen=True)
class Standing:
    """One replicate that somebody may want to look at."""

    id: str
    replicate: int
    arm: str
    seed: int | None
    state: str
    cause: str | None
    message: str | None
    batch: int
    """Batches done, as the last heartbeat said."""
    num_batches: int


@dataclass(frozen=True)
class Overview:
    """One sweep without its pilot, or the trials that belong to none."""

    sweep: str | None
    counts: dict[str, int]
    """Replicates by state."""
    standing: tuple[Standing, ...]

    @property
    def total(self) -> int:
        """Replicates in all."""
        return sum(self.counts.values())


def overviews(store: Store, sweep: str | None = None) -> list[Overview]:
    """Of one sweep, or of all and, last, of what belongs to none; UsageError for a sweep that is not there."""
    names = store.sweeps()
    if sweep is not None and sweep not in names:
        raise UsageError(unknown("sweep", sweep, names))
    plans = {name: store.read_plan(name) for name in ([sweep] if sweep is not None else names)}
    found = [_of(store, name, rows) for name, rows in plans.items()]
    if sweep is None:
        stray = _stray(store, {(row.id, row.replicate) for rows in plans.values() for row in rows})
        found += [_of(store, None, stray)] if stray else []
    return found


def _of(store: Store, name: str | None, rows: Iterable[PlanRow]) -> Overview:
    counts: Counter[str] = Counter()
    standing = []
    complete = _settled(store)
    for row in (row for row in rows if row.role != "pilot"):
        if complete(row.id, row.replicate):
            counts["complete"] += 1
            continue
        state, status = store.look(row.id, row.replicate)
        counts[state] += 1
        if state in SHOWN:
            record = store.read_trial(row.id)
            batch, of = progress_of(store.layout, row.id, row.replicate)
            cause, message = (status.cause, status.message) if status else (None, None)
            seed = record.seed if record else None
            standing.append(Standing(row.id, row.replicate, row.arm, seed, state, cause, message, batch, of))
    return Overview(name, dict(sorted(counts.items())), tuple(standing))


def _settled(store: Store) -> Callable[[str, int], bool]:
    """Whether the index knows a replicate as complete: 20 microseconds a trial, where its record takes 90."""
    complete = cache(partial(index.read(store.layout).complete, store.layout))
    return lambda id12, replicate: replicate in complete(id12)


def _stray(store: Store, known: set[tuple[str, int]]) -> list[PlanRow]:
    """Replicates on disk that no sweep's plan names: those of `expkit run` and `rerun`, pilots, former plans."""
    rows = []
    for id12 in trials(store.layout):
        strays = [r for r in store.replicates(id12) if (id12, r) not in known]
        record = store.read_trial(id12) if strays else None
        rows += [PlanRow(id12, r, record.label if record else "", "arm", 0, 0) for r in strays]
    return rows
