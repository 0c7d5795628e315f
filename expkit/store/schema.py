"""What can be asked: every view and macro with the type and meaning of its columns, as text, Markdown and JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expkit.store.columns import meaning
from expkit.store.views import VIEWS, View

if TYPE_CHECKING:
    from expkit.store.query import Connection

INTRODUCTION = """\
# Views and macros

Every metric of every trial, in SQL. `expkit query` answers one SELECT, `expkit sql` is a shell for many, and
`expkit.load("runs").sql(...)` asks from Python. These names and columns are stable; how files lie on disk is not.

- Nothing can be changed, and no file can be read but the store's own. One statement at a time.
- The dialect is DuckDB's: `FROM trials SELECT label`, `GROUP BY ALL`, `PIVOT`, `QUALIFY` and `ASOF JOIN` work.
- Values go in as parameters: `expkit query 'SELECT * FROM curve($metric)' -p metric=eval/accuracy`.
- Names of metrics are values, never identifiers: `WHERE name = 'eval/f1-score and x'`.
- A connection shows the store as it was when it was opened, also while trials are being written.

Each example below is a question that can be asked as it stands, `ablate` being the name of a sweep.
"""


@dataclass(frozen=True)
class Column:
    """One column of a view."""

    name: str
    type: str
    doc: str


@dataclass(frozen=True)
class Described:
    """One view or macro."""

    view: View
    columns: tuple[Column, ...]

    def to_json(self) -> dict[str, Any]:
        """Signature, columns, meaning and example."""
        return {
            "name": self.view.signature,
            "columns": [vars(column) for column in self.columns],
            "doc": self.view.doc,
            "example": self.view.example,
        }


def described() -> list[Described]:
    """All views and macros; the types are DuckDB's own, as it gives them over a folder without results."""
    from expkit.store.query import connect

    with tempfile.TemporaryDirectory() as nowhere, connect(Path(nowhere)) as con:
        return [Described(view, tuple(_columns(con, view))) for view in VIEWS]


def _columns(con: Connection, view: View) -> Iterator[Column]:
    for row in con.rows(f"DESCRIBE SELECT * FROM {view.call}"):  # noqa: S608  # a call of ours
        yield Column(row["column_name"], row["column_type"], meaning(view.name, row["column_name"]))


def as_text(views: Iterable[Described]) -> str:
    """For a terminal or a pipe."""
    return "\n".join(
        f"{each.view.signature}\n  {each.view.doc}\n"
        f"  columns: {', '.join(f'{c.name} {c.type}' for c in each.columns)}\n  example: {each.view.example}\n"
        for each in views
    )


def as_markdown(views: Iterable[Described]) -> str:
    """The page docs/views.md."""
    return "\n".join([INTRODUCTION, *(_section(each) for each in views)])


def _section(each: Described) -> str:
    rows = "\n".join(f"| `{column.name}` | {column.type} | {column.doc} |" for column in each.columns)
    call = f"`{each.view.signature}`\n\n" if each.view.parameters else ""
    return (
        f"## {each.view.name}\n\n{call}{each.view.doc}\n\n"
        f"| column | type | meaning |\n|---|---|---|\n{rows}\n\n```sql\n{each.view.example}\n```\n"
    )
