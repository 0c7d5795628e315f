"""What the shell can suggest from a store: read when it is first asked for, in the thread that completes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from expkit.errors import ExpkitError
from expkit.store.query import Connection
from expkit.store.schema import Described, described

MOST_VALUES = 2000
_FUNCTIONS = r"""
  SELECT DISTINCT function_name AS word FROM duckdb_functions()
  WHERE regexp_full_match(function_name, '[a-z][a-z0-9_]*') AND NOT starts_with(function_name, 'pg_')"""
_KEYWORDS = "SELECT keyword_name AS word FROM duckdb_keywords()"


class StoreVocabulary:
    """The words of one connection. A question of the user's goes first: see `aside`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._views: list[Described] = []
        self._words: list[str] = []
        self._values: dict[tuple[str, str], list[str]] = {}
        self._lock = threading.Lock()  # one query at a time on a connection

    def views(self) -> Sequence[Described]:
        """All views and macros."""
        if not self._views:
            self._views = described()
        return self._views

    def words(self) -> Sequence[str]:
        """Functions and keywords of DuckDB, sorted."""
        if not self._words:
            self._words = self._ask(f"{_FUNCTIONS} UNION {_KEYWORDS} ORDER BY word")
        return self._words

    def values(self, view: str, column: str) -> Sequence[str]:
        """Texts that a column holds, sorted; the first 2,000."""
        if (view, column) not in self._values:
            distinct = f'SELECT DISTINCT "{column}"::VARCHAR AS word FROM {view} WHERE word IS NOT NULL'  # noqa: S608
            found = self._ask(f"{distinct} ORDER BY word LIMIT {MOST_VALUES}")
            if not found:
                return []  # asked again: it may have been given up
            self._values[view, column] = found
        return self._values[view, column]

    def aside(self) -> threading.Lock:
        """To be held while the user's own query runs; what was being read for a suggestion is given up."""
        if self._lock.locked():
            self._connection.interrupt()
        return self._lock

    def forget(self) -> None:
        """What the store held is no longer what it holds."""
        self._values.clear()

    def _ask(self, sql: str) -> list[str]:
        with self._lock:
            try:
                return [row["word"] for row in self._connection.rows(sql)]
            except ExpkitError:
                return []  # a suggestion is never worth an error
