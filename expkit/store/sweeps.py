"""What the store keeps of a sweep: its file as given, its plan, when it was first written."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from expkit.store import seal
from expkit.store.atomic import Unreadable, read_json, write_bytes, write_json, write_text
from expkit.store.layout import Layout
from expkit.store.records import SCHEMA_VERSION, PlanRow, now_utc

if TYPE_CHECKING:
    import pyarrow as pa


def write_plan(layout: Layout, sweep: str, sweep_yaml: str, rows: Iterable[PlanRow], file: str) -> None:
    """sweep.yaml, sweep.json and plan.parquet; the time of the first writing stays."""
    known = read_json(layout.sweep_record(sweep), []) or {}
    record = {
        "schema_version": SCHEMA_VERSION,
        "created_utc": known.get("created_utc") or now_utc(),
        "file": file,
        "sha256": hashlib.sha256(sweep_yaml.encode()).hexdigest(),
    }
    write_text(layout.sweep_yaml(sweep), sweep_yaml)
    write_bytes(layout.plan(sweep), _parquet(sorted(rows, key=lambda row: row.position)))
    write_json(layout.sweep_record(sweep), record)


def read_plan(layout: Layout, sweep: str, set_aside: list[Unreadable]) -> list[PlanRow]:
    """The plan's rows in run order."""
    table = plan_table(layout, sweep, set_aside)
    try:
        return [] if table is None else [PlanRow(**row) for row in table.to_pylist()]
    except (ValueError, TypeError) as e:
        set_aside.append(Unreadable(layout.plan(sweep), f"is no plan ({e})"))
        return []


def plan_table(layout: Layout, sweep: str, set_aside: list[Unreadable]) -> pa.Table | None:
    """plan.parquet as an Arrow table with exactly the columns of PlanRow; None where there is none to be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = layout.plan(sweep)
    try:
        data = path.read_bytes()
        if seal.has_seal(data) and not seal.is_whole(data):
            raise pa.ArrowInvalid("it was changed since it was written")
        table = pq.ParquetFile(io.BytesIO(data)).read(use_threads=False)  # no pool that outlives us
        return table.select(plan_schema().names).cast(plan_schema())
    except FileNotFoundError:
        if layout.sweep_record(sweep).exists():  # written after the plan, so there was one
            set_aside.append(
                Unreadable(path, "is gone, though the sweep was planned; expkit sweep FILE writes it again")
            )
        return None
    except (OSError, KeyError, pa.ArrowException) as e:
        set_aside.append(Unreadable(path, f"is no plan ({' '.join(str(e).split())})"))
        return None


def plan_schema() -> pa.Schema:
    """Columns of plan.parquet; the file's name gives the sweep."""
    import pyarrow as pa

    types: dict[str, Any] = {"str": pa.string(), "int": pa.int64(), "str | None": pa.string()}
    return pa.schema([(f.name, types[str(f.type)]) for f in dataclasses.fields(PlanRow)])


def names(layout: Layout) -> list[str]:
    """Names of all sweeps, sorted; a folder whose name no sweep can have is none."""
    try:
        return sorted(e.name for e in os.scandir(layout.sweeps) if e.is_dir() and Layout.may_be_sweep(e.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _parquet(rows: list[PlanRow]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([dataclasses.asdict(row) for row in rows], schema=plan_schema())
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return seal.sealed(out.getvalue())
