"""What the analysis asks of the store: SELECTs on its views, a sweep's settings and target; no file is read here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np

from expkit.analysis.intervals import Array
from expkit.analysis.replicate import Replicate
from expkit.errors import UsageError, unknown
from expkit.store.layout import Layout
from expkit.store.records import CLOCKS

Row = Mapping[str, Any]
Key = tuple[str, int]
"""(id, replicate)."""

# ruff: noqa: S608  # the only texts put into SQL are names of columns from CLOCKS
_REPLICATES = f"""
  SELECT p.id, p.replicate, p.arm, p.role, p.block, p.position, p.target_hash, x.seed, x.status, x.cause, x.message,
    x.attempts, x.setting, x.setting_json, x.driver, x.host, x.device, x.nproc, x.threads, x.code_sha, x.sources,
    x.dirty, x.timing_valid, x.timing_reasons, x.started_utc, x.phases, {", ".join(f"x.{clock}" for clock in CLOCKS)}
  FROM sweep_trials p LEFT JOIN _trials x ON p.id = x.id AND p.replicate = x.replicate
  WHERE p.sweep = ? ORDER BY p.position"""
_EVALUATIONS = """
  SELECT m.id, m.replicate, m.batch, m.sample, m.train_s, m.cpu_s, m.wall_s, m.value
  FROM metrics m SEMI JOIN (SELECT id, replicate FROM sweep_trials WHERE sweep = $sweep) p
    ON m.id = p.id AND m.replicate = p.replicate
  WHERE m.name = $metric AND m.rank = 0 ORDER BY m.id, m.replicate, m.batch"""
_EFFECTIVE = """
  SELECT a.id, a.replicate, a.name, a.effective
  FROM algorithms a SEMI JOIN (SELECT id, replicate FROM sweep_trials WHERE sweep = ?) p
    ON a.id = p.id AND a.replicate = p.replicate
  WHERE a.effective IS NOT NULL"""
_EVALUATED = ("train_s", "cpu_s", "wall_s")
"""The clocks of an evaluation."""
_RECORDED = """
  SELECT DISTINCT m.name FROM metrics m SEMI JOIN (SELECT id, replicate FROM sweep_trials WHERE sweep = ?) p
    ON m.id = p.id AND m.replicate = p.replicate ORDER BY m.name"""


class Records(Protocol):
    """The records of a sweep that no view has."""

    def sweep_settings(self, sweep: str) -> dict[str, Any]: ...
    def targets(self, sweep: str) -> dict[str, Any]: ...
    def confirmation(self, sweep: str) -> dict[str, Any]: ...
    def reference(self, sweep: str) -> dict[str, Any]: ...
    def torn(self) -> set[Key]: ...
    def read_provenance(self, id12: str, replicate: int) -> dict[str, Any]: ...


class Views(Protocol):
    """A connection to a store, as `store.query.connect` makes it."""

    def rows(self, sql: str, params: Any = ()) -> list[dict[str, Any]]: ...
    def table(self, sql: str, params: Any = ()) -> Any: ...
    @property
    def store(self) -> Records: ...
    @property
    def set_aside(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Rates:
    """What the sweep file says that things cost; 0 where it does not."""

    per_hour: float = 0.0
    per_kwh: float = 0.0
    watts: float = 0.0


@dataclass(frozen=True)
class Settings:
    """What the sweep file says of its report."""

    clock: str
    ci: float
    delta: float
    metric: str
    mode: Literal["max", "min"]
    baseline: str
    """The set that every effect is measured against, as an arm's label without parameters."""
    exclusive: bool
    confirmatory: tuple[str, ...] = ()
    """Arms that were the question before the first trial ran."""
    target_of_another: bool = False
    rates: Rates = field(default_factory=Rates)
    orders: tuple[tuple[str, ...], ...] = ()
    """Of switching methods on, where the design sampled them for Shapley credit."""


@dataclass(frozen=True)
class Evaluations:
    """The series of the primary metric of one replicate, in order of batches; arrays of one length."""

    batch: Array
    sample: Array
    clocks: Mapping[str, Array]
    value: Array


@dataclass(frozen=True)
class Sweep:
    """A sweep as the store has it."""

    name: str
    created_utc: str | None
    file: str | None
    sha256: str | None
    target: Mapping[str, Any]
    replicates: tuple[Replicate, ...]
    series: Mapping[Key, Evaluations]
    settings_found: tuple[Mapping[str, Any], ...]
    """The settings that its replicates ran in, each once."""


def sweep_row(con: Views, sweep: str) -> Row:
    """The row of the sweeps view; UsageError with the nearest name where there is none."""
    rows = con.rows("SELECT * FROM sweeps ORDER BY sweep")
    found = [row for row in rows if row["sweep"] == sweep]
    if not found:
        raise UsageError(unknown("sweep", sweep, [row["sweep"] for row in rows]))
    return found[0]


def settings(con: Views, sweep: str, target_metric: str | None) -> Settings:
    """What the conductor wrote for the report; what is not there has the default of the sweep grammar."""
    known = con.store.sweep_settings(sweep)
    return Settings(
        clock=str(known.get("clock") or "train_s"),
        ci=float(known.get("ci") or 0.95),
        delta=float(known.get("non_inferiority") or 0.0),
        metric=str(known.get("metric") or target_metric or "eval/accuracy"),
        mode="min" if known.get("mode") == "min" else "max",
        baseline=str(known.get("baseline_arm") or "none"),
        exclusive=known.get("timing", "exclusive") != "shared",
        confirmatory=tuple(known.get("confirmatory") or ()),
        target_of_another=bool(known.get("target_of_another")),
        rates=Rates(**{name: float(value) for name, value in (known.get("rates") or {}).items()}),
        orders=tuple(tuple(map(str, order)) for order in known.get("orders") or ()),
    )


def load(con: Views, row: Row, metric: str, *, exclusive: bool) -> Sweep:
    """The sweep with the series of one metric; times of other driver runs pair only where runs were not exclusive."""
    name = row["sweep"]
    rows = con.rows(_REPLICATES, [name])
    torn = con.store.torn() & {(r["id"], r["replicate"]) for r in rows if r["status"] == "complete"}
    evaluations = con.table(_EVALUATIONS, {"sweep": name, "metric": metric})
    found_series = _evaluations(evaluations) if len(evaluations) else {}
    series = {key: points for key, points in found_series.items() if key not in torn}  # half a curve is a false one
    effective: dict[Key, dict[str, bool]] = {}
    for found in con.rows(_EFFECTIVE, [name]):
        effective.setdefault((found["id"], found["replicate"]), {})[found["name"]] = found["effective"]
    seeds = {r["id"]: r["seed"] for r in rows if r["seed"] is not None}
    replicates = tuple(_replicate(r, seeds, effective, series, exclusive, torn) for r in rows)
    used = {text: json.loads(text) for text in {r["setting_json"] for r in rows if r["setting_json"]}}
    return Sweep(
        name, utc_text(row["created_utc"], "seconds"), row["file"], row["sha256"], con.store.targets(name),
        replicates, series, tuple(s for _, s in sorted(used.items()) if s),
    )  # fmt: skip


def recorded_metrics(con: Views, sweep: str) -> list[str]:
    """Names of all metrics that some trial of the sweep has recorded."""
    return [row["name"] for row in con.rows(_RECORDED, [sweep])]


def of_sweep(con: Views, sweep: Sweep) -> tuple[list[str], str]:
    """(all files of a sweep that were set aside, its plan where it is one of them), each with its reason."""
    ids = {r.id for r in sweep.replicates}
    trials = [bad for bad in con.set_aside if ids & set(bad.path.parts)]
    own = [bad for bad in con.set_aside if bad.path.parent.parts[-2:] == ("sweeps", sweep.name)]
    plan = next((str(bad) for bad in own if bad.path.name == Layout.PLAN), "")
    return [str(bad) for bad in (*own, *trials)], plan


def git_silent(con: Views, replicates: Iterable[Replicate]) -> str:
    """Why git did not say whether the code of some replicate was committed; empty where it said so of all."""
    one = next((r for r in replicates if r.code_sha and r.dirty is None), None)
    if one is None:
        return ""
    reason = con.store.read_provenance(one.id, one.replicate).get("git", {}).get("reason", "it is not known why")
    return "not under git" if "not a git repository" in reason else f"of which git said nothing ({reason})"


def utc_text(moment: datetime | None, timespec: str = "milliseconds") -> str | None:
    """A time of the views, UTC without a zone, as ISO 8601 with Z; by default as exact as the records write it."""
    return None if moment is None else f"{moment.isoformat(timespec=timespec)}Z"


def _evaluations(table: Any) -> dict[Key, Evaluations]:
    """The series of each replicate, from a table in which they follow one another: views into its columns."""
    columns = {name: table[name].to_numpy().astype(float) for name in ("batch", "sample", "value", *_EVALUATED)}
    ids = table["id"].combine_chunks().dictionary_encode()
    codes, replicates = ids.indices.to_numpy(), table["replicate"].to_numpy()
    changes = np.flatnonzero((np.diff(codes) != 0) | (np.diff(replicates) != 0)) + 1
    found = {}
    for start, stop in zip((0, *changes), (*changes, len(codes)), strict=True):
        own = {name: column[start:stop] for name, column in columns.items()}
        clocks = {clock: own[clock] for clock in _EVALUATED}
        key = ids.dictionary[int(codes[start])].as_py(), int(replicates[start])
        found[key] = Evaluations(own["batch"], own["sample"], clocks, own["value"])
    return found


def _replicate(
    row: Row,
    seeds: Mapping[str, int],
    effective: Mapping[Key, Mapping[str, bool]],
    series: Mapping[Key, Evaluations],
    exclusive: bool,
    torn: Set[Key],
) -> Replicate:
    key = row["id"], row["replicate"]
    evaluations = series.get(key)
    return Replicate(
        id=row["id"],
        replicate=row["replicate"],
        arm=row["arm"],
        role=row["role"],
        block=row["block"],
        position=row["position"],
        state=row["status"] or "pending",
        seed=seeds.get(row["id"]),
        cause=row["cause"],
        message=row["message"] or "",
        attempts=row["attempts"] or 0,
        setting=row["setting"] or "",
        driver=(row["driver"] or "") if exclusive else "",
        host=row["host"] or "",
        device=row["device"] or "",
        nproc=row["nproc"] or 1,
        threads=row["threads"] or 1,
        code_sha=row["code_sha"] or "",
        sources=_known(row["sources"] or "{}"),
        dirty=row["dirty"],
        timing_valid=row["timing_valid"],
        timing_reasons=tuple(row["timing_reasons"] or ()),
        started_utc=utc_text(row["started_utc"]),
        target_hash=row["target_hash"],
        phases=_known(row["phases"] or "{}"),
        clocks={clock: finite(row[clock]) for clock in CLOCKS},
        effective=effective.get(key, {}),
        quality=finite(evaluations.value[-1]) if evaluations is not None else None,
        unreadable=key in torn,
    )


@lru_cache(maxsize=256)  # most trials have the same
def _known(text: str) -> Any:
    return json.loads(text)


def finite(value: float | None) -> float | None:
    """The value as a float, None for nan, inf and nothing."""
    return float(value) if value is not None and math.isfinite(value) else None
