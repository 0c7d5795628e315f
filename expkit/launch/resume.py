"""Resume: from which checkpoint a replicate goes on, found in what its attempts have left. Imports no torch.

A checkpoint is good for nothing but going on: it is looked at byte by byte before an attempt is told to begin with it,
and moves into the folder of that attempt, so that the rules of which ones stay hold for all that there are.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from expkit.errors import CheckpointError
from expkit.store.store import Store
from expkit.trainer.checkpoint.local import LocalFolder
from expkit.trainer.checkpoint.manifest import Manifest, read_manifest
from expkit.trainer.checkpoint.verify import verify

CONTINUED = frozenset({"claimed", "running", "interrupted"})
"""States, as they were written, of what was begun and has no result; one that failed or diverged begins anew."""


@dataclass(frozen=True)
class Origin:
    """Where the next attempt at a replicate begins."""

    attempt: int = 0
    """The one in whose folder the checkpoint lies; 0 where there is none and the trial starts over."""
    batch: int = 0
    name: str | None = None
    passed_over: tuple[str, ...] = ()
    """A sentence for each newer checkpoint that cannot be used."""
    changed: tuple[str, ...] = ()
    """Modules whose code is not what it was in that attempt."""

    @property
    def continues(self) -> tuple[int, int] | None:
        """(attempt, batch), as a record has it."""
        return None if self.name is None else (self.attempt, self.batch)

    def sentence(self) -> str | None:
        """What is to be said about it; None where there is nothing but a first or a fresh start."""
        what = f"it goes on from batch {self.batch} of attempt {self.attempt}" if self.name else "it starts over"
        what += with_other_code(self.changed)
        if self.passed_over:
            return f"{'; '.join(self.passed_over)}; so {what}"
        return what if self.name else None


def origin(store: Store, id12: str, replicate: int, nproc: int, sources: Mapping[str, str] | None = None) -> Origin:
    """The newest checkpoint that is whole, of the latest attempt and those that it continued.

    One that other ranks have written is none: quality is compared between equal numbers of ranks only. `sources`: the
    versions of the code now, where one wants to know whether they are those of that attempt.
    """
    passed_over: list[str] = []
    for attempt in lineage(store, id12, replicate):
        folder = store.layout.checkpoints(store.layout.attempt(id12, replicate, attempt))
        found, wrong = LocalFolder(folder).found()
        passed_over += map(str, wrong)
        for one in reversed(found):
            if (why := _why_not(folder / one.name, one.manifest, nproc)) is None:
                changed = changed_since(_sources(store, id12, replicate, attempt), sources or {})
                return Origin(attempt, one.manifest.timestamp.batch, one.name, tuple(passed_over), changed)
            passed_over.append(why)
    return Origin(passed_over=tuple(passed_over))


def lineage(store: Store, id12: str, replicate: int) -> Iterator[int]:
    """The latest attempt, the one that it continued, and so on."""
    attempts = store.attempts(id12, replicate)
    while attempts:
        attempt = attempts[-1]
        yield attempt
        record = store.read_attempt(store.layout.attempt(id12, replicate, attempt))
        if record is None:  # its driver was killed before it could say anything, so it never began
            attempts = attempts[:-1]
        else:
            before = record["from"]["attempt"] if record.get("from") else 0
            attempts = [number for number in attempts if number <= min(before, attempt - 1)]


def changed_since(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Modules that both know, in different versions."""
    return tuple(sorted(module for module in before.keys() & now.keys() if before[module] != now[module]))


def with_other_code(modules: Iterable[str]) -> str:
    """The end of a sentence about an attempt that goes on with them."""
    return f", with other code than before: {', '.join(modules)}" if modules else ""


def take_over(store: Store, id12: str, replicate: int, start: Origin, attempt_dir: Path) -> None:
    """Move all checkpoints of the attempt that is continued to the one that goes on."""
    if start.name is not None:
        left = store.layout.checkpoints(store.layout.attempt(id12, replicate, start.attempt))
        os.rename(left, store.layout.checkpoints(attempt_dir))  # noqa: PTH104  # all of them or none


def forget(store: Store, id12: str, replicate: int, *, but: int | None) -> None:
    """Remove the checkpoints of all attempts but one; nobody goes on from a trial that has a result."""
    for attempt in store.attempts(id12, replicate):
        if attempt != but:
            folder = store.layout.checkpoints(store.layout.attempt(id12, replicate, attempt))
            shutil.rmtree(folder, ignore_errors=True)


def checkpoints(store: Store, id12: str, replicate: int) -> list[Path]:
    """All that lie there now, oldest first."""
    folders = [store.layout.checkpoints(store.layout.attempt(id12, replicate, attempt))
               for attempt in store.attempts(id12, replicate)]  # fmt: skip
    return [folder / one.name for folder in folders for one in LocalFolder(folder).found()[0]]


@dataclass(frozen=True)
class Beginning:
    """How an attempt began that was not the first, or could have been told to go on."""

    attempt: int
    continues: int | None
    """The attempt that it went on from; None where it started over."""
    batch: int
    passed_over: tuple[str, ...]
    """Why newer checkpoints were not used."""
    changed: tuple[str, ...]
    """Modules whose code was another than in the attempt that it went on from."""

    def sentence(self) -> str:
        """`attempt 2 went on from batch 12 of attempt 1`."""
        what = f"went on from batch {self.batch} of attempt {self.continues}" if self.continues else "started over"
        return "; ".join([f"attempt {self.attempt} {what}{with_other_code(self.changed)}", *self.passed_over])


def continued(store: Store, id12: str, replicate: int) -> list[Beginning]:
    """How each attempt after the first began."""
    begun = []
    for attempt in store.attempts(id12, replicate)[1:]:
        record = store.read_attempt(store.layout.attempt(id12, replicate, attempt)) or {}
        before = record.get("from") or {"attempt": None, "batch": 0}
        earlier = _sources(store, id12, replicate, before["attempt"]) if before["attempt"] else {}
        changed = changed_since(earlier, record.get("sources", {}))
        passed_over = tuple(record.get("passed_over", ()))
        begun.append(Beginning(attempt, before["attempt"], before["batch"], passed_over, changed))
    return begun


def size(checkpoint: Path) -> int:
    """Bytes of one, as its manifest says."""
    return sum(int(file["size"]) for file in read_manifest(checkpoint).files.values())


def _sources(store: Store, id12: str, replicate: int, attempt: int) -> dict[str, str]:
    record = store.read_attempt(store.layout.attempt(id12, replicate, attempt)) or {}
    return record.get("sources") or {}


def _why_not(folder: Path, manifest: Manifest, nproc: int) -> str | None:
    if manifest.weights_only:
        return f"checkpoint {folder} holds weights only"
    if manifest.world_size != nproc:
        return f"checkpoint {folder} is one of {manifest.world_size} ranks, and there are {nproc} now"
    try:
        verify(folder, manifest)
    except CheckpointError as e:
        return f"checkpoint {e}"
    except OSError as e:
        return f"checkpoint {folder} cannot be read: {e.strerror or e}"
    return None
