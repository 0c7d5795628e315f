"""The host's lock: who shares, who is alone, who is named, and that nobody holds it from the grave."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from expkit.errors import EnvironmentFault
from expkit.store import lock

HOLD = """
import sys, time
from expkit.store.lock import acquire
held = acquire(sys.argv[1])
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EXPKIT_LOCK_DIR", str(tmp_path / "locks"))
    yield


def hold(kind: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_shared_ones_run_side_by_side_and_an_exclusive_one_is_alone() -> None:
    first, second = lock.acquire("shared"), lock.acquire("shared")
    with pytest.raises(EnvironmentFault, match="shared"):
        lock.acquire("exclusive")
    first.release()
    second.release()
    second.release()
    with lock.acquire("exclusive"), pytest.raises(EnvironmentFault, match="exclusive") as e:
        lock.acquire("shared")
    assert e.value.exit_code == 3
    lock.acquire("exclusive").release()


def test_the_message_names_the_holder_and_it_ends_with_the_process() -> None:
    holder = hold("exclusive")
    try:
        with pytest.raises(EnvironmentFault, match=rf"pid {holder.pid} \(exclusive: -c exclusive\); --wait"):
            lock.acquire("shared")
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    lock.acquire("exclusive").release()


def test_a_shared_holder_that_is_gone_is_not_named() -> None:
    gone = hold("shared")
    gone.communicate("end\n")
    with lock.acquire("shared"), pytest.raises(EnvironmentFault) as e:
        lock.acquire("exclusive")
    assert str(gone.pid) not in str(e.value) and str(os.getpid()) in str(e.value)


def test_waiting_says_once_for_whom_and_goes_on_when_they_are_done() -> None:
    holder = hold("shared")
    told: list[str] = []
    threading.Timer(0.3, lambda: holder.communicate("end\n")).start()
    started = time.monotonic()
    with lock.acquire("exclusive", wait=True, on_wait=told.append, poll_s=0.05) as held:
        assert held.kind == "exclusive"
    assert 0.2 < time.monotonic() - started < 10
    assert len(told) == 1 and str(holder.pid) in told[0]


def test_neither_an_exec_nor_a_fork_inherits_it() -> None:
    held = lock.acquire("exclusive")
    executed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], close_fds=False)
    gate = multiprocessing.get_context("fork").Event()
    forked = multiprocessing.get_context("fork").Process(target=gate.wait, args=(30,))
    forked.start()
    try:
        with pytest.raises(EnvironmentFault):
            lock.acquire("shared")  # the children did not give ours away
        held.release()
        lock.acquire("exclusive").release()
    finally:
        gate.set()
        forked.join()
        executed.kill()
        executed.wait()


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    lock.lock_path().parent.mkdir()
    (tmp_path / "elsewhere").write_text("precious")
    lock.lock_path().symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFault, match="EXPKIT_LOCK_DIR"):
        lock.acquire("shared")
    assert (tmp_path / "elsewhere").read_text() == "precious"


def test_without_a_folder_of_choice_each_user_has_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPKIT_LOCK_DIR")
    assert lock.lock_path().name.endswith(f"-{os.getuid()}.lock")
