"""Fold: metrics files read with every check, put in order, written as few, read back before anything is removed.

The order is (name, id, batch), so a query for one metric reads a stretch of each column and skips the rest: no row
group holds the end of a long series and the beginning of another. Takes about 1 microsecond and 300 bytes a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from expkit.errors import EnvironmentFault
from expkit.store import scan, seal
from expkit.store.atomic import sync_folder, write_bytes
from expkit.store.compacted import Key
from expkit.store.layout import Layout, Parts
from expkit.store.metrics import METRICS_SCHEMA_VERSION, SCHEMA, encoded
from expkit.store.scan import SEALED_SINCE, counting, metrics_of, missing, usable

ENOUGH_ROWS = 1_000_000
"""A file of so many is closed: an attempt of more becomes several."""
LEAST_IN_GROUP, MOST_IN_GROUP = 1 << 14, 1 << 17
"""Rows of a row group: a name that begins after so many opens the next; a longer series is cut."""
_VERSION_KEY = b"expkit.metrics.schema_version"


class Damaged(Exception):
    """A metrics file that is not as it was written; says how, as a sentence's end."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def read(path: Path) -> pa.Table:
    """All rows of a metrics file, of this or the former schema, every byte checked; Damaged where one is wrong."""
    try:
        reason = usable(str(path), METRICS_SCHEMA_VERSION)
        if reason is not None:
            raise Damaged(path, reason)
        data = path.read_bytes()
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        if int(file.schema_arrow.metadata[_VERSION_KEY]) >= SEALED_SINCE and not seal.data_is_whole(data):
            raise Damaged(path, "was changed since it was written: its data and its seal disagree")
        if not file.schema_arrow.equals(SCHEMA):
            raise Damaged(path, "has other columns than a metrics file")
        return file.read(use_threads=False).replace_schema_metadata(SCHEMA.metadata)  # no pool that outlives us
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as e:
        first = str(e).splitlines()[0] if str(e) else type(e).__name__
        raise Damaged(path, f"cannot be read ({first})") from e


def damage(path: Path) -> str | None:
    """How a metrics file is not as it was written, None where it is; a sealed one is not decoded for it."""
    try:
        reason = scan.damage(str(path), METRICS_SCHEMA_VERSION)
        if reason is None and not seal.has_seal(path.read_bytes()):
            read(path)
    except OSError as e:
        return f"cannot be read ({e.strerror})"
    except Damaged as e:
        return e.reason
    return reason


def misplaced(path: Path, key: Key) -> str | None:
    """How a file in this attempt's folder is of another one, told from its footer alone."""
    metadata = pq.read_metadata(path)
    for name, value in zip(Key._fields, key, strict=True):
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(SCHEMA.names.index(name)).statistics
            for found in (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else ():
                if found != value:
                    return f"holds rows of another {name}: {found}"
    return None


def in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows, by (name, id, batch), then replicate, attempt and rank, then as they came."""
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    keys = [np.asarray(table[name]) for name in ("rank", "attempt", "replicate", "batch")]
    keys += [_places(table[name]) for name in ("id", "name")]
    moving = [key for key in keys if len(key) and key.min() != key.max()]
    return table.take(np.lexsort(moving)) if moving else table


def row_groups(table: pa.Table) -> Iterator[pa.Table]:
    """A table in order cut into row groups: where a series begins, unless the one before would be tiny."""
    codes = np.asarray(_chunk(table["name"]).indices)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    begin = 0
    for end in [*starts[1:].tolist(), len(table)]:
        while end - begin > MOST_IN_GROUP:
            yield table.slice(begin, MOST_IN_GROUP)
            begin += MOST_IN_GROUP
        if end - begin >= LEAST_IN_GROUP or (end == len(table) and end > begin):
            yield table.slice(begin, end - begin)
            begin = end


def write(table: pa.Table, path: Path) -> tuple[int, str]:
    """Write a table in order, read it back and compare; (bytes, sha256). A reader sees it when all is well."""
    data = encoded(row_groups(table))
    aside = path.with_name(f".{path.name}.unread")
    try:
        write_bytes(aside, data)
        back = read(aside)
        if aside.read_bytes() != data or not _same(back, table):
            raise EnvironmentFault(f"{path} reads otherwise than it was written; nothing was removed for it")
        aside.replace(path)
        sync_folder(path.parent)
    except Damaged as e:
        raise EnvironmentFault(f"{path} reads otherwise than it was written ({e.reason})") from e
    finally:
        aside.unlink(missing_ok=True)
    return len(data), hashlib.sha256(data).hexdigest()


def fold(attempt_dir: Path, key: Key) -> None:
    """Make the parts of one rank of an attempt one file, or few; Damaged, and nothing lost, where one is damaged.

    For an attempt that nobody writes any more. Parts go when the file that stands for them was read back.
    """
    for portion in _portions(files_of(attempt_dir, key)):
        if len(portion) > 1:
            first, last = Parts.of(portion[0]), Parts.of(portion[-1])
            assert first is not None and last is not None
            target = Layout.metrics(attempt_dir, key.rank, first.first, last.last)
            write(in_order([rows_of(path, key) for path in portion]), target)
    remove_folded(attempt_dir)


def files_of(attempt_dir: Path, key: Key) -> dict[str, int]:
    """The files that hold each row of a rank once, with how many, in the order of their parts; Damaged where one is."""
    paths = [path for path in metrics_of(attempt_dir) if (parts := Parts.of(path)) and parts.rank == key.rank]
    for gap in missing(paths):
        raise Damaged(Layout.metrics(attempt_dir, gap.rank, gap.first), "is missing")
    return {path: _num_rows(Path(path)) for path in counting(paths, _is_usable)}


def rows_of(path: str, key: Key) -> pa.Table:
    """The rows of a file in this attempt's folder; Damaged where a byte is wrong, or where they are of another."""
    rows = read(Path(path))
    for name, value in zip(Key._fields, key, strict=True):
        if (found := rows[name].unique().to_pylist()) not in ([], [value]):
            raise Damaged(Path(path), f"holds rows of another {name}: {', '.join(map(str, found))}")
    return rows


def remove_folded(attempt_dir: Path) -> None:
    """Remove the parts for which a folded file stands; a kill may have left some."""
    paths = metrics_of(attempt_dir)
    for path in set(paths) - set(counting(paths, lambda path: usable(path, METRICS_SCHEMA_VERSION) is None)):
        if usable(path, METRICS_SCHEMA_VERSION) is None:
            Path(path).unlink(missing_ok=True)


def _is_usable(path: str) -> bool:
    reason = usable(path, METRICS_SCHEMA_VERSION)
    if reason is not None:
        raise Damaged(Path(path), reason)
    return True


def _num_rows(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as e:
        raise Damaged(path, f"cannot be read ({e})") from e


def _portions(files: Mapping[str, int]) -> Iterator[list[str]]:
    portion: list[str] = []
    rows = 0
    for path, count in files.items():
        portion.append(path)
        rows += count
        if rows >= ENOUGH_ROWS:
            yield portion
            portion, rows = [], 0
    if portion:
        yield portion


def _same(a: pa.Table, b: pa.Table) -> bool:
    """Whether two tables hold the same bits; unlike `equals`, NaN is the same as itself."""
    return len(a) == len(b) and all(_bits(a[name]).equals(_bits(b[name])) for name in SCHEMA.names)


def _bits(column: pa.ChunkedArray) -> pa.Array:
    chunk = _chunk(column)
    if pa.types.is_dictionary(chunk.type):
        return chunk.dictionary_decode()
    return chunk.view(pa.int64()) if pa.types.is_floating(chunk.type) else chunk


def _places(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """For each row of a column of texts the place of its text among all, sorted by their UTF-8 bytes as DuckDB does."""
    chunk = _chunk(column)
    texts = np.array([text.encode() for text in chunk.dictionary.to_pylist()], dtype=object)
    place = np.empty(len(texts), dtype=np.int16 if len(texts) < 1 << 15 else np.int32)  # 16 bits sort 5 times as fast
    place[np.argsort(texts, kind="stable")] = np.arange(len(texts))
    of_row: np.ndarray[Any, Any] = place[np.asarray(chunk.indices)]
    return of_row


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
