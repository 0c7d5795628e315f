"""Questions to the store in SQL, over the views of `views`; nothing can be changed or read but the results.

A connection shows the store as it was when it was opened. Any signal ends a query at once, and so does its time limit.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from expkit.errors import EnvironmentFault, ExpkitError, QueryError
from expkit.store import guard
from expkit.store.atomic import Unreadable
from expkit.store.opened import Opened
from expkit.store.running import UNLIMITED, Limits, run
from expkit.store.scan import TRIES
from expkit.store.store import Store
from expkit.store.views import VIEWS

T = TypeVar("T")
Params = Sequence[Any] | Mapping[str, Any]
ROWS_AT_ONCE = 122_880
"""Rows of a batch of a streamed answer; of a row group where it becomes a parquet file."""
_MEANT = re.compile(r'Did you mean ".*?"\?')
_OF_QUESTIONS = re.compile(
    r"(Binder|Catalog|Conversion|Constraint|Dependency|Divide by Zero|Extension Autoloading|INTERRUPT|Invalid Input"
    r"|Invalid Type|Mismatch Type|Missing Extension|Not implemented|Out of Memory|Out of Range|Parameter Not \w+|Parser"
    r"|Permission|Sequence|Settings|Syntax|TransactionContext) Error"
)
"""Kinds of errors that a question brings about; what damaged files do has others, or none."""
_NAMES = [view.name for view in VIEWS]


class Connection:
    """A runs folder as it was when this was made. Close it, or use it in a `with`."""

    def __init__(self, root: Path, limits: Limits = UNLIMITED, *, thorough: bool = False) -> None:
        self._store = Store(root)
        self._limits = limits
        self._thorough = thorough
        self._opened = Opened(self._store, limits, thorough=thorough)

    @property
    def store(self) -> Store:
        """The store behind the views, for a sweep's settings and target."""
        return self._store

    @property
    def set_aside(self) -> list[Unreadable]:
        """Files that could not be read so far, each once, with the reason. Records are read when a query needs them."""
        return list(dict.fromkeys(self._store.set_aside))

    def table(self, sql: str, params: Params = ()) -> pa.Table:
        """The answer to one reading statement as an Arrow table.

        QueryError for what is no such statement or fails, EnvironmentFault where a limit was reached.
        """
        answer = self._run(sql, params, lambda relation: relation.to_arrow_table(), lambda: True)
        return answer.rename_columns(_apart(answer.column_names))

    def rows(self, sql: str, params: Params = ()) -> list[dict[str, Any]]:
        """The answer to one reading statement, a dict a row."""
        return self.table(sql, params).to_pylist()  # type: ignore[no-any-return]

    def stream(self, sql: str, params: Params, take: Callable[[pa.RecordBatchReader], T], *, again: bool = False) -> T:
        """What `take` makes of the answer, of which it gets the rows as they are found; errors as of `table`.

        It runs in another thread. `again` says that it may be called a second time, from the start: when a trial ends,
        and at a compaction, rows move into other files. Before its first rows have come it is not called at all.
        """
        called = False

        def read(relation: duckdb.DuckDBPyRelation) -> T:
            nonlocal called
            rows = _reader(relation)
            called = True
            return take(rows)

        return self._run(sql, params, read, lambda: again or not called)

    def reopen(self) -> None:
        """Show the store as it is now."""
        self._opened.con.close()
        self._opened = Opened(self._store, self._limits, thorough=self._thorough)

    def interrupt(self) -> None:
        """Stop the running query, from another thread."""
        self._opened.con.interrupt()

    def close(self) -> None:
        """Let go of all files."""
        self._opened.con.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(
        self, sql: str, params: Params, take: Callable[[duckdb.DuckDBPyRelation], T], again: Callable[[], bool]
    ) -> T:
        def work() -> T:
            for _ in range(TRIES - 1):
                try:
                    return take(self._opened.relation(sql, params))
                except _FAILED as e:
                    self._settle(e, again())
            try:
                return take(self._opened.relation(sql, params))
            except _FAILED as e:
                raise _said(e) from None

        return run(work, self.interrupt, self._limits.seconds)

    def _settle(self, error: Exception, again: bool) -> None:
        """After a failure: the store opened anew where it comes from files that have moved or are damaged, and the
        question may be asked again; else the error that a person is told."""
        whole = self._opened.is_whole()
        damaged = whole and _of_a_file(error) and not self._thorough
        if whole and not damaged:
            raise _said(error) from None
        if not again:
            said = f"a metrics file is damaged ({guard.first_lines(error)}); --verify leaves out what is, by name"
            raise QueryError(said if damaged else "files were moved while they were read; ask again") from None
        self._thorough |= damaged
        self.reopen()


class _Unread(Exception):
    """What DuckDB says when it fails after the first rows."""


_FAILED = (duckdb.Error, pa.ArrowException, _Unread)


def _reader(relation: duckdb.DuckDBPyRelation) -> pa.RecordBatchReader:
    """The rows as they are found; an error in between is told apart from one of who takes them."""
    rows = relation.to_arrow_reader(ROWS_AT_ONCE)
    names = _apart(rows.schema.names)
    schema = pa.schema([field.with_name(name) for field, name in zip(rows.schema, names, strict=True)])

    def next_batch() -> pa.RecordBatch | None:
        try:
            return pa.RecordBatch.from_arrays(rows.read_next_batch().columns, schema=schema)
        except StopIteration:
            return None
        except (OSError, pa.ArrowException) as e:
            raise _Unread(str(e)) from None

    def batches(batch: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
        while batch is not None:
            yield batch
            batch = next_batch()

    first = next_batch()  # now: whoever takes the rows has not begun yet, and it is here that most errors come
    return pa.RecordBatchReader.from_batches(schema, batches(first))


def _of_a_file(error: Exception) -> bool:
    """Whether it may come from what stands in a metrics file, and not from the question."""
    text = str(error)
    return not _OF_QUESTIONS.match(text) or "Failed to read file" in text or "Parquet" in text


def _said(error: Exception) -> ExpkitError:
    text = guard.first_lines(error)
    if text.startswith("Table"):  # of other functions DuckDB knows more than we do
        text = _MEANT.sub(_ours, text)
    if str(error).startswith("Out of Memory Error"):
        return EnvironmentFault(f"the query reached its memory limit ({text})")
    return QueryError(text)


def _ours(suggested: re.Match[str]) -> str:
    """DuckDB suggests its own tables as well, and those behind our views."""
    return suggested[0] if set(re.findall(r"\w+", suggested[0])) & set(_NAMES) else f"There are: {', '.join(_NAMES)}"


def _apart(names: list[str]) -> list[str]:
    """Two columns of one name become `a` and `a_1`: a dict of a row would lose one."""
    taken: dict[str, None] = {}
    for name in names:
        numbered = (name if n == 0 else f"{name}_{n}" for n in itertools.count())
        taken[next(free for free in numbered if free not in taken)] = None
    return list(taken)


def connect(root: Path, limits: Limits = UNLIMITED, *, thorough: bool = False) -> Connection:
    """Open a runs folder for questions. A folder that is empty or missing has all views, without rows.

    `thorough` leaves out metrics files that are not as they were written, by name; it takes a second a gigabyte.
    Without it changed bytes are noticed where a query trips over them.
    """
    return Connection(Path(root).absolute(), limits, thorough=thorough)
