"""A query that is stopped: by a signal, by its time, by its memory; and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from expkit.errors import EnvironmentFault, Interruption, QueryError, UsageError
from expkit.store.query import connect
from expkit.store.running import Limits, run

ENDLESS = "SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"


@pytest.fixture
def soon() -> Iterator[list[signal.Signals]]:
    """Put a signal in, and this process gets it 0.3 s later."""
    wanted: list[signal.Signals] = []

    def send() -> None:
        while not wanted:
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), wanted[0])

    before = signal.getsignal(signal.SIGTERM)
    threading.Thread(target=send, daemon=True).start()
    yield wanted
    signal.signal(signal.SIGTERM, before)


def test_ctrl_c_ends_a_query_and_the_connection_goes_on(tmp_path: Path, soon: list[signal.Signals]) -> None:
    with connect(tmp_path) as con:
        soon.append(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            con.table(ENDLESS)
        assert con.rows("SELECT 1 AS one") == [{"one": 1}]


def test_a_handler_of_ours_ends_a_query_too(tmp_path: Path, soon: list[signal.Signals]) -> None:
    """DuckDB heeds SIGINT alone: `expkit query` went on after a SIGTERM until it was done."""

    def terminated(number: int, _: object) -> None:
        raise Interruption("terminated", 128 + number)

    signal.signal(signal.SIGTERM, terminated)
    with connect(tmp_path) as con:
        soon.append(signal.SIGTERM)
        with pytest.raises(Interruption):
            con.stream(ENDLESS, (), lambda rows: rows.read_all())


def test_the_time_limit(tmp_path: Path) -> None:
    with connect(tmp_path, Limits(seconds=0.2)) as con:
        started = time.monotonic()
        with pytest.raises(EnvironmentFault, match=r"stopped after 0\.2 s, its time limit"):
            con.table(ENDLESS)
        assert time.monotonic() - started < 20
        assert con.rows("SELECT 1 AS one") == [{"one": 1}]


def test_the_memory_limit_and_what_goes_to_disk_beyond_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with connect(tmp_path / "runs", Limits(memory="60MB", threads=1)) as con:
        ordered = "SELECT hash(range)::VARCHAR AS a FROM range(3000000) ORDER BY a"
        assert con.stream(ordered, (), lambda rows: sum(batch.num_rows for batch in rows)) == 3_000_000
        with pytest.raises(EnvironmentFault, match="reached its memory limit"):
            con.table("SELECT list(range) FROM range(50000000)")
        assert con.rows("SELECT current_setting('threads') AS n") == [{"n": 1}]
    assert list((tmp_path / "here").iterdir()) == [] and [p.name for p in tmp_path.iterdir()] == ["here"]


def test_a_limit_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a memory limit is a size such as 4GB, but got 'much'"):
        connect(tmp_path, Limits(memory="much"))


def test_an_error_of_who_takes_the_rows_is_theirs(tmp_path: Path) -> None:
    def take(rows: object) -> None:
        raise OSError(28, "No space left on device")

    with connect(tmp_path) as con, pytest.raises(OSError, match="No space left"):
        con.stream("SELECT 1", (), take)


def test_an_error_after_the_first_rows_is_one_sentence(tmp_path: Path) -> None:
    late = "SELECT CASE WHEN range > 900000 THEN error('too late') ELSE range END AS a FROM range(1000000)"
    with connect(tmp_path) as con, pytest.raises(QueryError) as e:
        con.stream(late, (), lambda rows: rows.read_all())
    assert str(e.value) == "too late"


def test_work_that_ends_by_itself_is_not_disturbed() -> None:
    assert run(lambda: 17, lambda: pytest.fail("interrupted"), 60) == 17
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 // 0, lambda: None)


def test_a_terminated_query_is_exit_143(tmp_path: Path) -> None:
    sql = "SELECT range FROM range(1000000000000)"
    command = [sys.executable, "-P", "-m", "expkit.cli", "query", sql, "-f", "csv", "--runs-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"range\n"
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (143, b"error: terminated\n")
