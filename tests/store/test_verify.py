"""Verify: whatever byte of whatever file is changed, it is named, once."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from expkit.store import compacted, shared
from expkit.store.artifacts import Artifacts
from expkit.store.compact import compact
from expkit.store.events import EventLog
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.store import Store
from expkit.store.verify import verify
from tests.store.synthetic import Method, Synthetic, make_store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    return make_store(tmp_path_factory.mktemp("made"), {"ema": Method()}, seeds=(17,))


@pytest.fixture
def store(made: Synthetic, tmp_path: Path) -> Store:
    shutil.copytree(made.root, tmp_path / "runs")
    return Store(tmp_path / "runs")


def damaged(store: Store, ids: set[str] | None = None) -> dict[Path, str]:
    found = [(path, reason) for path, reason in verify(store, ids) if reason is not None]
    assert max(Counter(path for path, _ in found).values(), default=1) == 1
    return dict(found)


def flip(path: Path, place: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1 << random.Random(place).randrange(8)
    path.write_bytes(data)


@pytest.mark.parametrize("kept", ["parts", "compacted", "indexed"])
def test_one_changed_bit_of_a_metrics_file_is_found_wherever_it_is(store: Store, kept: str) -> None:
    if kept == "indexed":
        for path in store.layout.root.rglob("*"):
            os.utime(path, (1e9, 1e9))
    if kept != "parts":
        compact(store)
    assert damaged(store) == {}
    rng = random.Random(7)
    paths = [p for p in store.layout.root.rglob("*.parquet") if p.name != "plan.parquet"]
    assert len(paths) == {"parts": 3, "compacted": 1, "indexed": 4}[kept]
    for path in paths:
        whole = path.read_bytes()
        for _ in range(15):
            flip(path, rng.random())
            assert list(damaged(store)) == [path]
            path.write_bytes(whole)


def test_what_is_no_record_and_what_is_missing(store: Store, made: Synthetic) -> None:
    none, ema = made.ids["none", 17], made.ids["ema", 17]
    layout = store.layout
    layout.status(none, 1).write_text("{")
    layout.attempt_record(layout.attempt(none, 0, 1)).unlink()
    shutil.copy(layout.trial_record(none), layout.trial_record(ema))
    layout.settings("ablate").write_text("[]")
    layout.metrics(layout.attempt(none, 0, 1), 0, 0).unlink()
    alien = layout.metrics(layout.attempt(ema, 0, 1), 0, 0)
    shutil.copy(layout.metrics(layout.attempt(none, 1, 1), 0, 0), alien)
    events = layout.events(layout.attempt(none, 1, 1))
    events.write_text(events.read_text() + "{")
    assert damaged(store) == {
        layout.status(none, 1): "cannot be read (Expecting property name enclosed in double quotes: "
                                "line 1 column 2 (char 1))",
        layout.attempt_record(layout.attempt(none, 0, 1)): "is missing",
        layout.trial_record(ema): f"is the record of trial {none}, in the folder of another",
        layout.settings("ablate"): "holds no record but list",
        layout.attempts(none, 0): "has no metrics, though its status tells of some",
        alien: f"holds rows of another id: {none}",
        events: "1 of 3 lines cannot be read",
    }  # fmt: skip
    assert set(damaged(store, {ema})) == {layout.trial_record(ema), alien}


def test_artifacts_shared_documents_plans_and_sweep_files_are_compared_with_their_hashes(
    store: Store, made: Synthetic
) -> None:
    folder = store.layout.attempt(made.ids["ema", 17], 0, 1)
    kept, events = Artifacts(folder), EventLog(folder, 0)
    for name in ("kept", "changed", "gone"):
        events.write("artifact", 3, **kept.text(name, 3, name))
    events.write("artifact", 4, **{**kept.text("kept", 4, "x"), "path": "../../../outside"})
    events.close()
    shared.write(store.layout, {"packages": ["torch"]})
    assert damaged(store) == {}
    changed, gone = (next((folder / "artifacts" / name).iterdir()) for name in ("changed", "gone"))
    changed.write_text("CHANGED")
    gone.unlink()
    (document,) = (store.layout.root / "provenance").glob("*.json")
    document.write_text(document.read_text().replace("torch", "TORCH"))
    flip(store.layout.plan("ablate"), 0.5)
    assert damaged(store) == {
        changed: "was changed since it was written: its sha256 is another",
        gone: "is missing",
        document: "was changed since it was written: it is called by the hash of another text",
        store.layout.plan("ablate"): "is no plan (it was changed since it was written)",
    }


def test_a_part_that_is_missing_and_a_compacted_file_that_is(store: Store, made: Synthetic) -> None:
    id12 = made.ids["ema", 17]
    folder = store.layout.attempt(id12, 0, 1)
    writer = MetricsWriter(folder, id12, 0, 1)
    writer.log_many({"a": 1.0}, Stamp(1, 0, 0, 0, 0, 0.0, 0.0, 0.0))
    writer.close()
    first = store.layout.metrics(folder, 0, 0)
    first.rename(folder / "kept")
    assert damaged(store) == {first: "is missing"}
    (folder / "kept").rename(first)
    compact(store)
    (name,) = compacted.names(store.layout)
    store.layout.compacted_metrics(name).unlink()
    ((path, reason),) = damaged(store, {id12}).items()
    assert path == store.layout.compacted_metrics(name) and "and so are its 193 rows" in reason
