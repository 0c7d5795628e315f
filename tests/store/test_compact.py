"""Compaction: every row once at each step, after a kill at any, beside readers and writers; damage left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expkit.errors import EnvironmentFault
from expkit.store import compact as compacting
from expkit.store import compacted, fold
from expkit.store.atomic import Unreadable
from expkit.store.compact import compact
from expkit.store.compacted import Key
from expkit.store.layout import METRICS
from expkit.store.metrics import COUNTED, METRICS_SCHEMA_VERSION, SCHEMA, MetricsWriter, Stamp
from expkit.store.query import connect
from expkit.store.scan import look
from expkit.store.store import Store
from tests.store.synthetic import Cell, Method, Synthetic, make_store

ID12 = "0123456789ab"
ALL = "SELECT * REPLACE (value::VARCHAR AS value) FROM metrics_all ORDER BY ALL"  # NaN equals nothing, its text does
KILLED_AT_EACH_STEP = """
import os, shutil, signal, sys
from pathlib import Path
import numpy, pyarrow
pyarrow.array(numpy.zeros(1))  # imports pandas, where there is one; not in each child
from expkit.store import compact, fold, gather
from expkit.store.compacted import Key
from expkit.store.metrics import METRICS_SCHEMA_VERSION
from expkit.store.scan import look
from expkit.store.store import Store

gather.ENOUGH_FILES = 2
made, scratch, what = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
step = 0

def count(event, arguments):
    global step
    changes = event in ("os.rename", "os.remove", "os.mkdir", "os.truncate")
    if changes or (event == "open" and str(arguments[0]).startswith(str(scratch)) and arguments[2] & os.O_CREAT):
        if step == at:
            os.kill(os.getpid(), signal.SIGKILL)
        step += 1

for at in range(1000):
    runs = scratch / str(at)
    shutil.copytree(made, runs)
    child = os.fork()
    if not child:
        sys.addaudithook(count)
        if what == "compact":
            compact.compact(Store(runs))
        elif what == "gather":
            found = look(Store(runs).layout, METRICS_SCHEMA_VERSION, [])
            gather.gather(Store(runs), found.files, found.copies)
        else:
            for folder in sorted(runs.glob("trials/*/r*/attempts/1")):
                fold.fold(folder, Key(folder.parts[-4], int(folder.parts[-3][1:]), 1, 0))
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


def table(root: Path) -> pa.Table:
    with connect(root) as con:
        rows = con.table(ALL)
        assert con.set_aside == []
    return rows


def seen(store: Store) -> list[str]:
    """The same without DuckDB: the rows of the files that count."""
    aside: list[Unreadable] = []
    rows = pa.concat_tables(map(pq.read_table, look(store.layout, METRICS_SCHEMA_VERSION, aside).files))
    assert aside == []
    return sorted(map(str, rows.to_pylist()))


def files(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*.parquet") if METRICS.fullmatch(p.name) or p.parent.name == "metrics")


def attempt(store: Store, replicate: int, batches: int, *, every: int = 10, rank: int = 0) -> Path:
    """An attempt with two metrics, a part each `every` batches."""
    folder = store.new_attempt(ID12, replicate, "driver")
    writer = MetricsWriter(folder, ID12, replicate, 1, rank)
    for batch in range(1, batches + 1):
        writer.log_many({"loss": 1 / batch, "acc": float("nan")}, Stamp(batch, 0, 0, 0, 0, batch * 0.1, 0.0, 0.0))
        if batch % every == 0:
            writer.flush()
    writer.close()
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    """One arm failed, one was lost and may be running elsewhere; three parts an attempt."""

    def change(cell: Cell) -> Cell:
        states = {("ema", 18): "failed", ("ema", 17): "lost"}
        return replace(cell, state=states.get((cell.arm, cell.seed), "complete"))

    made = make_store(tmp_path_factory.mktemp("made"), {"ema": Method()}, seeds=(17, 18), change=change)
    for path in files(made.root):
        key = Key(path.parts[-5], int(path.parts[-4][1:]), int(path.parts[-2]), 0)
        writer = MetricsWriter(path.parent, *key)
        for batch in (1000, 1001):
            writer.log_many({"extra/b": 1.0, "extra/a": float("inf")}, Stamp(batch, 1, 0, 0, 0, 0.0, 0.0, 0.0))
            writer.flush()
    return made


@pytest.fixture
def copy(made: Synthetic, tmp_path: Path) -> Store:
    shutil.copytree(made.root, tmp_path / "runs")
    return Store(tmp_path / "runs")


def test_finished_attempts_become_one_sorted_file_and_nothing_else_changes(copy: Store) -> None:
    before = table(copy.layout.root)
    done = compact(copy)
    assert (done.files, done.attempts, done.parts, done.damaged) == (1, 5, 15, [])
    assert table(copy.layout.root).equals(before)
    (name,) = compacted.names(copy.layout)
    rows = pq.read_table(copy.layout.compacted_metrics(name), page_checksum_verification=True)
    order = list(zip(*(rows[c].to_pylist() for c in ("name", "id", "batch", "replicate")), strict=True))
    assert order == sorted(order) and len(order) == done.rows
    kept = [path for path in files(copy.layout.root) if path.parent.name != "metrics"]
    assert len(kept) == 3 and {path.parts[-5] for path in kept} == {_lost(before, copy)}
    assert compact(copy).files == 0  # nothing is left to do


def test_what_finishes_later_joins_the_small_file(copy: Store) -> None:
    compact(copy)
    before = compacted.names(copy.layout)
    finish(copy, 0, attempt(copy, 0, 25))
    rows = table(copy.layout.root)
    done = compact(copy)
    assert (done.files, done.attempts) == (1, 1)
    assert len(compacted.names(copy.layout)) == 1 and compacted.names(copy.layout) != before
    assert table(copy.layout.root).equals(rows)


def test_files_have_enough_rows_and_a_long_attempt_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (fold, compacting):
        monkeypatch.setattr(module, "ENOUGH_ROWS", 100)
    store = Store(tmp_path)
    for replicate, batches in enumerate((30, 30, 30, 30, 170, 5)):
        finish(store, replicate, attempt(store, replicate, batches))
    before = table(tmp_path)
    compact(store)
    assert table(tmp_path).equals(before)
    rows = [m.num_rows for m in compacted.manifests(store.layout, compacted.names(store.layout), [])]
    assert sorted(rows) == [10, 120, 120]
    long = store.layout.attempt(ID12, 4, 1)
    folded = [f"metrics-{first:06d}-{first + 4:06d}.parquet" for first in (0, 5, 10)]
    assert [p.name for p in files(long)] == [*folded, "metrics-000015-000016.parquet"]
    compact(store)
    assert table(tmp_path).equals(before)


@pytest.mark.parametrize("what", ["compact", "fold", "gather"])
def test_a_kill_at_any_step_loses_no_row_and_shows_none_twice(tmp_path: Path, what: str) -> None:
    """Two attempts of three parts, and an earlier compacted file that is taken up again."""
    made = Store(tmp_path / "made")
    finish(made, 0, attempt(made, 0, 10))
    compact(made)
    for replicate in (1, 2):
        finish(made, replicate, attempt(made, replicate, 25))
    for path in made.layout.root.rglob("*"):
        os.utime(path, (1e9, 1e9))  # old enough for the index
    expected = seen(made)
    (tmp_path / "killed").mkdir()
    arguments = [made.layout.root, tmp_path / "killed", what]
    subprocess.run([sys.executable, "-c", KILLED_AT_EACH_STEP, *arguments], check=True, timeout=120)
    stores = [Store(root) for root in (tmp_path / "killed").iterdir()]
    assert len(stores) > {"compact": 18, "fold": 14, "gather": 5}[what]
    for store in stores:
        assert seen(store) == expected, store.layout.root
        compact(store)
        assert seen(store) == expected, store.layout.root
        names = compacted.names(store.layout)
        tables = [p for p in store.layout.compacted.iterdir() if p.stem not in (*names, ".lock", ".gathering", "index")]
        assert len(names) == 1 and len(tables) == 3 and len(files(store.layout.root)) == 4


def test_a_reader_that_opened_before_finds_what_its_files_became(copy: Store) -> None:
    with connect(copy.layout.root) as con:
        compact(copy)
        assert con.table(ALL).equals(table(copy.layout.root))
        assert con.set_aside == []


def test_a_listing_from_before_the_removal_is_made_anew(copy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts are listed, then all of them are folded, then they are opened."""
    from expkit.store import scan

    expected = table(copy.layout.root)
    real, calls = scan.scan, []

    def listed(*arguments: object) -> object:
        found = list(real(*arguments))  # type: ignore[arg-type]
        if not calls:
            calls.append(compact(copy))
        return iter(found)

    monkeypatch.setattr(scan, "scan", listed)
    assert table(copy.layout.root).equals(expected) and calls


def test_only_one_compacts_at_a_time(copy: Store) -> None:
    with compacting._alone(copy.layout), pytest.raises(EnvironmentFault, match="another expkit compact"):
        compact(copy)
    assert compact(copy).files == 1


def test_a_removed_trial_is_gone_at_once_and_leaves_the_file_with_the_next(copy: Store, made: Synthetic) -> None:
    compact(copy)
    gone = made.ids["none", 17]
    shutil.rmtree(copy.layout.trial(gone))
    shutil.rmtree(copy.layout.replicate(made.ids["none", 18], 1))
    rows = table(copy.layout.root)
    assert gone not in rows["id"].to_pylist()
    compact(copy)
    assert table(copy.layout.root).equals(rows)
    (manifest,) = compacted.manifests(copy.layout, compacted.names(copy.layout), [])
    left = {(made.ids["none", 18], 0), (made.ids["ema", 18], 0)}
    assert {(key.id, key.replicate) for key in manifest.rows} == left


@pytest.mark.parametrize("place", ["data", "footer", "cut", "alien", "missing"])
def test_what_is_damaged_is_named_and_left_alone(copy: Store, place: str) -> None:
    part = files(copy.layout.attempt(_finished(copy), 0, 1))[1]
    data = bytearray(part.read_bytes())
    if place == "data":
        data[200] ^= 1
    elif place == "footer":
        data[-100] ^= 1
    elif place == "cut":
        del data[-1000:]
    elif place == "alien":
        data = bytearray(next(p for p in files(copy.layout.root) if p.parts[-5] != part.parts[-5]).read_bytes())
    part.write_bytes(data)
    if place == "missing":
        part.unlink()
    done = compact(copy)
    assert [bad.path for bad in done.damaged] == [part]
    assert done.attempts == 4
    assert part.exists() or place == "missing"
    assert len(files(part.parent)) == 3 - (place == "missing")


def test_a_damaged_compacted_file_is_named_once_and_parts_that_are_still_there_count(copy: Store) -> None:
    expected = table(copy.layout.root)
    shutil.copytree(copy.layout.trials, copy.layout.root / "backup")
    compact(copy)
    (name,) = compacted.names(copy.layout)
    path = copy.layout.compacted_metrics(name)
    path.write_bytes(path.read_bytes()[:-50])
    with connect(copy.layout.root) as con:
        assert con.table(ALL).num_rows < expected.num_rows
        assert [bad.path for bad in con.set_aside] == [path]
        assert len(con.store.torn()) == 5
    shutil.rmtree(copy.layout.trials)
    (copy.layout.root / "backup").rename(copy.layout.trials)
    with connect(copy.layout.root) as con:
        assert con.table(ALL).equals(expected)
        assert [bad.path for bad in con.set_aside] == [path]
        assert con.store.torn() == set()


def test_files_of_the_former_schema_are_read_and_folded(copy: Store) -> None:
    """Version 1 had no seal; its data pages have checksums."""
    expected = table(copy.layout.root)
    first = SCHEMA.with_metadata({"expkit.metrics.schema_version": "1"})
    for path in files(copy.layout.root):
        rows = pq.ParquetFile(path).read().replace_schema_metadata(first.metadata)
        pq.write_table(rows, path, compression="zstd", write_page_checksum=True, write_statistics=COUNTED)
    assert table(copy.layout.root).equals(expected)
    part = files(copy.layout.attempt(_finished(copy), 0, 1))[0]
    whole = part.read_bytes()
    value = pq.read_metadata(part).row_group(0).column(SCHEMA.names.index("value"))
    inside = value.data_page_offset + value.total_compressed_size - 3
    part.write_bytes(whole[:inside] + bytes([whole[inside] ^ 1]) + whole[inside + 1 :])
    assert [bad.path for bad in compact(copy).damaged] == [part]
    part.write_bytes(whole)
    assert compact(copy).attempts == 1
    assert table(copy.layout.root).equals(expected)


def test_row_groups_begin_where_a_series_does() -> None:
    codes, names = [], [f"m{i}" for i in range(4)]
    for code, rows in enumerate((300_000, 5, 20_000, 100)):
        codes += [code] * rows
    rows = pa.table({"name": pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)})
    groups = [(group["name"][0].as_py(), len(group)) for group in fold.row_groups(rows)]
    assert groups == [("m0", 131072), ("m0", 131072), ("m0", 37856), ("m1", 20005), ("m3", 100)]


def test_ranks_are_folded_apart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = attempt(store, 0, 30)
    writer = MetricsWriter(folder, ID12, 0, 1, rank=1)
    for batch in (1, 2):
        writer.log_many({"loss": 0.5}, Stamp(batch, 0, 0, 0, 0, 0.0, 0.0, 0.0))
        writer.flush()
    before = table(tmp_path)
    for rank in (0, 1):
        fold.fold(folder, Key(ID12, 0, 1, rank))
    assert [p.name for p in files(folder)] == ["metrics-000000-000002.parquet", "metrics-r1-000000-000001.parquet"]
    assert table(tmp_path).equals(before)
    assert MetricsWriter(folder, ID12, 0, 1)._part == 3


def finish(store: Store, replicate: int, folder: Path) -> None:
    status = store.read_status(ID12, replicate)
    assert status is not None and folder.exists()
    store.write_status(ID12, replicate, replace(status, state="complete"))


def _lost(rows: pa.Table, store: Store) -> str:
    ids = set(rows["id"].to_pylist())
    (lost,) = (id12 for id12 in ids if store.state_of(id12, 0) == "lost")
    return lost


def _finished(store: Store) -> str:
    return min(p.name for p in store.layout.trials.iterdir() if store.state_of(p.name, 0) == "complete")
