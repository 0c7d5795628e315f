"""Export: one row a replicate with all that is known of it in columns, for programs that know nothing of us.

Columns: those of the view `trials` (of a sweep also arm, role, block, position), tags and note, `param.KEY` for every
key of the recipes, and `last.NAME`, `min.NAME`, `max.NAME` for every metric of rank 0.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from expkit.store.listing import Names

if TYPE_CHECKING:
    from expkit.store.query import Connection

Form = Literal["csv", "parquet"]


def runs(con: Connection, sweep: str | None = None) -> pa.Table:
    """The table; null where a trial lacks a key, or a metric was never finite."""
    names = Names(con, sweep)
    table = con.table(names.base, names.params).drop_columns(["config"])  # its values stand in the columns after it
    places = list(zip(table["id"].to_pylist(), table["replicate"].to_pylist(), strict=True))
    for name, values in (*_params(con, places), *_metrics(con, places)):
        table = table.append_column(name, values)
    return table


def written(table: pa.Table, form: Form) -> bytes:
    """The table as a file. In CSV lists are JSON, times ISO 8601 in UTC, null is an empty field."""
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq

    out = io.BytesIO()
    if form == "parquet":
        pq.write_table(table, out, compression="zstd")
    else:
        pcsv.write_csv(_flat(table), out, pcsv.WriteOptions(quoting_style="needed"))
    return out.getvalue()


def _params(con: Connection, places: list[tuple[str, int]]) -> Iterator[tuple[str, pa.Array]]:
    texts: dict[str, dict[str, str | None]] = {}
    numbers: dict[str, dict[str, float | None]] = {}
    for row in con.table("SELECT * FROM params ORDER BY key").to_pylist():
        texts.setdefault(row["key"], {})[row["id"]] = row["value_text"]
        numbers.setdefault(row["key"], {})[row["id"]] = row["value_num"]
    used = {id12 for id12, _ in places}
    for key, of in texts.items():
        if used.isdisjoint(of):
            continue
        all_numbers = all(text is None or numbers[key][id12] is not None for id12, text in of.items())
        values: dict[str, Any] = numbers[key] if all_numbers else of
        yield f"param.{key}", pa.array([values.get(id12) for id12, _ in places], _type(all_numbers))


def _metrics(con: Connection, places: list[tuple[str, int]]) -> Iterator[tuple[str, pa.Array]]:
    found: dict[str, dict[tuple[str, int], dict[str, Any]]] = {}
    for row in con.table("SELECT id, replicate, name, last, min, max FROM final ORDER BY name").to_pylist():
        found.setdefault(row["name"], {})[row["id"], row["replicate"]] = row
    for name, of in found.items():
        if of.keys().isdisjoint(places):
            continue
        for what in ("last", "min", "max"):
            yield f"{what}.{name}", pa.array([of.get(place, {}).get(what) for place in places], pa.float64())


def _type(number: bool) -> pa.DataType:
    return pa.float64() if number else pa.string()


def _flat(table: pa.Table) -> pa.Table:
    columns = []
    for field in table.schema:
        column = table[field.name]
        if pa.types.is_list(field.type):
            column = pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in column.to_pylist()],
                              pa.string())  # fmt: skip
        elif pa.types.is_timestamp(field.type):
            column = pc.strftime(column, format="%Y-%m-%dT%H:%M:%SZ")
        columns.append(column)
    return pa.table(columns, names=table.column_names)
