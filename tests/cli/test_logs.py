"""expkit logs: bytes through pipes, safe lines on terminals, following to the end."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from expkit.errors import UsageError
from expkit.store.logs import log_of
from expkit.store.owner import Owner
from expkit.store.records import Status
from expkit.store.store import Store

ROOT = Path(__file__).parents[2]
ID = "a" * 12
ODD = b"epoch 1\r\n\x1b[31mred\x1b[0m \x07\xff caf\xc3\xa9\n\x1b]0;title\x07no newline at the end"
RUN = "from expkit.cli import main; main()"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A replicate with two attempts; the second one has a log of rank 1 as well."""
    store = Store(tmp_path / "runs")
    for attempt in (1, 2):
        folder = store.new_attempt(ID, 0, "driver")
        store.layout.log(folder, 0).write_bytes(f"attempt {attempt}\n".encode())
    store.layout.log(folder, 1).write_bytes(ODD)
    store.write_status(ID, 0, Status("failed", 2, cause="exception"))
    return store


def expkit(store: Store, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "EXPKIT_RUNS": str(store.layout.root)}
    command = [sys.executable, "-c", RUN, "logs", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, env=env, **pipes)  # type: ignore[call-overload,no-any-return]


def test_a_pipe_gets_every_byte(store: Store) -> None:
    with expkit(store, "aaa", "--rank", "1") as started:
        out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (0, ODD)
    assert b"attempt 2 is failed; log: " in err


def test_as_json_with_its_place_and_each_line(store: Store) -> None:
    with expkit(store, ID, "--rank", "1", "--json") as done:
        out, _ = done.communicate(timeout=60)
    found = json.loads(out)
    assert (found["id"], found["attempt"], found["rank"], found["state"]) == (ID, 2, 1, "failed")
    assert found["lines"][0] == "epoch 1"
    assert len(found["lines"]) == 3


def test_a_terminal_gets_no_control_characters(store: Store) -> None:
    ours, theirs = pty.openpty()
    with expkit(store, ID, "r0", "--rank", "1", stdout=theirs) as started:
        started.wait(60)
        os.close(theirs)
        out = os.read(ours, 1 << 16)
    os.close(ours)
    assert out.replace(b"\r\n", b"\n").decode() == "epoch 1\nred � café\nno newline at the end\n"


def test_an_earlier_attempt(store: Store) -> None:
    with expkit(store, ID, "--attempt", "1") as started:
        assert started.communicate(timeout=60)[0] == b"attempt 1\n"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"rank": 2}, "no log of rank 2; there are: 0, 1"),
        ({"attempt": 3}, "no attempt 3; there are: 1, 2"),
        ({"replicate": 1}, "has not been started"),
    ],
)
def test_what_there_is_no_log_of_is_said_with_what_there_is(store: Store, asked: dict[str, int], says: str) -> None:
    replicate = asked.pop("replicate", 0)
    with pytest.raises(UsageError, match=says):
        log_of(store, ID, replicate, **asked)


def test_following_ends_with_the_replicate_and_misses_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = store.new_attempt(ID, 0, "driver")
    running = Status("running", 1).owned_by(Owner.this_process())
    store.write_status(ID, 0, running)

    def train() -> None:
        time.sleep(0.3)  # the log is not there yet when following begins
        with store.layout.log(folder, 0).open("wb") as log:
            for step in range(20):
                log.write(f"step {step}\n".encode())
                log.flush()
                time.sleep(0.02)
        store.write_status(ID, 0, Status("complete", 1))

    thread = threading.Thread(target=train)
    thread.start()
    out = b"".join(log_of(store, ID, 0).chunks(follow=True))
    thread.join()
    assert out == b"".join(f"step {step}\n".encode() for step in range(20))


def test_following_ends_when_the_worker_dies(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.new_attempt(ID, 0, "driver")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as worker:
        store.write_status(ID, 0, Status("running", 1).owned_by(Owner.of(worker.pid)))
        log = log_of(store, ID, 0)
        assert log.goes_on()
        worker.kill()
        worker.wait()
    assert list(log.chunks(follow=True)) == []
    assert store.state_of(ID, 0) == "lost"


def test_following_ends_when_another_attempt_begins(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.new_attempt(ID, 0, "driver")
    log = log_of(store, ID, 0)
    store.new_attempt(ID, 0, "driver")
    assert not log.goes_on()


def test_a_reader_that_leaves_early_hears_no_complaint(store: Store) -> None:
    folder = store.new_attempt(ID, 0, "driver")
    store.layout.log(folder, 0).write_bytes(b"a line of a long log\n" * 100_000)
    store.write_status(ID, 0, Status("failed", 3))
    with expkit(store, ID) as started:
        assert started.stdout is not None and started.stderr is not None
        started.stdout.read(10)
        started.stdout.close()
        assert started.stderr.read() == b""
        assert started.wait(60) in (0, 1)
