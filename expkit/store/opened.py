"""A runs folder as it was at one moment, behind a DuckDB connection that is locked to exactly its metrics files.

Metrics files are read natively by DuckDB and are the only files it may open; everything else comes as Arrow tables
that are read when a query first names them. Opening costs about 0.2 s at 2,000 metrics files.
"""

from __future__ import annotations

import re
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from expkit.errors import UsageError
from expkit.store import guard, tables
from expkit.store.atomic import Unreadable
from expkit.store.gather import gather
from expkit.store.metrics import METRICS_SCHEMA_VERSION, SCHEMA
from expkit.store.running import Limits
from expkit.store.scan import TRIES, Look, look
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
_SHOW_TABLES = re.compile(r"\s*SHOW\s+(ALL\s+)?TABLES\b", re.IGNORECASE)


class Opened:
    """What `look` found, with all views over it."""

    def __init__(self, store: Store, limits: Limits, *, thorough: bool = False) -> None:
        self._store = store
        for last_try in (*[False] * (TRIES - 1), True):
            self._look, self._looked = self._looked_at(thorough)
            self._loaders = self._lazy()
            self.con = duckdb.connect(":memory:")
            _limit(self.con, limits)
            try:
                self._make_views()
                break
            except duckdb.IOException:  # views are bound when they are made, and that opens a file
                self.con.close()
                if last_try or self.is_whole():
                    raise
        for statement in LOCK:
            self.con.execute(statement)

    def relation(self, sql: str, params: Any) -> duckdb.DuckDBPyRelation:
        """The answer to one reading statement, not yet computed; QueryError for anything else."""
        statement = guard.read_statement(self.con, sql)
        words = set(re.findall(r"\w+", sql.lower()))
        for name in list(self._loaders):
            if words & (_NEEDED_BY[name] | {name}):
                _, load = self._loaders.pop(name)
                self.con.register(name, load())
        answer = self.con.sql(statement, params=params or None)
        return answer.filter("NOT starts_with(name, '_')") if _SHOW_TABLES.match(sql) else answer

    def is_whole(self) -> bool:
        """Whether all files are still there; folding and compaction put their rows into others."""
        return all(Path(file).exists() for file in self._look.files)

    def _looked_at(self, thorough: bool) -> tuple[Look, float]:
        """What lies there, and when that was; small files are copied into one where this saves the next reader time."""
        for first in (not thorough, False):
            aside: list[Unreadable] = []
            looked = time.time()
            found = look(self._store.layout, METRICS_SCHEMA_VERSION, aside, thorough=thorough)
            if not (first and gather(self._store, found.files, found.copies)):
                break
        self._store.set_aside += aside
        return found, looked

    def _make_views(self) -> None:
        for name, (schema, _) in self._loaders.items():
            self.con.register(name, schema.empty_table())
        spans = tables.attempt_spans(self._store, self._look.found)
        self.con.register("_spans", spans)
        self.con.register("_torn", tables.torn(self._store))
        if self._look.files:
            self.con.execute("SET VARIABLE expkit_files = ?", [self._look.files])
            self.con.execute("SET allowed_paths = getvariable('expkit_files')")
            self.con.execute(f"CREATE VIEW _metrics AS {self._metrics()}")
        else:
            self.con.register("_metrics", SCHEMA.empty_table())
        self.con.execute(f"CREATE VIEW _stitched AS {STITCHED if len(spans) else WHOLE}")
        for view in VIEWS:
            self.con.execute(view.statement)

    def _metrics(self) -> str:
        """All rows of the files, without those of attempts whose folder was removed."""
        rows = "SELECT * FROM read_parquet(getvariable('expkit_files'))"
        if not self._look.gone:
            return rows
        columns = zip(("id", "replicate", "attempt"), zip(*self._look.gone, strict=True), strict=True)
        self.con.register("_gone", pa.table({name: pa.array(values) for name, values in columns}))
        return f"{rows} ANTI JOIN _gone USING (id, replicate, attempt)"

    def _lazy(self) -> dict[str, tuple[pa.Schema, Callable[[], pa.Table]]]:
        found, known = self._look.found, self._look.known
        plan = pa.schema([pa.field("sweep", pa.string()), *plan_schema()])
        return {
            "_trials": (tables.TRIALS, lambda: tables.trials(self._store, found, known, self._looked)),
            "_params": (tables.PARAMS, lambda: tables.params(self._store, found, known)),
            "_events": (tables.EVENTS, lambda: tables.events(self._store, found, known)),
            "_notes": (tables.NOTES, lambda: tables.notes(self._store, found)),
            "_sweeps": (tables.SWEEPS, lambda: tables.sweeps(self._store)),
            "_sweep_trials": (plan, lambda: tables.sweep_trials(self._store)),
        }


_NEEDED_BY = {
    "_trials": {"trials", "algorithms", "timings", "speedups", "curve", "aligned"},
    "_params": {"params"},
    "_events": {"events", "artifacts"},
    "_notes": {"notes"},
    "_sweeps": {"sweeps", "timings", "speedups"},
    "_sweep_trials": {"sweep_trials", "timings", "speedups"},
}
"""Which words of a query need which table. Names cannot hide: functions that run SQL given as text are refused."""


def _limit(con: duckdb.DuckDBPyConnection, limits: Limits) -> None:
    spill = Path(tempfile.gettempdir()) / f"expkit-{secrets.token_hex(8)}"  # made when needed, gone when closed
    con.execute("SET temp_directory = ?", [str(spill)])  # DuckDB's own choice is .tmp where one happens to stand
    if limits.threads is not None:
        con.execute("SET threads = ?", [limits.threads])
    if limits.memory is not None:
        try:
            con.execute("SET memory_limit = ?", [limits.memory])
        except duckdb.Error as e:
            raise UsageError(f"a memory limit is a size such as 4GB, but got {limits.memory!r} ({e})") from None
