"""The conductor, with real processes: troubles of trial, driver and host, and what a second call does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from expkit.launch import process
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


def test_row_35_a_trial_that_leaves_with_code_0_in_the_middle_is_no_success(troubled: tuple[Lab, str, int]) -> None:
    for kind in ("exit", "hard_exit"):
        status = status_of(troubled[0], kind)
        assert (status.state, status.cause, status.final) == ("failed", "ended-early", {})


def test_row_37_failures_are_printed_as_they_happen_and_explained_later(troubled: tuple[Lab, str, int]) -> None:
    lab, err, _ = troubled
    lines = [line for line in err.splitlines() if line.startswith("[")]
    first = next(i for i, line in enumerate(lines) if ": failed (exception)" in line)
    assert len(lines) == 11
    assert any(": complete" in line for line in lines[first:])
    for kind, words in (("raise", "the third batch is unlucky"), ("memory", "can't allocate memory")):
        (row,) = [row for row in lab.store.read_plan("troubled") if f"kind={kind}" in row.arm]
        done = lab.call("why", row.id)
        assert words in done.stdout, done.stderr
        assert "own.py" in done.stdout


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
    assert status.phases == {"8x8": 8}
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
    assert "this call ran 0" in done.stderr
    assert lab.store.read_plan("troubled") == before
    assert Path(lab.folder, done.stdout.removeprefix("report: ").strip()).is_file()


def test_row_41_retry_failed_runs_just_the_failed_ones_again(troubled: tuple[Lab, str, int]) -> None:
    lab = troubled[0]
    (lab.folder / "own.py").write_text((lab.folder / "own.py").read_text().replace("!= 3", ">= 0"))
    done = lab.call("sweep", "troubled", "--retry", "failed")
    assert done.returncode == 0, done.stderr
    states = list(lab.states("troubled").values())
    assert states.count("diverged") == 1
    assert states.count("complete") == len(states) - 1
    assert status_of(lab, "raise").attempt == 2
    assert status_of(lab, "print").attempt == 1


NUMBERED = "{'py:own:Trouble': {number: [1, 2, 3]}}"  # five replicates of nothing in particular


@pytest.fixture(scope="module")
def typo(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    lab = Lab(tmp_path_factory.mktemp("typo"))
    recipe = lab.folder / "recipes" / "tiny.yaml"
    recipe.write_text(recipe.read_text().replace("{pause_s: 0.0}", "{pause_s: 0.0, path: points.txt}"))
    lab.sweep("typo", NUMBERED)
    return lab


def test_a_bug_that_hits_every_trial_stops_the_sweep_after_three_and_says_so(typo: Lab) -> None:
    done = typo.call("sweep", "typo")
    assert done.returncode == 1
    assert "3 trials failed alike in a row" in done.stderr
    assert sorted(typo.states("typo").values()) == ["failed"] * 3 + ["pending"] * 2
    assert "points.txt" in done.stderr


def test_only_runs_what_it_picks_and_its_baseline(typo: Lab) -> None:
    (typo.folder / "points.txt").touch()
    failed = {arm for arm, state in typo.states("typo").items() if state == "failed"}
    done = typo.call("sweep", "typo", "--retry", "failed", "--only", "has('trouble[number=2]')")
    assert done.returncode == 0, done.stderr
    complete = {arm for arm, state in typo.states("typo").items() if state == "complete"}
    assert {"trouble[number=2] b0 r0"} <= complete <= {"trouble[number=2] b0 r0", "none b0 r0"}
    assert {arm for arm, state in typo.states("typo").items() if state == "failed"} == failed - complete
    refused = typo.call("sweep", "typo", "--only", "has('trable') or optimizer.sgd.lrr > 1")
    assert refused.returncode == 2
    assert "did you mean 'trouble'" in refused.stderr
    assert "no trial of this sweep has 'optimizer.sgd.lrr'" in refused.stderr


def test_what_is_complete_never_runs_again_with_retry_failed(typo: Lab) -> None:
    done = typo.call("sweep", "typo", "--retry", "failed")
    assert done.returncode == 0, done.stderr
    assert set(typo.states("typo").values()) == {"complete"}
    assert "this call ran 0" in typo.call("sweep", "typo", "--retry", "failed").stderr


def test_row_56_forty_overrides_make_a_short_folder_and_a_whole_label(typo: Lab) -> None:
    recipe = typo.folder / "recipes" / "wide.yaml"
    text = (typo.folder / "recipes" / "tiny.yaml").read_text().replace("points.txt", "own.py")
    own = typo.folder / "own.py"
    own.write_text(own.read_text() + "\ndef make_wide(**settings):\n    return make_net()\n")
    settings = {f"key{i}": f"/data/x{i}" for i in range(39)} | {"last": "[1,2]"}
    wide = ", ".join(f"{key}: ''" for key in settings)
    recipe.write_text(text.replace('"py:own:make_net": {}', f'"py:own:make_wide": {{{wide}}}'))
    values = "".join(f"  model.make_wide.{key}: ['{value}']\n" for key, value in settings.items())
    sweep = typo.sweep("wide")
    sweep.write_text(sweep.read_text().replace("tiny.yaml", "wide.yaml") + f"parameters:\n{values}")
    done = typo.call("sweep", "wide")
    assert done.returncode == 0, done.stderr
    (id12,) = {row.id for row in typo.store.read_plan("wide")}
    assert len(id12) == 12
    record = typo.store.read_trial(id12)
    assert record is not None
    assert unquote(record.label) == " ".join(
        ["none", *(f"model.make_wide.{key}={value}" for key, value in settings.items())]
    )
    assert {len(folder.name) for folder in typo.store.layout.trials.iterdir()} == {12}


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, pause_s=0.05)
    lab.sweep("slow", "{ema: {}}")
    yield lab
    for pid in lab.processes():
        os.kill(pid, signal.SIGKILL)


def running(lab: Lab) -> Status | None:
    """The status of the trial that runs, where one does."""
    statuses = [lab.store.read_status(row.id, row.replicate) for row in lab.store.read_plan("slow")]
    return next((s for s in statuses if s and s.state == "running"), None)


@pytest.mark.parametrize("victims", ["driver and trial", "all"])
def test_row_33_kill_9_leaves_no_process_and_the_next_call_does_what_is_missing(slow: Lab, victims: str) -> None:
    with slow.start("sweep", "slow") as driver:
        until(lambda: "complete" in slow.states("slow").values() and running(slow))
        trial = running(slow)
        assert trial is not None
        (guard,) = process.children(driver.pid)
        below = {"driver and trial": [trial.pid], "all": [trial.pid, *process.children(guard), guard]}
        for number in (signal.SIGSTOP, signal.SIGKILL):  # none of them sees another go
            for pid in (driver.pid, *below[victims]):
                os.kill(pid, number)
        driver.communicate()
    assert slow.until_gone() == []
    assert sorted(slow.states("slow").values()) == ["complete", "lost", "pending"]
    assert "lost" in slow.call("status", "slow").stdout
    if victims == "all":
        done = slow.call("sweep", "slow")
        assert done.returncode == 0, done.stderr
        attempts = [status.attempt for status in statuses_of(slow)]
        assert (set(slow.states("slow").values()), sorted(attempts)) == ({"complete"}, [1, 1, 2])


def statuses_of(lab: Lab) -> list[Status]:
    statuses = [lab.store.read_status(row.id, row.replicate) for row in lab.store.read_plan("slow")]
    return [status for status in statuses if status is not None]


def test_row_30_row_41_ctrl_c_is_no_success_starts_no_other_trial_and_nothing_runs_twice(slow: Lab) -> None:
    with slow.start("sweep", "slow") as driver:
        until(lambda: "complete" in slow.states("slow").values() and running(slow))
        driver.send_signal(signal.SIGINT)
        _, err = driver.communicate(timeout=60)
    assert driver.returncode == 130, err
    assert "1 complete, 1 interrupted, 1 pending; this call ran 2\n" in err
    assert "to go on: expkit sweep slow" in err
    assert sorted(slow.states("slow").values()) == ["complete", "interrupted", "pending"]
    assert slow.until_gone() == []
    done = slow.call("sweep", "slow")
    assert done.returncode == 0, done.stderr
    assert sorted(status.attempt for status in statuses_of(slow)) == [1, 1, 2]


@pytest.mark.parametrize(
    ("numbers", "state", "said"),
    [
        ([signal.SIGINT], "claimed", "interrupted by you (SIGINT)"),
        ([signal.SIGINT], "running", "interrupted by you (SIGINT)"),
        ([signal.SIGINT, signal.SIGINT], "running", "interrupted by you (SIGINT)"),
        ([signal.SIGTERM], "running", "interrupted by a signal to expkit (SIGTERM)"),
    ],
)
def test_a_trial_that_was_stopped_says_so_in_the_same_words_whenever_the_signal_came(
    slow: Lab, numbers: list[int], state: str, said: str
) -> None:
    def at_it() -> bool:
        if state == "claimed":
            return bool(slow.states("slow")) and any(slow.store.layout.trials.glob("*/r0/status.json"))
        return "complete" in slow.states("slow").values() and running(slow) is not None

    _, err = slow.signalled(at_it, numbers, "sweep", "slow")
    rows = slow.store.read_plan("slow")
    stopped = [row for row in rows if slow.store.state_of(row.id, row.replicate) == "interrupted"]
    if (
        state == "claimed" and not stopped
    ):  # on a busy machine: before the trial's process began, or after its last step
        assert {"pending"} <= set(slow.states("slow").values()) <= {"pending", "complete"}, err
        assert "interrupted; to go on" in err
        return
    (row,) = stopped
    status = slow.store.read_status(row.id, row.replicate)
    assert (status.message if status else None) == said, err
    assert said in err
    assert said in slow.call("status", "slow").stdout
    assert said in slow.call("why", row.id).stdout
    assert said in slow.call("report", "slow", "--format", "md").stdout


def test_a_pilot_that_is_stopped_fixes_no_target_and_goes_on_later(slow: Lab) -> None:
    recipe = slow.folder / "recipes" / "tiny.yaml"
    recipe.write_text(recipe.read_text().replace("target: 0.6", "target: {pilot: {seeds: 2}}"))
    trials = slow.store.layout.trials

    def at_it(state: str = "running") -> bool:
        return any(slow.store.state_of(folder.name, 0) == state for folder in trials.glob("*"))

    for command, number, code in (("pilot", signal.SIGTERM, 143), ("sweep", signal.SIGHUP, 129)):
        got, err = slow.signalled(at_it, [number], command, "slow")
        assert (got, "the pilot was stopped" in err) == (code, True), err
        assert at_it("interrupted")
    assert not (slow.folder / "sweeps" / "slow.target.json").exists()
    assert slow.call("pilot", "slow").returncode == 0
    assert (slow.folder / "sweeps" / "slow.target.json").exists()


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
    with slow.start("sweep", "both") as one:
        until(lambda: "running" in slow.states("both").values())
        other = slow.call("sweep", "both")
        _, err = one.communicate(timeout=120)
    assert (one.returncode, other.returncode) == (0, 0), (err, other.stderr)
    rows = slow.store.read_plan("both")
    statuses = [slow.store.read_status(row.id, row.replicate) for row in rows]
    assert [(s.state, s.attempt) for s in statuses if s] == [("complete", 1)] * len(rows)
    assert len({s.driver for s in statuses if s}) == 2
