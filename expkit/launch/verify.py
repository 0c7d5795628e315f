"""Verify: the files of a store and its checkpoints, each with how it is damaged."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from expkit.errors import CheckpointError
from expkit.launch.resume import checkpoints
from expkit.store import verify as store_verify
from expkit.store.find import trials
from expkit.store.store import Store
from expkit.trainer.checkpoint.manifest import read_manifest
from expkit.trainer.checkpoint.verify import verify as verify_checkpoint


def verify(store: Store, ids: Collection[str] | None = None) -> Iterator[tuple[Path, str | None]]:
    """(a file or checkpoint, how it is damaged or None), of these trials or of all."""
    yield from store_verify.verify(store, ids)
    for id12 in trials(store.layout):
        for replicate in store.replicates(id12) if ids is None or id12 in ids else ():
            for folder in checkpoints(store, id12, replicate):
                yield folder, _damage_of(folder)


def _damage_of(folder: Path) -> str | None:
    try:
        verify_checkpoint(folder, read_manifest(folder))
    except (CheckpointError, OSError) as e:
        return str(e).removeprefix(f"{folder} ")
    return None
