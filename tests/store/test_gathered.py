"""Copies of small metrics files: the same answers with them and without, whatever happens to a file or to a copy."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expkit.store import gather, gathered
from expkit.store.compact import compact, take_out
from expkit.store.compacted import Key
from expkit.store.fold import fold
from expkit.store.metrics import METRICS_SCHEMA_VERSION, MetricsWriter, Stamp
from expkit.store.query import connect
from expkit.store.scan import look
from expkit.store.store import Store
from expkit.store.verify import verify

ROWS = "SELECT * REPLACE (value::VARCHAR AS value) FROM metrics_all ORDER BY ALL"  # NaN equals nothing, its text does
TRIALS = ("a" * 12, "b" * 12, "c" * 12)


def written(store: Store, id12: str, *, state: str = "complete", parts: int = 3) -> Path:
    """A replicate of that many parts of two rows."""
    folder = store.new_attempt(id12, 0, "driver")
    writer = MetricsWriter(folder, id12, 0, 1)
    for batch in range(1, parts + 1):
        writer.log_many({"loss": 1 / batch, "odd": float("nan")}, Stamp(batch, 0, 0, 0, 0, batch * 0.1, 0.0, 0.0))
        writer.flush()
    writer.close()
    status = store.read_status(id12, 0)
    assert status is not None
    store.write_status(id12, 0, replace(status, state=state))
    return folder


def old(root: Path) -> None:
    """As if nothing had been changed for years."""
    for path in root.rglob("*"):
        os.utime(path, (1e9, 1e9))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Three trials of three small files each, old enough; nine files are worth a copy."""
    monkeypatch.setattr(gather, "ENOUGH_FILES", 9)
    store = Store(tmp_path / "runs")
    for id12 in TRIALS:
        written(store, id12)
    old(store.layout.root)
    return store


def rows(store: Store) -> pa.Table:
    with connect(store.layout.root) as con:
        found = con.table(ROWS)
        assert con.set_aside == []
    return found


def without_copies(store: Store) -> tuple[pa.Table, list[str]]:
    """(rows, what cannot be read), where no copy can be."""
    aside = store.layout.root.rename(store.layout.root.with_name("kept"))
    shutil.copytree(aside, store.layout.root)
    shutil.rmtree(store.layout.compacted, ignore_errors=True)
    store.layout.compacted.write_text("no folder")
    try:
        return answered(store)
    finally:
        shutil.rmtree(store.layout.root)
        aside.rename(store.layout.root)


def answered(store: Store) -> tuple[pa.Table, list[str]]:
    with connect(store.layout.root) as con:
        return con.table(ROWS), sorted(str(bad) for bad in con.set_aside)


def counting(store: Store) -> list[Path]:
    return [Path(path) for path in look(store.layout, METRICS_SCHEMA_VERSION, []).files]


def test_the_first_reader_copies_and_the_next_reads_one_file(store: Store) -> None:
    expected, _ = without_copies(store)
    assert len(counting(store)) == 9
    assert rows(store).equals(expected)
    (copy,) = counting(store)
    assert copy.parent == store.layout.compacted and len(gathered.names(store.layout)) == 1
    before = copy.stat().st_mtime_ns
    assert rows(store).equals(expected)
    assert counting(store) == [copy] and copy.stat().st_mtime_ns == before
    assert len(list(store.layout.trials.rglob("*.parquet"))) == 9  # nothing of a trial is touched


def attempt(store: Store, id12: str) -> Path:
    return store.layout.attempt(id12, 0, 1)


def other_rows(path: Path) -> None:
    writer = MetricsWriter(path.parent, path.parts[-5], 0, 1)
    writer.log_many({"other": 7.0}, Stamp(1, 0, 0, 0, 0, 0.0, 0.0, 0.0))
    writer.close()
    max(path.parent.glob("*.parquet")).rename(path)


def another_part(folder: Path) -> None:
    writer = MetricsWriter(folder, folder.parts[-4], 0, 1)
    writer.log_many({"late": 7.0}, Stamp(9, 0, 0, 0, 0, 0.0, 0.0, 0.0))
    writer.close()


CHANGES: dict[str, Callable[[Store, Path], Any]] = {
    "replaced by other rows": lambda store, folder: other_rows(folder / "metrics-000001.parquet"),
    "replaced by nothing": lambda store, folder: (folder / "metrics-000001.parquet").write_bytes(b""),
    "cut off": lambda store, folder: os.truncate(folder / "metrics-000001.parquet", 900),
    "removed": lambda store, folder: (folder / "metrics-000001.parquet").unlink(),
    "one more": lambda store, folder: another_part(folder),
    "a trial less": lambda store, folder: shutil.rmtree(folder.parents[2]),
    "an attempt less": lambda store, folder: shutil.rmtree(folder),
    "a trial more": lambda store, folder: written(store, "d" * 12),
    "folded": lambda store, folder: fold(folder, Key(folder.parts[-4], 0, 1, 0)),
    "compacted": lambda store, folder: compact(store),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_since_is_seen(store: Store, change: str) -> None:
    before = rows(store)
    assert len(counting(store)) == 1
    CHANGES[change](store, attempt(store, TRIALS[0]))
    after, aside = answered(store)
    expected, named = without_copies(store) if change != "compacted" else (before, [])
    assert after.equals(expected) and aside == named
    assert after.equals(before) == (change in ("folded", "compacted"))
    assert answered(store) == (after, aside)


@pytest.mark.parametrize("place", [0.3, 0.97, None])
def test_a_damaged_copy_is_passed_over_and_replaced(store: Store, place: float | None) -> None:
    expected = rows(store)
    (copy,) = counting(store)
    data = bytearray(copy.read_bytes())
    if place is not None:
        data[int(place * len(data))] ^= 1
    copy.write_bytes(data if place is not None else b"")
    assert len(counting(store)) == 9
    assert [path for path, reason in verify(store) if reason is not None and path.suffix == ".parquet"] == [copy]
    assert rows(store).equals(expected)
    (another,) = counting(store)
    assert another != copy and not copy.exists()


@pytest.mark.parametrize("damage", [b"", b"[]", b"{}", b'{"schema_version": 1, "sha256": "", "parts": {"a": 1}}'])
def test_a_copy_of_which_nobody_knows_of_what_is_none(store: Store, damage: bytes) -> None:
    expected = rows(store)
    (name,) = gathered.names(store.layout)
    store.layout.manifest(name).write_bytes(damage)
    assert len(counting(store)) == 9
    assert rows(store).equals(expected) and len(counting(store)) == 1


def test_who_may_not_write_reads_all_the_same(store: Store) -> None:
    expected, _ = without_copies(store)
    store.layout.compacted.write_text("no folder, whoever asks")
    assert rows(store).equals(expected)
    store.layout.compacted.unlink()
    with gather._alone(store.layout):  # another reader is at it
        assert rows(store).equals(expected)
    assert gathered.names(store.layout) == []


def test_readers_at_once_get_the_same_and_leave_one_copy(store: Store) -> None:
    expected, _ = without_copies(store)
    found: list[pa.Table] = []
    readers = [threading.Thread(target=lambda: found.append(rows(store))) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len(found) == 4 and all(each.equals(expected) for each in found)
    assert len(gathered.names(store.layout)) == 1


def test_what_may_go_on_or_has_just_changed_is_not_copied(store: Store) -> None:
    status = store.layout.status(TRIALS[0], 0)
    text = status.read_text()
    status.write_text(text.replace("complete", "interrupted"))
    rows(store)
    assert len(counting(store)) == 9
    status.write_text(text)
    os.utime(attempt(store, TRIALS[0]) / "metrics-000002.parquet")
    rows(store)
    assert len(counting(store)) == 9


def test_an_attempt_with_a_damaged_file_is_left_as_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "ENOUGH_FILES", 6)
    part = attempt(store, TRIALS[0]) / "metrics-000001.parquet"
    data = bytearray(part.read_bytes())
    data[200] ^= 1
    part.write_bytes(data)
    os.utime(part, (1e9, 1e9))
    before, _ = without_copies(store)
    assert answered(store)[0].equals(before)
    assert len([path for path in counting(store) if path.parent == part.parent]) == 3 and len(counting(store)) == 4


def test_what_comes_later_has_a_copy_of_its_own(store: Store) -> None:
    rows(store)
    for id12 in ("d" * 12, "e" * 12, "f" * 12):
        old(written(store, id12).parents[2])
    expected, _ = without_copies(store)
    assert rows(store).equals(expected)
    assert len(counting(store)) == 2 and len(gathered.names(store.layout)) == 2


def test_a_thorough_look_is_one_at_what_was_written(store: Store) -> None:
    expected = rows(store)
    assert len(counting(store)) == 1
    part = attempt(store, TRIALS[0]) / "metrics-000001.parquet"
    whole, stat = part.read_bytes(), part.stat()
    part.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    os.utime(part, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # a disk that forgets changes no time
    assert rows(store).equals(expected)
    with connect(store.layout.root, thorough=True) as con:
        assert con.table(ROWS).num_rows == len(expected) - 2
        assert [bad.path for bad in con.set_aside] == [part]


def test_rows_of_a_removed_trial_do_not_stay_in_a_copy(store: Store) -> None:
    rows(store)
    shutil.rmtree(store.layout.trial(TRIALS[0]))
    take_out(store)
    left = pa.concat_tables([pq.read_table(path) for path in store.layout.root.rglob("*.parquet")])
    assert set(left["id"].to_pylist()) == set(TRIALS[1:])


def test_compaction_leaves_no_copy(store: Store) -> None:
    expected = rows(store)
    compact(store)
    assert gathered.names(store.layout) == [] and rows(store).equals(expected)
    assert [path.suffix for path in counting(store)] == [".parquet"]
