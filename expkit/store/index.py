"""Index: what a listing and the records of complete trials say, kept beside the compacted files, so that it need not be
read again: a complete replicate never changes.

An entry holds while the trial's folder and the status of each replicate are as old as they were. Where it does not, or
where the index is damaged or of another version, all is read that it would have saved, and nothing else is different.
Takes 10 microseconds a trial; listing takes 100, reading its records 400.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from expkit.store import seal
from expkit.store.atomic import read_json, sync_folder, write_bytes, write_json
from expkit.store.layout import INDEX_TABLE, Layout

if TYPE_CHECKING:
    import pyarrow as pa

INDEX_VERSION = 1
SETTLED_S = 5.0
"""A change this young is left out: clocks of file systems have steps, and the next change might get the same time."""


class Complete(NamedTuple):
    """One replicate that is complete."""

    replicate: int
    attempts: tuple[int, ...]
    begun_ns: int
    """When the last attempt was begun, or one removed."""
    changed_ns: int
    """When its status.json was replaced."""
    size: int
    """Bytes of its status.json."""


@dataclass(frozen=True)
class Entry:
    """A trial of which every replicate is complete and in compacted files."""

    changed_ns: int
    """When something in the trial's folder was made, renamed or removed."""
    replicates: tuple[Complete, ...]


@dataclass(frozen=True)
class Index:
    """What one compaction knew."""

    compacted: frozenset[str] = frozenset()
    """Names of the compacted files that hold the metrics of these trials."""
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """By id12."""
    tables: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By name of a table: its file, and what its columns were."""

    def holds(self, layout: Layout, id12: str) -> Entry | None:
        """The entry of a trial; None where something was changed since, or nothing is known."""
        entry = self.entries.get(id12)
        if entry is None:
            return None
        attempts = {each.replicate: each.attempts for each in entry.replicates}
        return entry if _entry(layout, id12, attempts) == entry else None

    def table(self, layout: Layout, name: str, schema: pa.Schema) -> pa.Table | None:
        """Rows of all entries, those that hold no more too; None where there are none with these columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, columns = self.tables.get(name, ("", ""))
        if not file or columns != _columns(schema):
            return None
        try:
            data = (layout.compacted / file).read_bytes()
            if not seal.is_whole(data):
                return None
            return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).cast(schema)
        except (OSError, ValueError, pa.ArrowException):
            return None  # replaced meanwhile, or damaged


def read(layout: Layout) -> Index:
    """The index; an empty one where there is none that can be used."""
    value = read_json(layout.index, [])
    if value is None or value.get("schema_version") != INDEX_VERSION:
        return Index()
    try:
        entries = {
            id12: Entry(changed, tuple(Complete(r, tuple(attempts), *stat) for r, attempts, *stat in replicates))
            for id12, (changed, replicates) in value["entries"].items()
        }
        tables = {name: (str(file), str(columns)) for name, (file, columns) in value["tables"].items()}
        return Index(frozenset(value["compacted"]), entries, tables)
    except (AttributeError, KeyError, TypeError, ValueError):
        return Index()


def entry_of(layout: Layout, id12: str, attempts: Mapping[int, tuple[int, ...]]) -> Entry | None:
    """The entry of a trial with these attempts of its replicates; None where it changed just now."""
    entry = _entry(layout, id12, attempts)
    if entry is None:
        return None
    youngest = max(entry.changed_ns, *(max(each.begun_ns, each.changed_ns) for each in entry.replicates))
    return entry if youngest < (time.time() - SETTLED_S) * 1e9 else None


def write(
    layout: Layout, compacted: Iterable[str], entries: Mapping[str, Entry], tables: Mapping[str, pa.Table]
) -> None:
    """Replace the index; a reader sees the old one or the new."""
    files = {name: (f"index-{uuid.uuid4().hex}.parquet", _columns(table.schema)) for name, table in tables.items()}
    for name, (file, _) in files.items():
        write_bytes(layout.compacted / file, _parquet(tables[name]))
    plain = {
        id12: [entry.changed_ns, [[r, list(attempts), *stat] for r, attempts, *stat in entry.replicates]]
        for id12, entry in entries.items()
    }
    record = {"schema_version": INDEX_VERSION, "compacted": sorted(compacted), "tables": files, "entries": plain}
    write_json(layout.index, record, indent=None)
    sync_folder(layout.compacted)
    clear(layout)


def clear(layout: Layout) -> None:
    """Remove tables of former indexes."""
    kept = {file for file, _ in read(layout).tables.values()}
    for path in layout.compacted.iterdir():
        if INDEX_TABLE.fullmatch(path.name) and path.name not in kept:
            path.unlink(missing_ok=True)


def _entry(layout: Layout, id12: str, attempts: Mapping[int, tuple[int, ...]]) -> Entry | None:
    try:
        changed = os.stat(f"{layout.trials}/{id12}").st_mtime_ns  # noqa: PTH116  # 10,000 Path objects would show
        complete = []
        for replicate, numbers in attempts.items():
            folder = f"{layout.trials}/{id12}/r{replicate}"
            begun, status = os.stat(f"{folder}/attempts"), os.stat(f"{folder}/status.json")  # noqa: PTH116
            complete.append(Complete(replicate, numbers, begun.st_mtime_ns, status.st_mtime_ns, status.st_size))
    except OSError:
        return None
    return Entry(changed, tuple(complete))


def _columns(schema: pa.Schema) -> str:
    return hashlib.sha256(str(schema.remove_metadata()).encode()).hexdigest()[:16]


def _parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return seal.sealed(sink.getvalue().to_pybytes())
