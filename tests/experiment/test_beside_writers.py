"""Loading beside writers: no error, and no row that was once seen is missing later; 1,000 loads in `make soak`."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import expkit

ROOT = Path(__file__).parents[2]
WRITER = """
import hashlib, itertools, sys, time
from pathlib import Path
from expkit.store import metrics
from expkit.store.compact import compact
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.records import Status, TrialRecord
from expkit.store.store import Store

metrics.FLUSH_ROWS = 40
store = Store(Path(sys.argv[1]))
print("begun", flush=True)
for trial in itertools.count():
    full = hashlib.sha256(f"{sys.argv[2]} {trial}".encode()).hexdigest()
    record = TrialRecord(full, "none", [], 0, trial, {"seed": trial}, {})
    store.add_trial(record, "name: x")
    claim = store.claim(record.id12, 0, "writer")
    folder = store.new_attempt(record.id12, 0, "writer")
    store.write_status(record.id12, 0, Status("running", 1))
    writer = MetricsWriter(folder, record.id12, 0, 1)
    for batch in range(1, 41):
        writer.log_many({"a": 1.0, "b": 2.0, "c": 3.0}, Stamp(batch, 0, 0, 0, 0, 0.0, 0.0, 0.0))
        time.sleep(0.001)
    writer.close()
    store.write_status(record.id12, 0, Status("complete", 1))
    claim.release()
    if sys.argv[2] == "0" and trial % 3 == 2:
        compact(store)
    time.sleep(float(sys.argv[3]))
"""
"""Writes trials until it is ended, three metrics files each, and rests in between; the first of them compacts too."""


@pytest.fixture
def writers(tmp_path: Path, loads: int) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    rest_s = "0.3" if loads < 50 else "2"
    started = [
        subprocess.Popen([*command, str(i), rest_s], cwd=ROOT, stdout=subprocess.PIPE, text=True) for i in range(4)
    ]
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
    yield started
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def watch(root: Path, loads: int) -> list[tuple[int, int, int]]:
    """(rows, replicates, complete ones) at each load."""
    seen = []
    for _ in range(loads):
        with expkit.load(root) as ex:
            (counts,) = ex.sql("SELECT count(*) AS n, count(DISTINCT id) AS ids FROM metrics").rows()
            (states,) = ex.sql("SELECT count(*) AS n, count(*) FILTER (status = 'complete') AS c FROM trials").rows()
            assert ex.set_aside == []
            assert counts["ids"] <= states["n"]
            seen.append((counts["n"], states["n"], states["c"]))
    return seen


@pytest.mark.parametrize("loads", [20, pytest.param(1000, marks=pytest.mark.soak)])
def test_loads_beside_four_writers_never_lose_a_row(
    tmp_path: Path, writers: list[subprocess.Popen[str]], loads: int
) -> None:
    time.sleep(0.3)
    seen = watch(tmp_path, loads)
    assert all(process.poll() is None for process in writers)
    for before, after in itertools.pairwise(seen):
        assert all(a <= b for a, b in zip(before, after, strict=True)), (before, after)
    assert seen[-1][0] > seen[0][0] or loads < 50
    assert seen[-1][2] >= 1 and seen[-1][0] >= 120 * seen[-1][2]  # a complete trial has all its rows
