"""Index: what a listing and the records of complete trials say, kept beside the compacted files, so that it need not be
read again: a complete replicate never changes.

Nothing of it is believed without a look at what it was made from: a listing while the folders are as old as they were,
rows of a table while the trial's files are as old and as long. Where they are not, or where the index is damaged or of
another version, all is read that it would have saved, and nothing else is different. A look takes 5 microseconds a
trial, listing it takes 100, reading its records 400.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from expkit.store import seal
from expkit.store.atomic import read_json, sync_folder, write_bytes, write_json
from expkit.store.layout import INDEX_TABLE, Layout

if TYPE_CHECKING:
    import pyarrow as pa

INDEX_VERSION = 2
SETTLED_S = 5.0
"""A change this young is left out: clocks of file systems have steps, and the next change might get the same time."""
Attempts = Mapping[int, tuple[int, ...]]
"""Of each replicate the numbers of its attempts, in order."""


class Entry(NamedTuple):
    """A trial of which every replicate is complete and in compacted files, as texts: they are read and compared as one.

    Stamps say when a folder or file was changed, in nanoseconds, and of a file also its bytes; -1 where there is none.
    """

    attempts: str
    """`0:1,2 1:1` for two of r0 and one of r1."""
    folders: str
    """Stamps of the trial's and each replicate's attempts: they change when something in them comes or goes."""
    records: str
    """Of trial.json and each status.json."""
    events: str
    """Of each attempt's events.jsonl."""


_ENTRY = re.compile(r"(?:\d+:(?:\d+(?:,\d+)*)? ?)+(?:;[\d -]*){3}")
_MADE_FROM = {"trials": "records", "params": "records", "events": "events"}
"""By name of a table: the files that its rows come from."""


@dataclass(frozen=True)
class Index:
    """What one compaction knew."""

    compacted: frozenset[str] = frozenset()
    """Names of the compacted files that hold the metrics of these trials."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """By id12 the texts of its Entry, with `;` between them."""
    tables: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By name of a table: its file, and what its columns were."""

    def listing(self, layout: Layout, id12: str) -> Attempts | None:
        """The attempts of a trial's replicates; None where one came or went since, or nothing is known."""
        entry = self._entry(id12)
        if entry is None:
            return None
        attempts = _attempts(entry.attempts)
        return attempts if entry.folders == _folders(layout, id12, attempts) else None

    def complete(self, layout: Layout, id12: str) -> Attempts:
        """As `listing`, where the records that say that they are complete are the same too; else none."""
        attempts = self.listing(layout, id12)
        return attempts if attempts is not None and self.has(layout, "trials", id12, attempts) else {}

    def has(self, layout: Layout, table: str, id12: str, attempts: Attempts) -> bool:
        """Whether the rows of a trial with these attempts are what its files say now."""
        entry, kind = self._entry(id12), _MADE_FROM[table]
        if entry is None or _attempts(entry.attempts) != attempts:
            return False
        return bool(getattr(entry, kind) == _STAMPS[kind](layout, id12, attempts))

    def fits(self, schemas: Mapping[str, pa.Schema]) -> bool:
        """Whether its tables have these columns; another version of expkit may have others."""
        return {name: columns for name, (_, columns) in self.tables.items()} == {
            name: _columns(schema) for name, schema in schemas.items()
        }

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

    def _entry(self, id12: str) -> Entry | None:
        texts = self.entries.get(id12, "").split(";")
        return Entry(*texts) if len(texts) == len(Entry._fields) else None


NOTHING = Index()


def read(layout: Layout) -> Index:
    """The index; an empty one where there is none that can be used."""
    value = read_json(layout.index, [])
    if value is None or value.get("schema_version") != INDEX_VERSION:
        return NOTHING
    try:
        entries = value["entries"]
        if not all(map(_ENTRY.fullmatch, entries.values())):
            return NOTHING
        tables = {name: (str(file), str(columns)) for name, (file, columns) in value["tables"].items()}
        return Index(frozenset(value["compacted"]), entries, tables)
    except (AttributeError, KeyError, TypeError, ValueError):
        return NOTHING


def entry_of(layout: Layout, id12: str, attempts: Attempts) -> str | None:
    """The entry of a trial with these attempts of its replicates; None where it changed just now."""
    own = " ".join(f"{r}:{','.join(map(str, numbers))}" for r, numbers in attempts.items())
    stamps = [of(layout, id12, attempts) for of in _STAMPS.values()]
    youngest = max(int(number) for text in stamps for number in text.split())  # sizes are far below any time
    return ";".join((own, *stamps)) if youngest < (time.time() - SETTLED_S) * 1e9 else None


def write(layout: Layout, compacted: Iterable[str], entries: Mapping[str, str], tables: Mapping[str, pa.Table]) -> None:
    """Replace the index; a reader sees the old one or the new."""
    files = {name: (f"index-{uuid.uuid4().hex}.parquet", _columns(table.schema)) for name, table in tables.items()}
    for name, (file, _) in files.items():
        write_bytes(layout.compacted / file, _parquet(tables[name]))
    record = {"schema_version": INDEX_VERSION, "compacted": sorted(compacted), "tables": files, "entries": entries}
    write_json(layout.index, record, indent=None)
    sync_folder(layout.compacted)
    clear(layout)


def clear(layout: Layout) -> None:
    """Remove tables of former indexes."""
    kept = {file for file, _ in read(layout).tables.values()}
    for path in layout.compacted.iterdir():
        if INDEX_TABLE.fullmatch(path.name) and path.name not in kept:
            path.unlink(missing_ok=True)


@cache  # most trials have the same
def _attempts(text: str) -> Attempts:
    of = (each.split(":") for each in text.split())
    return {int(replicate): tuple(map(int, filter(None, numbers.split(",")))) for replicate, numbers in of}


def _folders(layout: Layout, id12: str, attempts: Attempts) -> str:
    trial = f"{layout.trials}/{id12}"
    return " ".join([_changed(trial), *[_changed(f"{trial}/r{replicate}/attempts") for replicate in attempts]])


def _records(layout: Layout, id12: str, attempts: Attempts) -> str:
    trial = f"{layout.trials}/{id12}"
    return " ".join([_stamp(f"{trial}/trial.json"), *[_stamp(f"{trial}/r{r}/status.json") for r in attempts]])


def _events(layout: Layout, id12: str, attempts: Attempts) -> str:
    folders = [f"{layout.trials}/{id12}/r{r}/attempts/{k}" for r, numbers in attempts.items() for k in numbers]
    return " ".join([_stamp(f"{folder}/events.jsonl") for folder in folders])


_STAMPS = {"folders": _folders, "records": _records, "events": _events}


def _changed(path: str) -> str:
    try:
        return str(os.stat(path).st_mtime_ns)  # noqa: PTH116  # 10,000 Path objects would show
    except OSError:
        return "-1"


def _stamp(path: str) -> str:
    try:
        stat = os.stat(path)  # noqa: PTH116
    except OSError:
        return "-1"
    return f"{stat.st_mtime_ns} {stat.st_size}"


def _columns(schema: pa.Schema) -> str:
    return hashlib.sha256(str(schema.remove_metadata()).encode()).hexdigest()[:16]


def _parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return seal.sealed(sink.getvalue().to_pybytes())
