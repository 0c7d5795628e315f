"""Answers in the formats that other programs read, written as rows are found; only `table` holds all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

from expkit.errors import QueryError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

Format = Literal["table", "csv", "tsv", "json", "jsonl", "markdown", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = get_args(Format)
BINARY = frozenset({"parquet", "arrow"})
SUFFIXES: dict[str, Format] = {
    ".txt": "table", ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".md": "markdown", ".parquet": "parquet", ".arrow": "arrow", ".arrows": "arrow",
}  # fmt: skip


def format_of(file: Path) -> Format:
    """The format that a file's suffix means; UsageError for one that means none."""
    found = SUFFIXES.get(file.suffix.lower())
    if found is None:
        raise UsageError(f"{file}: the suffix {file.suffix!r} means no format; there are: {', '.join(SUFFIXES)}")
    return found


def write(rows: pa.RecordBatchReader, format: Format, out: IO[bytes], *, stream: bool = True) -> int:
    """Write all rows, and say how many there were; QueryError where a type of theirs is not of this format.

    Arrow is written as a stream, or as a file (which readers may jump in) where `stream` is false.
    """
    import pyarrow as pa

    counted = _Counted(rows)
    try:
        if format == "parquet":
            _parquet(counted, out)
        elif format == "arrow":
            _arrow(counted, out, stream=stream)
        else:
            for text in _TEXT[format](counted):
                out.write(text.encode())
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise QueryError(f"{format} cannot hold this answer ({' '.join(str(e).split())}); cast the column") from None
    return counted.rows


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that is there with all of its content or not at all."""
    from expkit.store.atomic import temporary

    beside = temporary(path)
    try:
        with beside.open("wb") as out:
            yield out
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


class _Counted:
    """The batches of an answer, counted as they pass."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self.schema: pa.Schema = rows.schema
        self.rows = 0
        self._batches = rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _table(counted: _Counted) -> Iterable[str]:
    import pyarrow as pa

    from expkit.store import answers

    yield answers.as_text(pa.Table.from_batches(list(counted), schema=counted.schema)) + "\n"


def _csv(counted: _Counted, separator: str = ",") -> Iterator[str]:
    from expkit.store import answers

    yield answers.header(counted.schema.names, separator)
    for batch in counted:
        yield answers.delimited(batch, separator)


def _tsv(counted: _Counted) -> Iterator[str]:
    return _csv(counted, "\t")


def _json(counted: _Counted) -> Iterator[str]:
    before = "[\n"
    for row in _rows(counted):
        yield before + "  " + json.dumps(row, indent=2, ensure_ascii=False, allow_nan=False).replace("\n", "\n  ")
        before = ",\n"
    yield "\n]\n" if counted.rows else "[]\n"


def _jsonl(counted: _Counted) -> Iterator[str]:
    for row in _rows(counted):
        yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _markdown(counted: _Counted) -> Iterator[str]:
    from expkit.report.markdown import escape
    from expkit.store import answers

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |\n"

    yield line(escape(answers.shown(name)) for name in counted.schema.names)
    yield line("---:" if answers.numeric(field.type) else "---" for field in counted.schema)
    for batch in counted:
        for row in answers.cells(batch):
            yield line(map(escape, row))


def _parquet(counted: _Counted, out: IO[bytes]) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(out, counted.schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in counted:
            writer.write_batch(batch)


def _arrow(counted: _Counted, out: IO[bytes], *, stream: bool) -> None:
    import pyarrow as pa

    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(out, counted.schema) as writer:
        for batch in counted:
            writer.write_batch(batch)


def _rows(counted: _Counted) -> Iterator[dict[str, Any]]:
    from expkit.store import answers

    for batch in counted:
        yield from answers.as_json(batch)


_TEXT: dict[str, Callable[[_Counted], Iterable[str]]] = {
    "table": _table, "csv": _csv, "tsv": _tsv, "json": _json, "jsonl": _jsonl, "markdown": _markdown,
}  # fmt: skip
