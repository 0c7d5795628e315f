"""Finding what a person types: a trial by the first digits of its id, by `last`, a replicate of it; a sweep by name.

Reads names of folders; plans only where no folder fits (a trial that was not started has none), records of trials
only to tell apart those that a prefix fits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from expkit.errors import UsageError, unknown
from expkit.store.layout import ID12, Layout
from expkit.store.records import PlanRow
from expkit.store.store import Store

_WRITTEN = re.compile(r"(?P<trial>[^/\s]+)(?:[/\s]\s*r?(?P<replicate>\d+))?")
_LAST = re.compile(r"last(?:~(?P<back>\d+))?")
MOST_LISTED = 12


class NoTrial(UsageError):
    """No trial is called that."""


@dataclass(frozen=True)
class Found:
    """A trial, and the replicate of it where one was named."""

    id12: str
    replicate: int | None

    def __str__(self) -> str:
        return self.id12 if self.replicate is None else f"{self.id12} r{self.replicate}"


def find(store: Store, written: str, *, sweep: str | None = None) -> Found:
    """`3f2a`, `3f2a r1`, `3f2a/r1`, `last` or `last~1`; UsageError where there is none, or where several fit.

    The last ones are those of `sweep` where one is given.
    """
    match = _WRITTEN.fullmatch(written.strip())
    if match is None:
        raise NoTrial(f"{written!r} is no trial; write the first digits of its id, with a replicate as 3f2a/r1")
    last = _LAST.fullmatch(match["trial"])
    found = _latest(store, int(last["back"] or 0), sweep) if last else Found(find_trial(store, match["trial"]), None)
    if match["replicate"] is None:
        return found
    replicate = int(match["replicate"])
    if replicate not in (there := store.replicates(found.id12)) and replicate not in (there := _all(store, found.id12)):
        have = ", ".join(f"r{r}" for r in there) or "none"
        raise UsageError(f"trial {found.id12} has no replicate r{replicate}; there are: {have}")
    return Found(found.id12, replicate)


def find_trial(store: Store, prefix: str) -> str:
    """The id12 of the one trial whose id begins with `prefix`; all 64 digits will do."""
    found = _fitting(trials(store.layout), prefix) or _fitting({row.id for row in _planned(store)}, prefix)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NoTrial(f"there is no trial {prefix!r} in {store.layout.root}; expkit status lists what there is")
    lines = [f"  {_described(store, name)}" for name in found[:MOST_LISTED]]
    more = [f"  and {len(found) - MOST_LISTED} more"] if len(found) > MOST_LISTED else []
    raise UsageError("\n".join([f"{prefix!r} fits {len(found)} trials; give more digits:", *lines, *more]))


def find_sweep(store: Store, written: str) -> str:
    """The sweep that a name, a bare file name or a path means; UsageError names the nearest and all there are."""
    known = store.sweeps()
    given = Path(written)
    for name in (written, given.stem if given.suffix in {".yaml", ".yml"} else written):
        if name in known:
            return name
    for name in known:
        file = store.sweep_record(name).get("file")
        if file and given.is_file() and Path(file).resolve() == given.resolve():
            return name
    raise UsageError(f"{unknown('sweep', written, known)} (in {store.layout.root}; expkit sweep FILE makes one)")


def trials(layout: Layout) -> list[str]:
    """Names of all trials' folders, sorted; what has another name is not ours."""
    try:
        with os.scandir(layout.trials) as entries:
            return sorted(e.name for e in entries if ID12.fullmatch(e.name) and e.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _fitting(names: Iterable[str], prefix: str) -> list[str]:
    return sorted(name for name in names if prefix and (name.startswith(prefix) or prefix.startswith(name)))


def _planned(store: Store) -> Iterator[PlanRow]:
    for sweep in store.sweeps():
        yield from store.read_plan(sweep)


def _all(store: Store, id12: str) -> list[int]:
    return sorted({*store.replicates(id12), *(row.replicate for row in _planned(store) if row.id == id12)})


def _described(store: Store, id12: str) -> str:
    record = store.read_trial(id12)
    return id12 if record is None else f"{id12}  {record.label}  seed {record.seed}"


def _latest(store: Store, back: int, sweep: str | None) -> Found:
    """The replicate whose status changed last, or the one `back` before it."""
    if sweep is None:
        there = [(id12, replicate) for id12 in trials(store.layout) for replicate in store.replicates(id12)]
    else:
        there = [(row.id, row.replicate) for row in store.read_plan(sweep)]
    changed = [
        (time, id12, replicate)
        for id12, replicate in there
        if (time := _changed(store.layout.status(id12, replicate))) is not None
    ]
    if len(changed) <= back:
        where = store.layout.root if sweep is None else f"sweep {sweep}"
        raise UsageError(f"{where} has {len(changed)} replicates that were started, so there is no such last")
    _, id12, replicate = sorted(changed, reverse=True)[back]
    return Found(id12, replicate)


def _changed(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
