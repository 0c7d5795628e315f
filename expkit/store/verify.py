"""Verify: every file of a runs folder looked at byte by byte, not just where a query would trip over it.

Metrics files carry their checksums, so no change in one goes unseen; those of artifacts stand in the rows that tell of
them, that of a sweep file in the sweep's record; what many trials share is called by its hash. Other records are JSON:
what is no record is found, a digit that became another is not. About 1 GB/s, and 0.5 ms a replicate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from expkit.store import compacted, gathered, notes, seal, shared, tables
from expkit.store.artifacts import digest_of
from expkit.store.atomic import Unreadable, read_json
from expkit.store.compacted import Key
from expkit.store.fold import damage, misplaced
from expkit.store.layout import INDEX_TABLE, Layout, Parts
from expkit.store.scan import Found, metrics_of, missing, scan
from expkit.store.store import Store


def verify(store: Store, ids: Collection[str] | None = None) -> Iterator[tuple[Path, str | None]]:
    """(a file, how it is damaged or None) for all files of these trials, or of the whole folder with its sweeps."""
    aside: list[Unreadable] = []
    held = {key[:2] for m in compacted.manifests(store.layout, compacted.names(store.layout), []) for key in m.rows}
    for f in scan(store.layout, aside):
        if ids is None or f.id12 in ids:
            yield from _records(store, f)
            yield from _metrics(store.layout, f)
            status = store.read_status(f.id12, f.replicate)
            if not f.metrics and (f.id12, f.replicate) not in held and status is not None and status.final:
                yield store.layout.attempts(f.id12, f.replicate), "has no metrics, though its status tells of some"
    yield from ((bad.path, bad.reason) for bad in aside)
    yield from _compacted(store.layout, ids)
    if ids is None:
        yield from _saved(store.layout)
        yield from shared.damaged(store.layout)
        for name in store.sweeps():
            yield from _sweep(store, name)


def _records(store: Store, f: Found) -> Iterator[tuple[Path, str | None]]:
    layout = store.layout
    before = len(store.set_aside)
    paths = [layout.trial_record(f.id12), layout.status(f.id12, f.replicate)]
    record = store.read_trial(f.id12)
    if record is not None and record.id12 != f.id12:
        yield paths[0], f"is the record of trial {record.id12}, in the folder of another"
    store.read_status(f.id12, f.replicate)
    store.read_provenance(f.id12, f.replicate)
    notes.read(layout, f.id12, store.set_aside)
    events = tables.events(store, [f]).select(["attempt", "kind", "payload"]).to_pylist()
    for attempt in f.attempts:
        folder = layout.attempt(f.id12, f.replicate, attempt)
        paths.append(layout.attempt_record(folder))
        store.read_attempt(folder)
    damaged = {bad.path: bad.reason for bad in store.set_aside[before:]}
    yield from damaged.items()
    yield from ((path, None if path.exists() else "is missing") for path in paths if path not in damaged)
    yield from _artifacts(layout, f, [event for event in events if event["kind"] == "artifact"])


def _artifacts(layout: Layout, f: Found, told: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Path, str | None]]:
    """Files that events tell of. An attempt that has none of them came in a bundle, which has none, or was cleared."""
    latest: dict[Path, tuple[int, object]] = {}
    for event in told:
        facts, attempt = json.loads(event["payload"]), event["attempt"]
        place = PurePosixPath(str(facts.get("path")))
        if not place.is_absolute() and ".." not in place.parts:
            latest[layout.attempt(f.id12, f.replicate, attempt) / place] = attempt, facts.get("sha256")
    kept = {attempt for path, (attempt, _) in latest.items() if path.exists()}
    yield from ((path, _changed(path, sha256)) for path, (attempt, sha256) in latest.items() if attempt in kept)


def _changed(path: Path, sha256: object) -> str | None:
    """How a file is not the one with this sha256."""
    try:
        return None if digest_of(path) == sha256 else "was changed since it was written: its sha256 is another"
    except FileNotFoundError:
        return "is missing"
    except OSError as e:
        return f"cannot be read ({e.strerror})"


def _metrics(layout: Layout, f: Found) -> Iterator[tuple[Path, str | None]]:
    for attempt in f.attempts:
        folder = layout.attempt(f.id12, f.replicate, attempt)
        paths = metrics_of(folder)
        for path in map(Path, paths):
            parts = Parts.of(path.name)
            assert parts is not None
            reason = damage(path) or misplaced(path, Key(f.id12, f.replicate, attempt, parts.rank))
            if reason is None or path.exists():  # folded while we looked
                yield path, reason
        yield from ((Layout.metrics(folder, gap.rank, gap.first), "is missing") for gap in missing(paths))


def _compacted(layout: Layout, ids: Collection[str] | None) -> Iterator[tuple[Path, str | None]]:
    for name in compacted.names(layout):
        aside: list[Unreadable] = []
        path, manifest_path = layout.compacted_metrics(name), layout.manifest(name)
        for manifest in compacted.manifests(layout, [name], aside):
            if ids is None or any(key.id in ids for key in manifest.rows):
                reason = _damage_of(path, manifest)
                if reason is None or manifest_path.exists():  # replaced while we looked
                    yield path, reason
        yield from ((bad.path, bad.reason) for bad in aside)


def _damage_of(path: Path, manifest: compacted.Manifest) -> str | None:
    try:
        data = path.read_bytes()
    except OSError as e:
        return f"cannot be read ({e.strerror}), and so are its {manifest.num_rows:,} rows"
    if len(data) != manifest.size:
        return f"has {len(data):,} bytes instead of {manifest.size:,}"
    same = hashlib.sha256(data).hexdigest() == manifest.sha256
    return None if same else "was changed since it was written: its content is not what its manifest says"


def _saved(layout: Layout) -> Iterator[tuple[Path, str | None]]:
    """What only saves time; index and copies."""
    aside: list[Unreadable] = []
    read_json(layout.index, aside)
    yield from ((bad.path, f"{bad.reason}; expkit compact makes it anew") for bad in aside)
    for path in sorted(layout.compacted.glob("index-*.parquet")):
        if INDEX_TABLE.fullmatch(path.name):
            whole = seal.is_whole(path.read_bytes())
            yield path, None if whole else "was changed since it was written; queries do without it"
    copies = {copy.path for copy in gathered.read(layout)}
    for path in map(layout.compacted_metrics, gathered.names(layout)):
        yield path, None if str(path) in copies else "was changed since it was written; queries do without it"


def _sweep(store: Store, name: str) -> Iterator[tuple[Path, str | None]]:
    before = len(store.set_aside)
    for read in (store.sweep_record, store.sweep_settings, store.targets, store.read_plan):
        read(name)
    damaged = store.set_aside[before:]
    yield from ((bad.path, bad.reason) for bad in damaged)
    if not damaged:
        yield store.layout.plan(name), None
        path, known = store.layout.sweep_yaml(name), store.sweep_record(name).get("sha256")
        if known is not None:
            yield path, _changed(path, known) and _changed(path, store.sweep_record(name).get("sha256"))  # just planned
