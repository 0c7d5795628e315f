"""Answer: rows that were asked for, as pandas, polars or Arrow, and as a table in a notebook. Holds them in memory."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from expkit.errors import EnvironmentFault
from expkit.report.clean import clean
from expkit.store import answers

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 20
"""Rows that are shown; `.df()`, `.pl()` and `.arrow()` have all."""
MOST_CHARACTERS = 80


class Answer:
    """One answer of the store. `len`, iteration (a dict a row) and what reads Arrow streams take it as it is."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def arrow(self) -> pa.Table:
        """All rows as a pyarrow table."""
        return self._table

    def df(self) -> Any:
        """All rows as a pandas DataFrame; EnvironmentFault where pandas is not installed. Times are UTC."""
        _needed("pandas", "df")
        return self._table.to_pandas()

    def pl(self) -> Any:
        """All rows as a polars DataFrame; EnvironmentFault where polars is not installed. Times are UTC."""
        return _needed("polars", "pl").from_arrow(self._table)

    def rows(self) -> list[dict[str, Any]]:
        """All rows, a dict each."""
        return self._table.to_pylist()  # type: ignore[no-any-return]

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What polars, DuckDB, pandas and others read without knowing us."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """The first rows in aligned columns, long values cut, then how many there are."""
        rows = [list(map(answers.shown, self.columns)), *self._shown()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        return "\n".join([*lines, self._size()])

    def _repr_html_(self) -> str:
        """The same as a table for a notebook; every text is escaped, nothing in it is markup or runs."""
        right = [answers.numeric(field.type) for field in self._table.schema]
        head = "".join(f"<th>{html.escape(clean(name))}</th>" for name in self.columns)
        body = "".join(f"<tr>{_html_row(row, right)}</tr>" for row in self._shown())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div>{table}<p>{html.escape(self._size())}</p></div>"

    def _shown(self) -> list[list[str]]:
        floats = [str(field.type) in ("double", "float") for field in self._table.schema]
        rows = answers.cells(self._table.slice(0, MOST_ROWS))
        return [[_brief(cell, number) for cell, number in zip(row, floats, strict=True)] for row in rows]

    def _size(self) -> str:
        hidden = f", the first {MOST_ROWS} shown" if len(self) > MOST_ROWS else ""
        return f"[{len(self):,} rows x {len(self.columns)} columns{hidden}]"


def _html_row(row: list[str], right: list[bool]) -> str:
    aligned = ("right" if numeric else "left" for numeric in right)
    return "".join(
        f'<td style="text-align:{side}">{html.escape(cell)}</td>' for cell, side in zip(row, aligned, strict=True)
    )


def _brief(cell: str, number: bool) -> str:
    text = f"{float(cell):.6g}" if number and cell != answers.NULL else clean(cell)
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def _needed(package: str, method: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as e:
        if e.name != package:
            raise
        raise EnvironmentFault(f".{method}() needs {package}: pip install {package}; .arrow() does without") from None
