"""Records as Arrow tables: what Python reads from the small files, so that DuckDB never opens anything but parquet.

Costs about 0.2 ms a replicate; each table is made only when a query names a view that needs it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from expkit.store.atomic import Unreadable
from expkit.store.flat import flat
from expkit.store.index import NOTHING, Index
from expkit.store.notes import read as read_notes
from expkit.store.records import CLOCKS, FINAL, TrialRecord
from expkit.store.scan import Found, found_in, has_more
from expkit.store.stitch import spans
from expkit.store.store import Store
from expkit.store.strict import number, strict
from expkit.store.sweeps import plan_schema, plan_table

CLOCKS_DIFFER_S = 120.0
"""How far the clock of a file server may be from ours."""
_UTC = pa.timestamp("us")
_TEXTS = pa.list_(pa.string())
TRIALS = pa.schema([
    ("id", pa.string()), ("replicate", pa.int32()), ("label", pa.string()), ("algorithms", _TEXTS),
    ("size", pa.int32()), ("seed", pa.int64()), ("setting", pa.string()), ("status", pa.string()),
    ("cause", pa.string()), ("attempts", pa.int32()), ("created_utc", _UTC), ("started_utc", _UTC),
    ("ended_utc", _UTC), ("host", pa.string()), ("device", pa.string()), ("nproc", pa.int32()),
    ("threads", pa.int32()), ("code_sha", pa.string()), ("dirty", pa.bool_()), ("timing_valid", pa.bool_()),
    ("timing_reasons", _TEXTS), *((clock, pa.float64()) for clock in CLOCKS), ("config", pa.string()),
    ("methods", pa.string()), ("effective", pa.string()), ("driver", pa.string()), ("message", pa.string()),
    ("setting_json", pa.string()), ("sources", pa.string()), ("reference_s", pa.list_(pa.float64())),
    ("phases", pa.string()),
])  # fmt: skip
"""Up to `config` the columns of the trials view; then what other views and the analysis need."""
PARAMS = pa.schema(
    [("id", pa.string()), ("key", pa.string()), ("value_text", pa.string()), ("value_num", pa.float64())]
)
EVENTS = pa.schema([
    ("id", pa.string()), ("replicate", pa.int32()), ("attempt", pa.int32()), ("rank", pa.int32()),
    ("batch", pa.int64()), ("utc", _UTC), ("kind", pa.string()), ("payload", pa.string()),
])  # fmt: skip
SWEEPS = pa.schema([
    ("sweep", pa.string()), ("created_utc", _UTC), ("file", pa.string()), ("sha256", pa.string()),
    ("target_metric", pa.string()), ("target_value", pa.float64()), ("target_rule", pa.string()),
    ("target_hash", pa.string()), ("target_utc", _UTC), ("exclusive", pa.bool_()),
])  # fmt: skip
NOTES = pa.schema([("id", pa.string()), ("tags", _TEXTS), ("note", pa.string()), ("changed_utc", _UTC)])
SPANS = pa.schema([
    ("id", pa.string()), ("replicate", pa.int32()), ("attempt", pa.int32()), ("after", pa.int64()),
    ("upto", pa.int64()),
])  # fmt: skip


def trials(store: Store, found: Iterable[Found], known: Index = NOTHING, looked: float = math.inf) -> pa.Table:
    """One row a replicate; replicates whose trial.json cannot be read are left out, and it is on `set_aside`.

    `looked` is when `found` was listed, in seconds since 1970: what has ended since then stands as running, for its
    last rows are in files that were not there yet, and nobody should take half a series for a result.
    """
    rows = []
    same, found = _same(store, known, "trials", TRIALS, found)
    records: dict[str, TrialRecord | None] = {}
    for f in found:
        if f.id12 not in records:
            records[f.id12] = store.read_trial(f.id12)
        record = records[f.id12]
        if record is not None:
            rows.append(_trial_row(store, f, record, looked))
    read = _table(rows, TRIALS, store, lambda row: store.layout.status(row["id"], row["replicate"]))
    return pa.concat_tables([same, read])


def params(store: Store, found: Iterable[Found], known: Index = NOTHING) -> pa.Table:
    """One row a trial and key of its configuration; lists are one value, as JSON."""
    rows = []
    same, found = _same(store, known, "params", PARAMS, found)
    for id12 in sorted({f.id12 for f in found}):
        record = store.read_trial(id12)
        for key, value in flat(record.config) if record is not None else ():
            rows.append({"id": id12, "key": key, "value_text": _text(value), "value_num": number(value)})
    read = _table(rows, PARAMS, store, lambda row: store.layout.trial_record(row["id"]))
    return pa.concat_tables([same, read])


def events(store: Store, found: Iterable[Found], known: Index = NOTHING) -> pa.Table:
    """One row an event. A torn last line is what a killed writer leaves; the file is named, its whole lines count."""
    rows = []
    same, found = _same(store, known, "events", EVENTS, found)
    for f in found:
        for attempt in f.attempts:
            path = store.layout.events(store.layout.attempt(f.id12, f.replicate, attempt))
            place = {"id": f.id12, "replicate": f.replicate, "attempt": attempt}
            rows += [{**place, **event} for event in _lines(path, store.set_aside)]
    read = _table(rows, EVENTS, store, lambda row: store.layout.replicate(row["id"], row["replicate"]))
    return pa.concat_tables([same, read])


def notes(store: Store, found: Iterable[Found]) -> pa.Table:
    """One row a trial of which somebody said something."""
    rows = []
    for id12 in sorted({f.id12 for f in found}):
        said = read_notes(store.layout, id12, store.set_aside)
        if said.tags or said.note:
            rows.append({"id": id12, **vars(said), "changed_utc": utc(said.changed_utc)})
    return _table(rows, NOTES, store, lambda row: store.layout.notes(row["id"]))


def sweeps(store: Store) -> pa.Table:
    """One row a sweep."""
    rows = [_sweep_row(store, name) for name in store.sweeps()]
    return _table(rows, SWEEPS, store, lambda row: store.layout.sweep(row["sweep"]))


def sweep_trials(store: Store) -> pa.Table:
    """The plans of all sweeps, one under the other."""
    schema = pa.schema([pa.field("sweep", pa.string()), *plan_schema()])
    plans = []
    for name in store.sweeps():
        plan = plan_table(store.layout, name, store.set_aside)
        if plan is not None:
            plans.append(pa.table([pa.array([name] * len(plan), pa.string()), *plan.columns], schema=schema))
    return pa.concat_tables(plans) if plans else schema.empty_table()


def attempt_spans(store: Store, found: Iterable[Found]) -> pa.Table:
    """What counts of each attempt, for replicates with more than one; where an attempt is alone, all of it counts."""
    rows = []
    for f in found:
        if len(f.attempts) > 1:
            kept = spans({k: _origin(store, f, k) for k in f.attempts})
            rows += [{"id": f.id12, "replicate": f.replicate, **vars(span)} for span in kept]
    return _table(rows, SPANS, store, lambda row: store.layout.replicate(row["id"], row["replicate"]))


def torn(store: Store) -> pa.Table:
    """Replicates of which a metrics file of rank 0 was set aside: what is left of their series is not what they did."""
    rows = sorted(store.torn())
    ids, replicates = zip(*rows, strict=True) if rows else ((), ())
    return pa.table({"id": pa.array(ids, pa.string()), "replicate": pa.array(replicates, pa.int32())})


def _same(
    store: Store, known: Index, name: str, schema: pa.Schema, found: Iterable[Found]
) -> tuple[pa.Table, list[Found]]:
    """(rows that the index has and that are what the files say, the replicates that it has none of)."""
    found = list(found)
    rows = known.table(store.layout, name, schema)
    if rows is None:
        return schema.empty_table(), found
    there: dict[str, dict[int, tuple[int, ...]]] = {}
    for f in found:
        there.setdefault(f.id12, {})[f.replicate] = f.attempts
    same = {id12 for id12, attempts in there.items() if known.has(store.layout, name, id12, attempts)}
    rows = rows.filter(pc.is_in(rows["id"], pa.array(same, pa.string())))
    return rows, [f for f in found if f.id12 not in same]


def _trial_row(store: Store, f: Found, record: TrialRecord, looked: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": f.id12,
        "replicate": f.replicate,
        "label": record.label,
        "algorithms": [a["label"] for a in record.algorithms],
        "size": record.size,
        "seed": record.seed,
        "config": json.dumps(strict(record.config), ensure_ascii=False),
        "methods": json.dumps(strict(record.algorithms), ensure_ascii=False),
        "attempts": len(f.attempts),
    }
    state, status = store.look(f.id12, f.replicate)
    if status is not None and state in FINAL and _ended_since(store, f, looked):
        state = "running"
        status = replace(status, ended_utc=None, cause=None, message=None, clocks={}, timing_valid=None, effective={})
    row["status"] = state
    if status is None:
        return row
    return row | {
        "cause": status.cause,
        "message": status.message,
        "created_utc": utc(status.created_utc),
        "started_utc": utc(status.started_utc),
        "ended_utc": utc(status.ended_utc),
        "host": status.setting.get("host", status.host),
        "device": _maybe_text(status.setting.get("device")),
        "nproc": _whole(status.setting.get("nproc")),
        "threads": _whole(status.setting.get("threads")),
        "setting": status.setting_hash or None,
        "setting_json": json.dumps(strict(status.setting), ensure_ascii=False),
        "code_sha": status.code_sha or None,
        "sources": json.dumps(strict(status.sources), ensure_ascii=False),
        "dirty": status.dirty,
        "timing_valid": status.timing_valid,
        "timing_reasons": status.timing_reasons,
        "effective": json.dumps(status.effective),
        "driver": status.driver,
        "reference_s": status.reference_s,
        "phases": json.dumps(status.phases),
        **status.clocks,
    }


def _ended_since(store: Store, f: Found, looked: float) -> bool:
    """Whether files came after the listing; only where the status is so new, by whichever clock, that it may be."""
    try:
        changed = os.stat(store.layout.status(f.id12, f.replicate)).st_mtime  # noqa: PTH116  # 10,000 of them
    except OSError:
        return False
    if changed < looked - CLOCKS_DIFFER_S:
        return False
    return has_more(found_in(store.layout, f.id12, f.replicate, []), f)


def _sweep_row(store: Store, name: str) -> dict[str, Any]:
    record, target = store.sweep_record(name), store.targets(name)
    return {
        "sweep": name,
        "created_utc": utc(record.get("created_utc")),
        "file": record.get("file"),
        "sha256": record.get("sha256"),
        "target_metric": target.get("metric"),
        "target_value": number(target.get("value")),
        "target_rule": target.get("rule"),
        "target_hash": target.get("hash"),
        "target_utc": utc(target.get("utc")),
        "exclusive": store.sweep_settings(name).get("timing") != "shared",
    }


def _origin(store: Store, f: Found, attempt: int) -> tuple[int, int] | None:
    record = store.read_attempt(store.layout.attempt(f.id12, f.replicate, attempt)) or {}
    origin = record.get("from")
    if not isinstance(origin, Mapping):
        return None
    attempt_from, batch = _whole(origin.get("attempt")), _whole(origin.get("batch"))
    return None if attempt_from is None or batch is None else (attempt_from, batch)


def _lines(path: Path, set_aside: list[Unreadable]) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return  # an attempt without events
    torn = 0
    for line in lines:
        try:
            event = json.loads(line)
            yield {
                "rank": int(event["rank"]),
                "batch": int(event["batch"]),
                "utc": utc(event["utc"]),
                "kind": str(event["kind"]),
                "payload": json.dumps(event.get("payload", {}), ensure_ascii=False),
            }
        except (ValueError, KeyError, TypeError):
            torn += 1
    if torn:
        set_aside.append(Unreadable(path, f"{torn} of {len(lines)} lines cannot be read"))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(strict(value), ensure_ascii=False)


def utc(text: Any) -> datetime | None:
    """A time of the records as DuckDB wants it: UTC without a zone; None for what is no time."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def _maybe_text(value: Any) -> str | None:
    return None if value is None else str(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _table(
    rows: list[dict[str, Any]], schema: pa.Schema, store: Store, blame: Callable[[dict[str, Any]], Path]
) -> pa.Table:
    """Rows as a table; a row with a value that no column can hold is left out, and its file is on `set_aside`."""
    try:
        return _converted(rows, schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    good = []
    for row in rows:
        try:
            _converted([row], schema)
            good.append(row)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as e:
            store.set_aside.append(Unreadable(blame(row), f"holds a value of another type ({e})"))
    return _converted(good, schema)


def _converted(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.table([pa.array([row.get(f.name) for row in rows], f.type) for f in schema], schema=schema)
