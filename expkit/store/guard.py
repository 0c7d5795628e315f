"""What may be asked: exactly one statement, and it only reads.

The connection's own lock keeps files and settings out of reach; this check keeps out what the lock lets through:
writing over a metrics file (also as COPY inside a WITH, which parses as a SELECT), EXPLAIN ANALYZE of a write,
tables of one's own, and functions that run SQL given as text, where none of this could be seen.
"""

from __future__ import annotations

from typing import Any

import duckdb

from expkit.errors import QueryError

READS = frozenset({"SELECT", "MULTI"})  # MULTI is what PIVOT parses to
_WRITES = frozenset({"copy", "insert", "update", "delete", "merge", "truncate"})
_RUN_TEXT = frozenset({
    "query", "query_table", "json_execute_serialized_sql", "add_grammar_extension",
    "register_external_resource", "register_external_resource_type", "deregister_external_resource",
    "create_external_resource", "destroy_external_resource",  # these call any function by name, `query` too
})  # fmt: skip


def read_statement(con: duckdb.DuckDBPyConnection, sql: str) -> Any:
    """The one statement of `sql`, ready to be executed; QueryError says what is not allowed."""
    try:
        sql.encode()
        statements = con.extract_statements(sql)
    except UnicodeEncodeError:
        raise QueryError("the query is no UTF-8 text") from None
    except duckdb.Error as e:
        raise QueryError(first_lines(e)) from None
    if len(statements) != 1:
        asked = "none" if not statements else f"{len(statements)}"
        raise QueryError(f"one statement at a time, but got {asked}")
    words = _words(sql)
    kind = _kind(statements[0], words)
    if kind not in READS:
        raise QueryError(f"the store is read-only here: {kind} is not allowed, SELECT is")
    _check_words(words)
    _check_words(_words(statements[0].query))  # as it is parsed: with blanks where the text had invisible characters
    return statements[0]


def first_lines(error: Exception) -> str:
    """What DuckDB says, without the kind of error in front and the picture of the query behind."""
    text = str(error).split("\n\nLINE ")[0]
    head, _, rest = text.partition(": ")
    return " ".join((rest if head.endswith("Error") else text).split())


def _kind(statement: Any, words: list[str]) -> str:
    try:
        return str(statement.type.name)
    except ValueError:  # UPDATE EXTENSIONS and the like: DuckDB has kinds that its Python side has no name for
        return words[0].upper()


def _check_words(words: list[str]) -> None:
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in _WRITES and before == "(":
            raise QueryError(f"the store is read-only here: {word.upper()} inside a query is not allowed")
        if word.strip('"') in _RUN_TEXT and after == "(":
            raise QueryError(f"{word}() runs SQL that cannot be checked; write the query itself")


def _words(sql: str) -> list[str]:
    """Tokens in lower case, comments left out, every bracket by itself."""
    data = sql.encode()  # offsets count bytes
    tokens = duckdb.tokenize(sql)
    ends = [at for at, _ in tokens[1:]] + [len(data)]
    kept = [(at, end) for (at, kind), end in zip(tokens, ends, strict=True) if kind != duckdb.token_type.comment]
    return [data[at:end].decode(errors="replace").strip().lower() for at, end in kept]
