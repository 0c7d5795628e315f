"""The fork server and its processes: sessions, logs, exit codes, and that nothing outlives whom it belongs to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from expkit.errors import EnvironmentFault
from expkit.launch import leftovers, process
from expkit.launch.workers import Ended, Workers, worker_env
from expkit.store.owner import Owner
from tests.launch.lab import ROOT, until


@pytest.fixture(scope="module")
def server() -> Iterator[Workers]:
    workers = Workers("spawn")  # the same server, without the three seconds for torch
    yield workers
    workers.close()


def ended(workers: Workers, key: int, timeout_s: float = 30.0) -> Ended:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for end in workers.wait(0.2):
            assert end.key == key
            return end
    raise AssertionError("the trial did not end")


def test_an_attempt_that_is_none_ends_with_a_log_that_says_so(server: Workers, tmp_path: Path) -> None:
    attempt = tmp_path / "runs" / "trials" / ("0" * 12) / "r0" / "attempts" / "1"
    attempt.mkdir(parents=True)
    assert ended(server, server.start(attempt)).code == 1
    assert "attempt.json is missing" in (attempt / "rank0.log").read_text()


def test_a_folder_that_is_missing_is_no_reason_for_the_server_to_end(server: Workers, tmp_path: Path) -> None:
    assert ended(server, server.start(tmp_path / "nowhere")).code == 70
    assert ended(server, server.start(tmp_path / "nowhere")).code == 70


def test_signals_end_a_trial_whose_code_is_negative_then(server: Workers, tmp_path: Path) -> None:
    key = server.start(tmp_path)
    until(lambda: server.wait(0.01) or server.pid(key))
    server.signal(key, signal.SIGKILL)
    assert ended(server, key).code == -signal.SIGKILL
    assert server.pid(key) is None


DRIVER = """
import sys
from pathlib import Path
from expkit.launch import process
from expkit.launch.workers import Workers
workers = Workers("spawn")
key = workers.start(Path(sys.argv[1]))
while workers.pid(key) is None:
    workers.wait(0.1)
guard = workers.server.pid
print(workers.pid(key), *process.children(guard), guard, flush=True)
while True:
    print(workers.wait(1.0), flush=True)
"""
TRIAL = """
import os, sys, time
if "expkit.launch.worker" in sys.orig_argv:
    os.system("sleep NAP & setsid sleep NAP &")
    time.sleep(60)
"""


NAP = str(10**6 + os.getpid())  # tests of others may run beside these


def helpers() -> list[int]:
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=1) for line in found.splitlines()]
    return [int(pid) for pid, args in lines if args == f"sleep {NAP}"]


@pytest.mark.parametrize("victims", ["driver", "server", "guard", "driver server", "driver guard", "server guard",
                                     "driver server guard"])  # fmt: skip
def test_row_33_kill_9_takes_the_trial_and_all_its_helpers_along(victims: str, tmp_path: Path) -> None:
    """One helper is in the trial's session, one in a session of its own; who kills all three needs the next driver."""
    (tmp_path / "sitecustomize.py").write_text(TRIAL.replace("NAP", NAP))
    env = worker_env({**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}, 1)
    command = [sys.executable, "-c", DRIVER, str(tmp_path)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        trial, server, guard = map(int, driver.stdout.readline().split())
        until(lambda: len(helpers()) == 2)
        owner = Owner.of(driver.pid)
        assert leftovers.end(owner) == []  # it lives
        assert process.is_running(trial)
        pids = {"driver": driver.pid, "server": server, "guard": guard}
        for number in (signal.SIGSTOP, signal.SIGKILL):  # none of them sees another go
            for victim in victims.split():
                os.kill(pids[victim], number)
        if len(victims.split()) == 3:
            driver.wait()
            assert len(helpers()) == 2
            assert sorted(helpers()) == sorted(leftovers.end(owner))
        until(lambda: not (any(map(process.is_running, (trial, server, guard))) or helpers()), 5)
        left = helpers()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        driver.kill()
    assert left == []
    assert [pid for pid in (trial, server, guard) if process.is_running(pid)] == []


NO_TORCH = """
import sys
if "expkit.launch.forkserver" in sys.orig_argv:
    sys.exit("no torch here")
"""


def test_a_server_that_cannot_start_says_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    workers = Workers("spawn")
    workers.start(tmp_path)
    with pytest.raises(EnvironmentFault, match="exit code 1, its reason stands above, before it could start a trial"):
        while True:
            workers.wait(1.0)
    assert "no torch here" in capfd.readouterr().err


def test_a_server_that_is_killed_before_its_first_trial_is_told_with_the_signal(tmp_path: Path) -> None:
    workers = Workers("fork")
    workers.warm()
    assert workers.server is not None
    workers.start(tmp_path)
    workers.server.kill()
    with pytest.raises(EnvironmentFault, match=r"was killed by signal 9 \(SIGKILL\) before it could start a trial"):
        while True:
            workers.wait(1.0)


def test_workers_get_our_allocator_settings_and_one_thread() -> None:
    env = worker_env({"PYTHONPATH": "/mine"}, 2)
    assert env["MALLOC_MMAP_THRESHOLD_"] == "1073741824"
    assert env["OMP_NUM_THREADS"] == "2"
    assert env["PYTHONPATH"].split(os.pathsep)[0] == "/mine"


def test_a_session_is_found_by_its_id_and_a_zombie_is_not_running() -> None:
    with subprocess.Popen(["sleep", "30"], start_new_session=True) as sleeper:
        assert process.members(sleeper.pid) == [sleeper.pid]
        process.kill_session(sleeper.pid)
        until(lambda: not process.is_running(sleeper.pid), 5)
        assert not process.is_running(sleeper.pid)
        assert process.members(sleeper.pid) == []
