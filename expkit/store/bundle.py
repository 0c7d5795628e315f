"""Bundle: a sweep as one zip, with its report: what a stranger needs to read it, ask it in SQL and judge it.

    bundle.json      which sweep, when, by which expkit, and the sha256 of every other file
    report/          index.html report.md summary.json
    runs/            a runs folder with this sweep alone: plan, target, recipes, statuses, events, metrics, provenance

Logs, checkpoints and artifacts stay at home. A replicate's rows lie in its own folder, wherever they lay before.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from expkit.errors import EnvironmentFault
from expkit.store import compacted, fold, shared
from expkit.store.atomic import read_json, temporary, write_text
from expkit.store.compacted import Key
from expkit.store.fold import Damaged
from expkit.store.layout import METRICS, Layout
from expkit.store.metrics import METRICS_SCHEMA_VERSION
from expkit.store.records import now_utc
from expkit.store.scan import look
from expkit.store.store import Store

BUNDLE_VERSION = 1
MANIFEST = "bundle.json"
_TRIES = 5
_OF_SWEEP = ("sweep.yaml", "sweep.json", "plan.parquet", "settings.json", "target.json", "confirm.json")
_OF_TRIAL = ("trial.json", "recipe.yaml", "notes.json")
_OF_REPLICATE = ("status.json", "provenance.json", "heartbeat")
_OF_ATTEMPT = ("attempt.json", "recipe.yaml", "events.jsonl")


def may_hold(sweep: str) -> re.Pattern[str]:
    """Names of all files that a bundle of this sweep may have besides its head."""

    def one_of(names: tuple[str, ...], *others: str) -> str:
        return f"(?:{'|'.join([*map(re.escape, names), *others])})"

    attempt = f"attempts/[0-9]{{1,9}}/{one_of(_OF_ATTEMPT, 'rank[0-9]{1,9}[.]failure[.]json', METRICS.pattern)}"
    trial = one_of(_OF_TRIAL, f"r[0-9]{{1,9}}/{one_of(_OF_REPLICATE, attempt)}")
    report, provenance = "report/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", "runs/provenance/[0-9a-f]{16}[.](?:json|patch)"
    plan = f"runs/sweeps/{re.escape(sweep)}/{one_of(_OF_SWEEP)}"
    return re.compile(f"{report}|{provenance}|{plan}|runs/trials/[0-9a-f]{{12}}/{trial}")


def write_bundle(store: Store, sweep: str, report: Mapping[str, str], path: Path, version: str) -> Path:
    """Write the zip; it is there as a whole or not at all. Trials may be running; `report` is by file name."""
    with tempfile.TemporaryDirectory(prefix="expkit-bundle-") as folder:
        staged = Path(folder)
        for name, text in report.items():
            write_text(staged / "report" / name, text, durable=False)
        stage(store, sweep, staged / "runs")
        beside = temporary(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _pack(staged, {"schema_version": BUNDLE_VERSION, "sweep": sweep, "made_utc": now_utc(),
                           "expkit": version}, beside)  # fmt: skip
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    return path


def stage(store: Store, sweep: str, root: Path) -> None:
    """Copy a sweep into a runs folder of its own. Records come before rows, so what is complete has all of them."""
    replicates = {(row.id, row.replicate) for row in store.read_plan(sweep)}
    target = Layout(root)
    _copy_records(store, sweep, replicates, target)
    for _ in range(_TRIES):
        try:
            _copy_rows(store, replicates, target)
            return
        except Damaged as e:
            raise EnvironmentFault(f"{e}; expkit verify says what else is damaged") from None
        except FileNotFoundError:  # folded or compacted since it was listed
            for path in target.trials.glob("*/r*/attempts/*/metrics-*.parquet"):
                path.unlink()
    raise EnvironmentFault(f"{store.layout.root} changes faster than it can be copied; try again")


def _copy_records(store: Store, sweep: str, replicates: set[tuple[str, int]], target: Layout) -> None:
    layout = store.layout
    _copy(layout.sweep(sweep), target.sweep(sweep), _OF_SWEEP)
    for id12, replicate in sorted(replicates):
        _copy(layout.trial(id12), target.trial(id12), _OF_TRIAL)
        _copy(layout.replicate(id12, replicate), target.replicate(id12, replicate), _OF_REPLICATE)
        for attempt in store.attempts(id12, replicate):
            source, copy = layout.attempt(id12, replicate, attempt), target.attempt(id12, replicate, attempt)
            failures = [path.name for path in source.glob("rank*.failure.json")]
            _copy(source, copy, (*_OF_ATTEMPT, *failures))
    references = (read_json(target.provenance(id12, replicate), []) or {} for id12, replicate in replicates)
    documents = shared.files(layout, (reference.get("shared") for reference in references))
    _copy(layout.root / "provenance", target.root / "provenance", [path.name for path in documents])


def _copy(source: Path, target: Path, names: tuple[str, ...] | list[str]) -> None:
    """Those of the files that are there, with their times: heartbeats speak by them."""
    for name in names:
        if (source / name).is_file():
            target.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copy2(source / name, target / name)
            except FileNotFoundError:
                (target / name).unlink(missing_ok=True)


def _copy_rows(store: Store, replicates: set[tuple[str, int]], target: Layout) -> None:
    layout = store.layout
    seen = look(layout, METRICS_SCHEMA_VERSION, store.set_aside)
    stores = {str(layout.compacted_metrics(name)): name for name in compacted.names(layout)}
    for file in seen.files:
        if file in stores:
            for manifest in compacted.manifests(layout, [stores[file]], []):
                held = [key for key in manifest.rows if key[:2] in replicates and key[:3] not in seen.gone]
                _extract(fold.read(Path(file)) if held else None, held, target)
            continue
        path = Path(file)
        id12, replicate, _, attempt = path.parts[-5:-1]
        if (id12, int(replicate[1:])) in replicates:
            folder = target.attempt(id12, int(replicate[1:]), int(attempt))
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path.name)


def _extract(rows: pa.Table | None, wanted: list[Key], target: Layout) -> None:
    """Write the rows that a compacted file has of these attempts, each attempt and rank by itself."""
    if rows is None:
        return
    columns = [np.asarray(rows[name]) for name in Key._fields[1:]]
    ids = rows["id"].combine_chunks()
    order = np.lexsort([*columns[::-1], np.asarray(ids.indices)])  # stable: each attempt stays in its order
    ends = np.flatnonzero(np.any([np.diff(column[order]) for column in (np.asarray(ids.indices), *columns)], axis=0))
    for place in np.split(order, ends + 1):
        own = rows.take(place)
        key = Key(*(own[name][0].as_py() for name in Key._fields))
        if key in wanted:
            folder = target.attempt(key.id, key.replicate, key.attempt)
            folder.mkdir(parents=True, exist_ok=True)
            fold.write(own, Layout.metrics(folder, key.rank, 0))


def _pack(staged: Path, head: dict[str, object], path: Path) -> None:
    files = sorted(p for p in staged.rglob("*") if p.is_file())
    sums = {str(p.relative_to(staged)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr(MANIFEST, json.dumps({**head, "files": sums}, indent=1, ensure_ascii=False))
        for file in files:
            how = zipfile.ZIP_STORED if file.suffix == ".parquet" else zipfile.ZIP_DEFLATED  # these are compressed
            bundle.write(file, file.relative_to(staged), how)
