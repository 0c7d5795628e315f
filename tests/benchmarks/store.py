"""What questions cost over 100 M rows: 10,000 trials of 1,000 steps and ten metrics, written by the store's own writer.

    python tests/benchmarks/store.py [--trials 10000] [--steps 1000] [--loose 2000] [--folder DIR]

Writing takes about 4 minutes, compaction 4, disk 4 GB below the system's folder for temporary files; `--folder` keeps
the stores, and another run goes on with them. Bars are those of 10,000 trials; medians of five rounds after one that
warms, by the wall or, on a busy machine, CPU time. Exit code 1 where one is missed. Smaller: --trials 500 --loose 100.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from expkit.analysis.summary import summarise
from expkit.launch.overview import overviews
from expkit.store import gathered
from expkit.store.compact import compact
from expkit.store.layout import Layout
from expkit.store.query import Connection, connect
from expkit.store.store import Store
from tests.benchmarks import big_store

BYTES_A_ROW = 45
"""While it is compacted: parts and compacted files."""
ROUNDS = 5
EVALUATIONS = 40
"""Of each trial where the report is measured: what time to target needs for a resolution of 2 %."""
FIRST = """SELECT id, replicate, min(train_s) FILTER (value >= 0.8) AS t FROM metrics
  WHERE name = 'eval/accuracy' AND rank = 0 GROUP BY id, replicate"""
QUESTIONS: dict[str, tuple[str, float]] = {
    "first crossing, in plain SQL": (FIRST, 1.0),
    "first crossing, interpolated": ("FROM time_to_target('eval/accuracy', 0.8, rule := 'first')", 2.0),
    "sustained and interpolated": ("FROM time_to_target('eval/accuracy', 0.8)", 2.0),
    "to the end, by CPU time": ("FROM time_to_target('eval/accuracy', 0.8, rule := 'to_end', clock := 'cpu_s')", 2.0),
}
"""Bars of design section 7, over all trials."""


@dataclass(frozen=True)
class Measured:
    """Seconds of each round, by the wall and of CPU time over the cores that it may use, and the bar."""

    what: str
    wall_s: list[float]
    cpu_s: list[float]
    bar: float

    @property
    def is_met(self) -> bool:
        """By the median; of CPU time where others had the machine meanwhile."""
        return min(statistics.median(self.wall_s), statistics.median(self.cpu_s)) <= self.bar

    def __str__(self) -> str:
        wall, cpu = (f"{statistics.median(s):6.2f} [{min(s):.2f}, {max(s):.2f}]" for s in (self.wall_s, self.cpu_s))
        note = "" if self.is_met else "   MISSED"
        return f"  {self.what:<40} {wall} s, CPU time over cores {cpu} s; bar {self.bar:g} s{note}"


def timed(what: str, bar: float, call: Callable[[], object], cores: int = 1) -> Measured:
    """One call that warms, then so many that count."""
    call()
    rounds = [_clocked(call) for _ in range(ROUNDS)]
    measured = Measured(what, [wall for wall, _ in rounds], [cpu / cores for _, cpu in rounds], bar)
    print(measured, flush=True)
    return measured


def _clocked(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the wall, and of CPU time over all cores."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def over_compacted(root: Path) -> list[Measured]:
    """Questions, opening and status over the large store."""
    with connect(root) as con:
        cores = len(os.sched_getaffinity(0))
        found = [timed(what, bar, partial(con.table, sql), cores) for what, (sql, bar) in QUESTIONS.items()]
    return [
        *found,
        timed("open to first answer, of metrics", 0.5, lambda: _answer(root, "SELECT count(*) FROM metrics")),
        timed("open to first answer, of trials", 0.5, lambda: _answer(root, "SELECT count(*) FROM trials")),
        timed("status", 1.0, lambda: overviews(Store(root), "big")),
    ]


def over_parts(root: Path) -> list[Measured]:
    """The same first question where nothing was compacted, opening included, and how many files are open at once.

    The first reader copies the small files into one; those after it are what the bar is for.
    """
    layout = Layout(root)
    for name in gathered.names(layout):
        gathered.remove(layout, name)
    wall_s, cpu_s = _clocked(lambda: _answer(root, FIRST))
    print(f"  parts, the first reader of all: {wall_s:.2f} s, CPU time {cpu_s:.2f} s", flush=True)
    open_files: list[int] = []
    with _counting_files(open_files):
        measured = timed("parts, opened and first crossing", 1.0, lambda: _answer(root, FIRST))
    most = max(open_files)
    print(f"  at most {most} files open at once, bar 64{'' if most <= 64 else '   MISSED'}", flush=True)
    return [measured, Measured("files", [most], [most], 64)]


def _answer(root: Path, sql: str) -> None:
    with connect(root) as con:
        con.table(sql)


def _report(root: Path) -> None:
    con: Connection
    with connect(root) as con:
        summarise(con, "big")


@contextmanager
def _counting_files(counts: list[int]) -> Iterator[None]:
    over = threading.Event()

    def count() -> None:
        while not over.wait(0.001):
            counts.append(len(os.listdir("/proc/self/fd")))  # noqa: PTH208  # opens one and no more

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def written(root: Path, trials: int, steps: int, parts: int | None = None) -> Path:
    """The store, with what was missing of it."""
    rows = trials * steps * len(big_store.METRICS)
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free + sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    if free < rows * BYTES_A_ROW:
        sys.exit(f"{rows:,} rows need {rows * BYTES_A_ROW / 1e9:.1f} GB below {root}; take fewer --trials, or --folder")
    started = time.perf_counter()
    if big_store.make(root, trials, steps, parts):
        print(f"  {rows:,} rows written in {time.perf_counter() - started:.0f} s", flush=True)
    return root


def compacted(root: Path, rows: int) -> None:
    """Fold its metrics, and say what they take."""
    started = time.perf_counter()
    done = compact(Store(root))
    files = list((root / "metrics").glob("*.parquet"))
    size = sum(file.stat().st_size for file in files)
    print(f"  {done.rows:,} rows compacted in {time.perf_counter() - started:.0f} s; ", end="")
    print(f"{size / 1e9:.2f} GB in {len(files)} files, {size / rows:.1f} bytes a row", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--loose", type=int, default=2_000, help="trials of three parts each that are not compacted")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        print(f"{given.trials:,} trials x {given.steps:,} steps x {len(big_store.METRICS)} metrics")
        big = written(folder / "compacted", given.trials, given.steps)
        compacted(big, given.trials * given.steps * len(big_store.METRICS))
        measured = over_compacted(big)
        print(f"{given.trials:,} trials of {EVALUATIONS} evaluations")
        reported = written(folder / "reported", given.trials, EVALUATIONS)
        compacted(reported, given.trials * EVALUATIONS * len(big_store.METRICS))
        measured.append(timed("tables of the report, opening included", 5.0, lambda: _report(reported)))
        print(f"{given.loose:,} trials, three parts each, nothing compacted")
        measured += over_parts(written(folder / "parts", given.loose, 60, 3))
    missed = [each.what for each in measured if not each.is_met]
    print("\n".join(f"missed: {what}" for what in missed) or "all bars are met")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
