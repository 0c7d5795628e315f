"""Answers as text: aligned columns, delimited fields, JSON values. NULL is always visible and nothing is cut off."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from expkit.store.strict import strict

NULL = "NULL"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def as_text(table: pa.Table) -> str:
    """Aligned columns, numbers to the right, for a pipe."""
    rows = [list(map(shown, table.column_names)), *cells(table)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = [numeric(f.type) for f in table.schema]
    lines = [
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def cells(table: pa.Table | pa.RecordBatch) -> Iterator[list[str]]:
    """The rows as texts that are safe to show."""
    for row in _tuples(table):
        yield [shown(_cell(value)) for value in row]


def shown(text: str) -> str:
    """Control characters, and those that turn the direction of a line, as their escapes: a terminal might obey them."""
    return _CONTROL.sub(lambda m: m[0].encode("unicode_escape").decode(), text)


def header(names: Iterable[str], separator: str = ",") -> str:
    """The first line of delimited fields."""
    return separator.join(_quoted(name, separator) for name in names) + "\n"


def delimited(batch: pa.RecordBatch, separator: str = ",") -> str:
    """RFC 4180, without a header; NULL is an empty field, an empty text is quoted, lists and structs are JSON.

    About 1 us a cell.
    """
    fields = [_fields(column, separator) for column in batch.columns]
    lines = pc.binary_join_element_wise(*fields, separator)
    return "".join(f"{line}\n" for line in lines.to_pylist())


def as_json(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """A dict a row, with JSON values only; NaN and inf become null, times ISO 8601 with Z."""
    names = table.column_names
    return [dict(zip(names, map(_json, row), strict=True)) for row in _tuples(table)]


def numeric(kind: pa.DataType) -> bool:
    """Whether a column's texts are set to the right."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _tuples(table: pa.Table | pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    for batch in [table] if isinstance(table, pa.RecordBatch) else table.to_batches(max_chunksize=65536):
        yield from zip(*map(_plain, batch.columns), strict=True)


def _plain(column: pa.Array) -> list[Any]:
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError):  # a date that Python has none for, infinity or the year 10000
        return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]


def _fields(column: pa.Array, separator: str) -> pa.Array:
    """The column as texts, quoted where needed; NULL as an empty one."""
    kind = column.type
    if pa.types.is_floating(kind):
        text = pc.cast(column, pa.string())
        whole = pc.match_substring_regex(text, r"^-?[0-9]+$")
        text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)  # stays a float for who reads it
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        text = pc.cast(column, pa.string())
    else:
        plain = _plain(column)
        text = pa.array([None if v is None else _quoted(_cell(v), separator) for v in plain], pa.string())
    return pc.fill_null(text, "")


def _quoted(text: str, separator: str) -> str:
    special = not text or any(c in text for c in (separator, '"', "\r", "\n"))
    return '"' + text.replace('"', '""') + '"' if special else text


def _cell(value: Any) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float | Decimal):
        return str(value)
    plain = _json(value)
    return plain if isinstance(plain, str) else json.dumps(strict(plain), ensure_ascii=False)


def _json(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, datetime):
        return value.isoformat() + ("Z" if value.tzinfo is None else "")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(k): _json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_json(v) for v in value]
    return str(value)
