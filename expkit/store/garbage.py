"""Garbage: what lies in a runs folder and nobody will ever read, and what one may give up to have room.

Nothing younger than an hour is garbage: somebody may be writing it. A walk over the whole folder, about 1 s at 10,000
trials.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from expkit.store import notes, shared
from expkit.store.atomic import read_json
from expkit.store.discard import REMOVED, discard, size
from expkit.store.find import trials
from expkit.store.removal import ALIVE
from expkit.store.store import Store

QUIET_S = 3600.0
HAS_RESULT = frozenset({"complete", "diverged", "pruned"})


@dataclass(frozen=True)
class Garbage:
    """A file or folder that may go."""

    path: Path
    why: str
    num_bytes: int


def garbage(store: Store, *, unused: bool = False, checkpoints: bool = False) -> list[Garbage]:
    """All there is. `unused`: also trials that no sweep uses and that have neither tag nor note; `checkpoints`: also
    those of replicates that have a result."""
    found = [*_leftovers(store), *_provenance(store), *_remains(store)]
    found += _unused(store) if unused else []
    found += _checkpoints(store) if checkpoints else []
    inside = {each.path for each in found}
    return [each for each in found if not inside & set(each.path.parents)]


def collect(found: Garbage) -> None:
    """Remove it."""
    discard(found.path)


def _leftovers(store: Store) -> Iterator[Garbage]:
    """What an interrupted removal or a killed writer left."""
    for folder, folders, files in os.walk(store.layout.root):
        for name in [*folders, *files]:
            path = Path(folder, name)
            if name.startswith(REMOVED):
                yield Garbage(path, "a removal that was interrupted", size(path))
            elif name.startswith(".") and name.endswith((".tmp", ".unread")) and _is_quiet(path):
                yield Garbage(path, "its writer was killed", size(path))
        folders[:] = [name for name in folders if not name.startswith(REMOVED)]


def _provenance(store: Store) -> Iterator[Garbage]:
    """Shared documents to which no replicate refers any more."""
    references = (
        (read_json(store.layout.provenance(id12, replicate), []) or {}).get("shared")
        for id12 in trials(store.layout)
        for replicate in store.replicates(id12)
    )
    used = set(shared.files(store.layout, references))
    folder = store.layout.root / "provenance"
    for path in sorted(folder.glob("[!.]*")) if folder.is_dir() else ():
        if path not in used and _is_quiet(path):
            yield Garbage(path, "no trial refers to it", size(path))


def _remains(store: Store) -> Iterator[Garbage]:
    """Folders of trials that were removed while a process was still writing to them: no record, no rows."""
    for id12 in trials(store.layout):
        folder = store.layout.trial(id12)
        if store.layout.trial_record(id12).exists() or any(folder.glob("r*/attempts/*/metrics-*.parquet")):
            continue
        if _is_quiet(folder) and all(_is_quiet(path) for path in folder.rglob("*")):
            yield Garbage(folder, "what is left of a trial that was removed", size(folder))


def _unused(store: Store) -> Iterator[Garbage]:
    used = {row.id for sweep in store.sweeps() for row in store.read_plan(sweep)}
    for id12 in trials(store.layout):
        said = notes.read(store.layout, id12, store.set_aside)
        if id12 in used or said.tags or said.note:
            continue
        if all(store.state_of(id12, replicate) not in ALIVE for replicate in store.replicates(id12)):
            path = store.layout.trial(id12)
            yield Garbage(path, "no sweep uses it, and it has neither tag nor note", size(path))


def _checkpoints(store: Store) -> Iterator[Garbage]:
    for id12 in trials(store.layout):
        for replicate in store.replicates(id12):
            if store.state_of(id12, replicate) not in HAS_RESULT:
                continue
            for attempt in store.attempts(id12, replicate):
                path = store.layout.checkpoints(store.layout.attempt(id12, replicate, attempt))
                if path.is_dir():
                    yield Garbage(path, "the replicate has its result", size(path))


def _is_quiet(path: Path) -> bool:
    try:
        return path.lstat().st_mtime < time.time() - QUIET_S
    except OSError:
        return False
