"""The conductor, with real processes: troubles of trial, driver and host, and what a second call does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from expkit.store.layout import Layout
from expkit.store.lock import acquire
from expkit.store.records import Status
from tests.launch.lab import Lab, until

TROUBLES = "{'py:own:Trouble': {kind: [raise, kill, exit, hard_exit, memory, disk, print, nan, grandchild]}}"


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, str, int]:
    lab = Lab(tmp_path_factory.mktemp("troubled"))
    lab.sweep("troubled", TROUBLES)
    done = lab.call("sweep", "troubled")
    return lab, done.stderr, done.returncode


def status_of(lab: Lab, kind: str) -> Status:
    (row,) = [row for row in lab.store.read_plan("troubled") if f"kind={kind}" in row.arm]
    status = lab.store.read_status(row.id, row.replicate)
    assert status is not None
    return status


@pytest.mark.parametrize(
    ("kind", "state", "cause", "message"),
    [
        ("raise", "failed", "exception", "ValueError: the third batch is unlucky"),
        ("kill", "failed", "signal", "SIGKILL"),
        ("exit", "failed", "ended-early", "sys.exit(0)"),
        ("hard_exit", "failed", "ended-early", "exit code 0"),
        ("memory", "failed", "oom", "can't allocate memory"),
        ("disk", "failed", "disk", "No space left"),
        ("nan", "diverged", None, "not finite"),
        ("print", "complete", None, ""),
        ("grandchild", "complete", None, ""),
    ],
)
def test_each_end_of_a_trial_has_its_state_and_cause(
    troubled: tuple[Lab, str, int], kind: str, state: str, cause: str | None, message: str
) -> None:
    status = status_of(troubled[0], kind)
    assert (status.state, status.cause) == (state, cause)
    assert message in (status.message or "")


def test_a_trial_that_raises_leaves_cause_and_last_lines_and_the_others_go_on(troubled: tuple[Lab, str, int]) -> None:
    lab, err, code = troubled
    assert code == 1
    message = status_of(lab, "raise").message or ""
    assert 'raise ValueError("the third batch is unlucky")' in message
    assert "own.py" in message
    assert "failed (exception)" in err
    assert "the third batch is unlucky" in err
    assert (
        sum(state == "complete" for state in lab.states("troubled").values()) == 4
    )  # baseline twice, print, grandchild


def test_nothing_is_left_running_after_a_sweep(troubled: tuple[Lab, str, int]) -> None:
    assert troubled[0].until_gone() == []


def test_the_log_has_a_million_lines_and_the_trial_is_complete(troubled: tuple[Lab, str, int]) -> None:
    lab = troubled[0]
    (row,) = [row for row in lab.store.read_plan("troubled") if "kind=print" in row.arm]
    log = Layout.log(lab.store.layout.attempt(row.id, row.replicate, 1), 0)
    assert log.read_text().rstrip().endswith("line 999999")


def test_a_complete_status_says_what_a_reader_needs(troubled: tuple[Lab, str, int]) -> None:
    status = status_of(troubled[0], "grandchild")
    assert set(status.setting) >= {"host", "device", "nproc", "threads", "parallel", "torch", "microbatch"}
    assert status.clocks["train_s"] is not None
    assert status.final["eval/accuracy"] > 0
    assert list(status.effective.values()) == [True]
    assert len(status.reference_s) == 2
    assert status.code_sha
    assert status.driver
    assert lab_provenance(troubled[0])["python"]["version"]


def lab_provenance(lab: Lab) -> dict[str, dict[str, str]]:
    row = lab.store.read_plan("troubled")[0]
    return lab.store.read_provenance(row.id, row.replicate)


def test_a_second_call_trains_nothing_and_still_is_no_success(troubled: tuple[Lab, str, int]) -> None:
    lab = troubled[0]
    before = lab.store.read_plan("troubled")
    done = lab.call("sweep", "troubled")
    assert done.returncode == 1, done.stderr
    assert "0 to run in this call" in done.stderr
    assert lab.store.read_plan("troubled") == before
    assert Path(lab.folder, done.stdout.removeprefix("report: ").strip()).is_file()


def test_retry_failed_runs_just_the_failed_ones_again(troubled: tuple[Lab, str, int]) -> None:
    lab = troubled[0]
    (lab.folder / "own.py").write_text((lab.folder / "own.py").read_text().replace("!= 3", ">= 0"))
    done = lab.call("sweep", "troubled", "--retry", "failed")
    assert done.returncode == 0, done.stderr
    states = list(lab.states("troubled").values())
    assert states.count("diverged") == 1
    assert states.count("complete") == len(states) - 1
    assert status_of(lab, "raise").attempt == 2
    assert status_of(lab, "print").attempt == 1


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, pause_s=0.05)
    lab.sweep("slow", "{ema: {}, label_smoothing: {}}")
    yield lab
    for pid in lab.processes():
        os.kill(pid, signal.SIGKILL)


def test_kill_9_of_the_driver_leaves_no_process_and_the_next_call_does_what_is_missing(slow: Lab) -> None:
    with slow.start("sweep", "slow") as driver:
        until(
            lambda: (
                list(slow.states("slow").values()).count("complete") == 2 and "running" in slow.states("slow").values()
            )
        )
        driver.kill()
        driver.communicate()
    assert slow.until_gone() == []
    states = slow.states("slow")
    assert sorted(states.values()) == ["complete", "complete", "lost", "pending", "pending"]
    assert "lost" in slow.call("status", "slow").stdout

    done = slow.call("sweep", "slow")
    assert done.returncode == 0, done.stderr
    assert set(slow.states("slow").values()) == {"complete"}
    for arm in [arm for arm, state in states.items() if state == "complete"]:
        row = next(r for r in slow.store.read_plan("slow") if f"{r.arm} b{r.block} r{r.replicate}" == arm)
        status = slow.store.read_status(row.id, row.replicate)
        assert status is not None
        assert status.attempt == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_lets_the_step_finish_and_starts_no_other_trial(slow: Lab, number: int, code: int) -> None:
    with slow.start("sweep", "slow") as driver:
        until(lambda: "running" in slow.states("slow").values())
        driver.send_signal(number)
        _, err = driver.communicate(timeout=60)
    assert driver.returncode == code, err
    states = list(slow.states("slow").values())
    assert states.count("interrupted") == 1
    assert states.count("pending") == 4
    assert slow.until_gone() == []


def test_a_second_exclusive_driver_is_exit_3(slow: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPKIT_LOCK_DIR", str(slow.folder / "lock"))
    with acquire("exclusive"):
        done = slow.call("sweep", "slow")
    assert done.returncode == 3
    assert "held by" in done.stderr


def test_jobs_need_shared_timing_and_then_are_marked(slow: Lab) -> None:
    refused = slow.call("sweep", "slow", "--jobs", "2")
    assert refused.returncode == 2
    assert "exclusive" in refused.stderr
    slow.sweep("side", "{ema: {}}", timing="shared")
    done = slow.call("sweep", "side", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    statuses = [slow.store.read_status(row.id, row.replicate) for row in slow.store.read_plan("side")]
    assert sum("shared" in status.timing_reasons for status in statuses if status) >= 2


def test_two_shared_drivers_do_one_sweep_together_each_trial_once(slow: Lab) -> None:
    slow.sweep("both", "{ema: {}, label_smoothing: {}}", timing="shared")
    with slow.start("sweep", "both") as one, slow.start("sweep", "both") as other:
        errors = [driver.communicate(timeout=120)[1] for driver in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), errors
    rows = slow.store.read_plan("both")
    statuses = [slow.store.read_status(row.id, row.replicate) for row in rows]
    assert [(s.state, s.attempt) for s in statuses if s] == [("complete", 1)] * len(rows)
    assert len({s.driver for s in statuses if s}) == 2
