"""Removal: which replicates are to go, why they may not, and their going, each by one rename.

A replicate is claimed before it goes, so that no driver can begin to run it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from expkit.errors import EnvironmentFault, UsageError
from expkit.store import claims
from expkit.store.claims import Claim
from expkit.store.discard import discard, size
from expkit.store.find import Found
from expkit.store.store import Store

ALIVE = ("claimed", "running")


@dataclass(frozen=True)
class Removal:
    """One trial of which something goes."""

    id12: str
    label: str
    replicates: tuple[int, ...]
    """Those that go."""
    whole: bool
    """No replicate stays, so the trial goes too, with its tags and its note."""
    running: tuple[int, ...]
    sweeps: tuple[str, ...]
    """Sweeps that use one of them."""
    num_bytes: int

    def __str__(self) -> str:
        which = "" if self.whole else f" {' '.join(f'r{r}' for r in self.replicates)}"
        return f"{self.id12}{which}  {self.label}"


def removals(store: Store, chosen: Iterable[Found]) -> list[Removal]:
    """What goes with these trials and replicates; UsageError for one that was not started."""
    asked: dict[str, set[int]] = {}
    for found in chosen:
        known = store.replicates(found.id12)
        if not store.layout.trial(found.id12).is_dir() or (
            found.replicate is not None and found.replicate not in known
        ):
            raise UsageError(f"trial {found} has not been started, so there is nothing to remove")
        asked.setdefault(found.id12, set()).update(known if found.replicate is None else [found.replicate])
    users = _users(store) if asked else {}
    return [_removal(store, id12, sorted(replicates), users) for id12, replicates in asked.items()]


def of_sweep(store: Store, sweep: str) -> tuple[list[Found], list[str]]:
    """(replicates that only this sweep uses, ids of trials that stay because others use them too)."""
    users = _users(store)
    own, shared = [], set()
    for (id12, replicate), sweeps in users.items():
        if sweep not in sweeps or replicate not in store.replicates(id12):
            continue
        if len(sweeps) > 1:
            shared.add(id12)
        else:
            own.append(Found(id12, replicate))
    return own, sorted(shared)


def check(planned: Sequence[Removal]) -> None:
    """UsageError that names all that is running, and all that more than one sweep uses."""
    running = [f"  {each.id12} r{r} is running" for each in planned for r in each.running]
    shared = [f"  {each} is used by {' and '.join(each.sweeps)}" for each in planned if len(each.sweeps) > 1]
    if running or shared:
        raise UsageError("\n".join(["not removed, --force removes them all the same:", *running, *shared]))


def remove(store: Store, planned: Removal, *, force: bool = False) -> None:
    """Take it out of the store; UsageError where somebody has begun to run it, unless forced."""
    held = [] if force else list(_claims(store, planned))
    try:
        for path in _paths(store, planned):
            discard(path)
    except BaseException:
        for claim in held:
            if claim.path.exists():
                claim.release()
        raise


def take_rows_out(store: Store) -> list[str]:
    """Free the room that rows of removed replicates take in compacted files, and say what stands in the way. Nobody
    sees these rows in any case, so it may wait."""
    from expkit.store.compact import take_out

    try:
        done = take_out(store)
    except EnvironmentFault as e:
        return [f"rows of what was removed still take room: {e}"]
    return [f"left as it is: {bad}" for bad in done.damaged]


def _removal(
    store: Store, id12: str, replicates: Sequence[int], users: Mapping[tuple[str, int], Sequence[str]]
) -> Removal:
    record = store.read_trial(id12)
    running = tuple(r for r in replicates if store.state_of(id12, r) in ALIVE)
    sweeps = sorted({sweep for r in replicates for sweep in users.get((id12, r), ())})
    whole = set(replicates) == set(store.replicates(id12))
    paths = [store.layout.trial(id12)] if whole else [store.layout.replicate(id12, r) for r in replicates]
    label = record.label if record is not None else "(its record cannot be read)"
    return Removal(id12, label, tuple(replicates), whole, running, tuple(sweeps), sum(map(size, paths)))


def _paths(store: Store, planned: Removal) -> list[Path]:
    if planned.whole and set(store.replicates(planned.id12)) == set(planned.replicates):
        return [store.layout.trial(planned.id12)]
    return [store.layout.replicate(planned.id12, r) for r in planned.replicates]


def _claims(store: Store, planned: Removal) -> Iterator[Claim]:
    for replicate in planned.replicates:
        claim = claims.take(store.layout, planned.id12, replicate, "expkit rm")
        if claim is None:
            raise UsageError(f"trial {planned.id12} r{replicate} is running now; --force removes it all the same")
        yield claim


def _users(store: Store) -> dict[tuple[str, int], list[str]]:
    """By replicate the sweeps that use it."""
    users: dict[tuple[str, int], list[str]] = {}
    for sweep in store.sweeps():
        for row in store.read_plan(sweep):
            users.setdefault((row.id, row.replicate), []).append(sweep)
    return users
