"""What a rank printed: which file it is, and its bytes, to the end or until its replicate has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from expkit.errors import UsageError
from expkit.store.store import Store

POLL_S = 0.2
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Log:
    """The log of one rank in one attempt."""

    store: Store
    id12: str
    replicate: int
    attempt: int
    rank: int

    @property
    def path(self) -> Path:
        """The file, which may not be there yet."""
        return self.store.layout.log(self.store.layout.attempt(self.id12, self.replicate, self.attempt), self.rank)

    def goes_on(self) -> bool:
        """Whether more may be printed: this is the latest attempt, and its process lives or is about to."""
        if self.store.attempts(self.id12, self.replicate)[-1] != self.attempt:
            return False
        return self.store.state_of(self.id12, self.replicate) in ("claimed", "running")

    def chunks(self, *, follow: bool = False) -> Iterator[bytes]:
        """Its bytes; with `follow`, also what is printed from now on, until the replicate has ended."""
        at = 0
        while True:
            over = not follow or not self.goes_on()  # looked at first: what came before the end is read below
            for chunk in self._from(at):
                at += len(chunk)
                yield chunk
            if over:
                return
            time.sleep(POLL_S)

    def _from(self, at: int) -> Iterator[bytes]:
        if not self.path.exists():
            return
        with self.path.open("rb") as f:
            f.seek(at)
            while chunk := f.read(_CHUNK_BYTES):
                yield chunk


def log_of(store: Store, id12: str, replicate: int, *, rank: int = 0, attempt: int | None = None) -> Log:
    """The log of a rank, of the latest attempt where none is named; UsageError says which there are."""
    attempts = store.attempts(id12, replicate)
    if not attempts:
        raise UsageError(f"trial {id12} r{replicate} has not been started, so there is no log of it")
    if attempt is not None and attempt not in attempts:
        raise UsageError(f"trial {id12} r{replicate} has no attempt {attempt}; there are: {_listed(attempts)}")
    log = Log(store, id12, replicate, attempt or attempts[-1], rank)
    if not log.path.exists() and not (rank == 0 and log.goes_on()):
        ranks = store.layout.ranks(log.path.parent)
        raise UsageError(f"{log.path.parent} has no log of rank {rank}; there are: {_listed(ranks) or 'none'}")
    return log


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
