"""Questions to the store in SQL: a DuckDB connection with the views of `views`, locked to exactly the store's files.

Metrics files are read natively by DuckDB and are the only files it may open; everything else comes as Arrow tables
that are read when a query first names them. A connection shows the store as it was when it was opened.
Opening costs about 0.2 s at 2,000 metrics files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from expkit.errors import QueryError
from expkit.store import guard, tables
from expkit.store.atomic import Unreadable
from expkit.store.metrics import METRICS_SCHEMA_VERSION, SCHEMA
from expkit.store.scan import look
from expkit.store.store import Store
from expkit.store.sweeps import plan_schema
from expkit.store.views import STITCHED, VIEWS, WHOLE

LOCK = (
    "SET enable_external_access = false",
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",  # else SQL could name the caller's variables
    "SET lock_configuration = true",  # last: nothing above can be undone
)
Params = Sequence[Any] | Mapping[str, Any]
_SHOW_TABLES = re.compile(r"\s*SHOW\s+(ALL\s+)?TABLES\b", re.IGNORECASE)
_OURS = re.compile(r'Did you mean "_\w+( or [^"]*)?"\?')
_THERE_ARE = f"There are: {', '.join(v.name for v in VIEWS)}"


class Connection:
    """A runs folder as it was when this was made. Close it, or use it in a `with`."""

    def __init__(self, root: Path) -> None:
        self._store = Store(root)
        self._open()

    @property
    def store(self) -> Store:
        """The store behind the views, for a sweep's settings and target."""
        return self._store

    @property
    def set_aside(self) -> list[Unreadable]:
        """Files that could not be read so far, each once, with the reason. Records are read when a query needs them."""
        return list(dict.fromkeys(self._store.set_aside))

    def table(self, sql: str, params: Params = ()) -> pa.Table:
        """The answer to one reading statement as an Arrow table; QueryError for anything else."""
        try:
            answer = self._answer(sql, params)
        except (duckdb.Error, pa.ArrowException) as e:
            if all(Path(file).exists() for file in self._look.files):
                raise QueryError(_OURS.sub(_THERE_ARE, guard.first_lines(e))) from None
            answer = self._reopened(sql, params)
        return _of_users(answer) if _SHOW_TABLES.match(sql) else answer

    def rows(self, sql: str, params: Params = ()) -> list[dict[str, Any]]:
        """The answer to one reading statement, a dict a row."""
        return self.table(sql, params).to_pylist()  # type: ignore[no-any-return]

    def interrupt(self) -> None:
        """Stop the running query, from another thread."""
        self._con.interrupt()

    def close(self) -> None:
        """Let go of all files."""
        self._con.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, sql: str, params: Params) -> pa.Table:
        statement = guard.read_statement(self._con, sql)
        self._load(sql)
        return self._con.sql(statement, params=params or None).to_arrow_table()

    def _reopened(self, sql: str, params: Params) -> pa.Table:
        """The answer of the store as it is now: files were folded since it was opened, their rows are in others."""
        self._con.close()
        self._open()
        try:
            return self._answer(sql, params)
        except (duckdb.Error, pa.ArrowException) as e:
            raise QueryError(_OURS.sub(_THERE_ARE, guard.first_lines(e))) from None

    def _open(self) -> None:
        self._looked = time.time()
        self._look = look(self._store.layout, METRICS_SCHEMA_VERSION, self._store.set_aside)
        self._loaders = self._lazy()
        self._con = duckdb.connect(":memory:")
        for name, (schema, _) in self._loaders.items():
            self._con.register(name, schema.empty_table())
        spans = tables.attempt_spans(self._store, self._look.found)
        self._con.register("_spans", spans)
        self._con.register("_torn", tables.torn(self._store))
        if self._look.files:
            self._con.execute("SET VARIABLE expkit_files = ?", [self._look.files])
            self._con.execute("SET allowed_paths = getvariable('expkit_files')")
            self._con.execute(f"CREATE VIEW _metrics AS {self._metrics()}")
        else:
            self._con.register("_metrics", SCHEMA.empty_table())
        self._con.execute(f"CREATE VIEW _stitched AS {STITCHED if len(spans) else WHOLE}")
        for view in VIEWS:
            self._con.execute(view.statement)
        for statement in LOCK:
            self._con.execute(statement)

    def _metrics(self) -> str:
        """All rows of the files, without those of attempts whose folder was removed."""
        rows = "SELECT * FROM read_parquet(getvariable('expkit_files'))"
        if not self._look.gone:
            return rows
        columns = zip(("id", "replicate", "attempt"), zip(*self._look.gone, strict=True), strict=True)
        self._con.register("_gone", pa.table({name: pa.array(values) for name, values in columns}))
        return f"{rows} ANTI JOIN _gone USING (id, replicate, attempt)"

    def _lazy(self) -> dict[str, tuple[pa.Schema, Callable[[], pa.Table]]]:
        plan = pa.schema([pa.field("sweep", pa.string()), *plan_schema()])
        return {
            "_trials": (tables.TRIALS, lambda: tables.trials(self._store, self._look.found, self._looked)),
            "_params": (tables.PARAMS, lambda: tables.params(self._store, self._look.found)),
            "_events": (tables.EVENTS, lambda: tables.events(self._store, self._look.found)),
            "_notes": (tables.NOTES, lambda: tables.notes(self._store, self._look.found)),
            "_sweeps": (tables.SWEEPS, lambda: tables.sweeps(self._store)),
            "_sweep_trials": (plan, lambda: tables.sweep_trials(self._store)),
        }

    def _load(self, sql: str) -> None:
        words = set(re.findall(r"\w+", sql.lower()))
        for name in list(self._loaders):
            if words & (_NEEDED_BY[name] | {name}):
                _, load = self._loaders.pop(name)
                self._con.register(name, load())


_NEEDED_BY = {
    "_trials": {"trials", "algorithms", "speedups", "curve", "aligned"},
    "_params": {"params"},
    "_events": {"events"},
    "_notes": {"notes"},
    "_sweeps": {"sweeps", "speedups"},
    "_sweep_trials": {"sweep_trials", "speedups"},
}
"""Which words of a query need which table. Names cannot hide: functions that run SQL given as text are refused."""


def _of_users(listing: pa.Table) -> pa.Table:
    """SHOW TABLES without the tables behind the views."""
    return listing.filter(pa.array([not name.startswith("_") for name in listing["name"].to_pylist()], pa.bool_()))


def connect(root: Path) -> Connection:
    """Open a runs folder for questions. A folder that is empty or missing has all views, without rows."""
    return Connection(Path(root).absolute())
