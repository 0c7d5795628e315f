"""Gather: small metrics files of finished attempts are copied into one, for whoever reads after us; see `gathered`.

What is copied is read with every check, as in compaction: 1 ms a file, so the reader that does it waits about as long
as for its answer. Where it may not write, or somebody else is at it, it reads the files as they lie.
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from expkit.errors import EnvironmentFault
from expkit.store import fold, gathered
from expkit.store.atomic import write_json
from expkit.store.compact import last_finished
from expkit.store.compacted import Key
from expkit.store.fold import ENOUGH_ROWS, Damaged
from expkit.store.gathered import GATHERED_VERSION, Stamp, stamp_of
from expkit.store.index import SETTLED_S
from expkit.store.layout import Layout, Parts
from expkit.store.store import Store

ENOUGH_FILES, MOST_FILES = 256, 10_000
"""So many are worth a copy; what is beyond the most is left to the next reader."""
SMALL_BYTES = 1 << 16
"""Of a file on the average of its attempt: reading what is larger takes longer than opening it."""
Small = dict[Key, dict[str, Stamp]]
"""The files of one rank of an attempt."""


def gather(store: Store, files: Sequence[str], copies: Sequence[str]) -> bool:
    """Copy what is small and finished of the files that count; whether there is something new to be read.

    `copies` are the names of all copies when the files were listed.
    """
    small = _small(store.layout, files)
    if not _is_enough(small):
        return False
    small = {key: paths for key, paths in small.items() if key.attempt <= last_finished(store, key.id, key.replicate)}
    if not _is_enough(small):
        return False
    try:
        with _alone(store.layout):
            if gathered.names(store.layout) == copies:  # nobody else was quicker
                gathered.clear(store.layout)
                _copy(store.layout, small)
    except (OSError, EnvironmentFault):
        return False
    return True


@contextmanager
def _alone(layout: Layout) -> Iterator[None]:
    layout.compacted.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(layout.compacted / ".gathering", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process, however that ends
        yield
    finally:
        os.close(descriptor)


def _small(layout: Layout, files: Sequence[str]) -> Small:
    """By attempt and rank the files that are small, were not changed just now, and are those of trials."""
    found: Small = {}
    own = f"{layout.trials}/"
    for path in files:
        if path.startswith(own) and (parts := Parts.of(path)) and (stamp := stamp_of(path)):
            found.setdefault(Key(*gathered.attempt_of(path), parts.rank), {})[path] = stamp
    return {key: paths for key, paths in found.items() if _is_worth_it(paths.values())}


def _is_worth_it(stamps: Collection[Stamp]) -> bool:
    settled = max(ns for ns, _ in stamps) < (time.time() - SETTLED_S) * 1e9
    return settled and sum(size for _, size in stamps) < SMALL_BYTES * len(stamps)


def _is_enough(small: Small) -> bool:
    return sum(map(len, small.values())) >= ENOUGH_FILES


def _copy(layout: Layout, small: Small) -> None:
    """Copy up to MOST_FILES; an attempt with a damaged one is left as it is."""
    rows: list[pa.Table] = []
    made_from: dict[str, Stamp] = {}
    copied = 0
    for key, stamps in small.items():
        try:
            own = [fold.rows_of(path, key) for path in stamps]
        except (Damaged, FileNotFoundError):
            continue
        rows += own
        made_from |= stamps
        copied += len(stamps)
        if sum(map(len, rows)) >= ENOUGH_ROWS or copied >= MOST_FILES:
            _write(layout, rows, made_from)
            rows, made_from = [], {}
        if copied >= MOST_FILES:
            return
    if rows:
        _write(layout, rows, made_from)


def _write(layout: Layout, rows: Sequence[pa.Table], made_from: Mapping[str, Stamp]) -> None:
    name = f"gathered-{uuid.uuid4().hex}"
    _, sha256 = fold.write(fold.in_order(rows), layout.compacted_metrics(name))
    parts = {path.removeprefix(f"{layout.trials}/"): list(stamp) for path, stamp in made_from.items()}
    record = {"schema_version": GATHERED_VERSION, "sha256": sha256, "parts": parts}
    write_json(layout.manifest(name), record, indent=None)
