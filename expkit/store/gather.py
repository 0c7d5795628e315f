"""Gather: small metrics files of finished attempts are copied into one, for whoever reads after us; see `gathered`.

Costs 0.8 ms a file, twice what the reader would wait for its answer from them. Where it may not write, or somebody else
is at it, it reads the files as they lie.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb

from expkit.store import fold, gathered
from expkit.store.atomic import write_bytes, write_json
from expkit.store.compact import last_finished
from expkit.store.compacted import Key
from expkit.store.gathered import GATHERED_VERSION, Stamp, stamp_of
from expkit.store.index import SETTLED_S
from expkit.store.layout import Layout, Parts
from expkit.store.metrics import METRICS_SCHEMA_VERSION, SCHEMA, encoded
from expkit.store.scan import damage
from expkit.store.store import Store

ENOUGH_FILES, MOST_FILES = 256, 10_000
"""So many are worth a copy; what is beyond the most is left to the next reader."""
SMALL_BYTES = 1 << 16
"""Of a file on the average of its attempt: reading what is larger takes longer than opening it."""
AT_ONCE_BYTES = 32 << 20
"""Of files that become one copy: half a million rows or more, and 300 bytes of memory for each."""
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
    except (OSError, duckdb.Error):  # no right to write, no room, another reader; or a file has just gone
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
    """Copy up to MOST_FILES, every byte of them looked at; an attempt with a damaged one is left as it is."""
    portion: dict[str, Stamp] = {}
    copied = 0
    for stamps in small.values():
        if copied >= MOST_FILES:
            break
        if all(damage(path, METRICS_SCHEMA_VERSION) is None for path in stamps):
            portion |= stamps
            copied += len(stamps)
        if sum(size for _, size in portion.values()) >= AT_ONCE_BYTES:
            _write(layout, portion)
            portion = {}
    if portion:
        _write(layout, portion)


def _write(layout: Layout, made_from: Mapping[str, Stamp]) -> None:
    with duckdb.connect(":memory:") as con:
        rows = con.sql("SELECT * FROM read_parquet($files)", params={"files": list(made_from)}).to_arrow_table()
    data = encoded(fold.row_groups(fold.in_order([rows.cast(SCHEMA)])))
    name = f"gathered-{uuid.uuid4().hex}"
    write_bytes(layout.compacted_metrics(name), data, durable=False)
    parts = {path.removeprefix(f"{layout.trials}/"): list(stamp) for path, stamp in made_from.items()}
    record = {"schema_version": GATHERED_VERSION, "sha256": hashlib.sha256(data).hexdigest(), "parts": parts}
    write_json(layout.manifest(name), record, durable=False, indent=None)
