"""The index of complete trials: the same answers with it and without, whatever happens to the folder or to itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from expkit.store import index
from expkit.store.compact import compact
from expkit.store.events import EventLog
from expkit.store.metrics import METRICS_SCHEMA_VERSION
from expkit.store.query import connect
from expkit.store.scan import look
from expkit.store.store import Store
from tests.store.synthetic import Cell, Method, Synthetic, make_store

VIEWS = ("trials", "params", "events", "algorithms", "final", "notes")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    """Two trials complete, one of them twice; one failed and one running."""

    def change(cell: Cell) -> Cell:
        states = {("ema", 17): "failed", ("ema", 18): "running"}
        return replace(cell, state=states.get((cell.arm, cell.seed), "complete"))

    return make_store(tmp_path_factory.mktemp("made"), {"ema": Method()}, seeds=(17, 18), change=change)


@pytest.fixture
def store(made: Synthetic, tmp_path: Path) -> Store:
    """Compacted, and with an index."""
    shutil.copytree(made.root, tmp_path / "runs")
    for path in (tmp_path / "runs").rglob("*"):
        os.utime(path, (1e9, 1e9))
    store = Store(tmp_path / "runs")
    compact(store)
    return store


def settled(store: Store) -> list[tuple[str, int]]:
    """Replicates of which no record is read."""
    found = look(store.layout, METRICS_SCHEMA_VERSION, [])
    return [(f.id12, f.replicate) for f in found.found if found.known.complete(store.layout, f.id12)]


def answers(store: Store) -> dict[str, pa.Table]:
    with connect(store.layout.root) as con:
        found = {view: con.table(f"SELECT * FROM {view} ORDER BY ALL") for view in VIEWS}
        assert con.set_aside == []
    return found


def without_index(store: Store) -> dict[str, pa.Table]:
    store.layout.index.rename(store.layout.root / "kept")
    try:
        return answers(store)
    finally:
        (store.layout.root / "kept").rename(store.layout.index)


def test_complete_trials_are_in_it_and_answers_are_the_same(store: Store, made: Synthetic) -> None:
    assert settled(store) == sorted((made.ids["none", seed], r) for seed in (17, 18) for r in (0, 1))
    assert answers(store) == without_index(store)
    before = store.layout.index.read_bytes()
    compact(store)
    assert store.layout.index.read_bytes() == before


def test_records_of_complete_trials_are_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers(store)
    read: list[str] = []
    real = Store.read_trial
    monkeypatch.setattr(Store, "read_trial", lambda self, id12: read.append(id12) or real(self, id12))
    assert answers(store) == expected
    assert read and not set(read) & {id12 for id12, _ in settled(store)}


CHANGES: dict[str, Callable[[Store, str], Any]] = {
    "a replicate more": lambda store, id12: shutil.copytree(
        store.layout.replicate(id12, 0), store.layout.replicate(id12, 5)
    ),
    "a replicate less": lambda store, id12: shutil.rmtree(store.layout.replicate(id12, 1)),
    "a trial less": lambda store, id12: shutil.rmtree(store.layout.trial(id12)),
    "another status": lambda store, id12: store.layout.status(id12, 0).write_text(
        store.layout.status(id12, 0).read_text().replace("bench1", "bench2")
    ),
    "an attempt less": lambda store, id12: shutil.rmtree(store.layout.attempt(id12, 0, 1)),
    "no status": lambda store, id12: store.layout.status(id12, 0).unlink(),
    "another record": lambda store, id12: store.layout.trial_record(id12).write_text(
        store.layout.trial_record(id12).read_text().replace("synthetic", "SYNTHETIC")
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_since_is_read_again(store: Store, made: Synthetic, change: str) -> None:
    before = answers(store)
    CHANGES[change](store, made.ids["none", 17])
    assert {id12 for id12, _ in settled(store)} == {made.ids["none", 18]}
    after = answers(store)
    assert after == without_index(store) and after != before


def test_an_event_more_is_seen(store: Store, made: Synthetic) -> None:
    """It changes neither folder nor record, so all else of the trial is still known."""
    before = answers(store)
    EventLog(store.layout.attempt(made.ids["none", 17], 0, 1)).write("late")
    after = answers(store)
    assert after == without_index(store) and len(after["events"]) == len(before["events"]) + 1
    assert len(settled(store)) == 4


def test_a_record_that_cannot_be_read_is_named_by_every_reader(store: Store, made: Synthetic) -> None:
    store.layout.index.unlink()
    record = store.layout.trial_record(made.ids["none", 17])
    record.write_text("{")
    os.utime(record, (1e9, 1e9))
    compact(store)
    assert {id12 for id12, _ in settled(store)} == {made.ids["none", 18]}
    for _ in range(2):
        with connect(store.layout.root) as con:
            assert len(con.table("FROM trials")) == 4
            assert [bad.path for bad in con.set_aside] == [record]


def test_a_damaged_index_costs_time_and_nothing_else(store: Store) -> None:
    expected = answers(store)
    whole = store.layout.index.read_bytes()
    for damage in (b"", b"{}", whole[:-100], whole.replace(b'"schema_version": 2', b'"schema_version": 9')):
        store.layout.index.write_bytes(damage)
        assert answers(store) == expected and settled(store) == []
    store.layout.index.write_bytes(whole)
    for table in store.layout.compacted.glob("index-*.parquet"):
        data = bytearray(table.read_bytes())
        data[len(data) // 3] ^= 1
        table.write_bytes(data)
    assert answers(store) == expected and len(settled(store)) == 4
    for table in store.layout.compacted.glob("index-*.parquet"):
        table.unlink()
    assert answers(store) == expected


def test_a_table_with_other_columns_is_not_used(store: Store) -> None:
    known = index.read(store.layout)
    assert known.table(store.layout, "params", pa.schema([("id", pa.string())])) is None


def test_it_is_not_trusted_where_a_compacted_file_cannot_be_read(store: Store) -> None:
    (path,) = (p for p in store.layout.compacted.glob("*.parquet") if len(p.stem) == 32)
    path.write_bytes(b"")
    assert settled(store) == []


def test_what_changed_just_now_is_left_out(made: Synthetic, tmp_path: Path) -> None:
    shutil.copytree(made.root, tmp_path / "runs")
    for path in (tmp_path / "runs" / "trials").iterdir():
        os.utime(path)
    compact(Store(tmp_path / "runs"))
    assert settled(Store(tmp_path / "runs")) == []
