"""What testers ran into with sweeps, each with its story."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.launch.lab import Lab, until


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("stories"))


def test_a_record_that_was_deleted_is_written_again_and_takes_no_result_with_it(lab: Lab) -> None:
    lab.sweep("records", seeds=2)
    assert lab.call("sweep", "records").returncode == 0
    lost = lab.store.layout.trial(lab.store.read_plan("records")[0].id) / "trial.json"
    lost.unlink()
    again = lab.call("sweep", "records")
    assert (again.returncode, "this call ran 0" in again.stderr) == (0, True)
    assert lost.exists()


def test_a_misspelt_primary_metric_ends_the_sweep_at_its_first_trial_and_correcting_it_trains_nothing_again(
    lab: Lab,
) -> None:
    lab.sweep("typo", seeds=3)
    lab.sweep("typo").write_text(lab.sweep("typo", seeds=3).read_text() + "set: {metrics.primary.name: eval/acuracy}\n")
    done = lab.call("sweep", "typo", "--set", "seed=5", "--runs-dir", "runs_typo")
    assert done.returncode == 2
    assert "eval/acuracy was not recorded by trial" in done.stderr
    assert "eval/accuracy, eval/cross_entropy" in done.stderr
    lab.sweep("typo", seeds=1)
    assert "this call ran 1" in lab.call("sweep", "typo", "--set", "seed=5", "--runs-dir", "runs_typo").stderr
    lab.sweep("typo", seeds=1)
    assert "this call ran 0" in lab.call("sweep", "typo", "--set", "seed=5", "--runs-dir", "runs_typo").stderr


def test_a_sweep_whose_rules_leave_no_trial_is_refused_and_no_pilot_runs(lab: Lab) -> None:
    path = lab.sweep("nothing")
    path.write_text(path.read_text() + 'exclude: [{when: "optimizer.sgd.lr > 0", because: all}]\n')
    done = lab.call("sweep", "nothing", "--set", "metrics.target={pilot: {seeds: 2}}")
    assert done.returncode == 2
    assert "leaves no trial to run" in done.stderr
    assert not (path.parent / "nothing.target.json").exists()


def test_a_reader_that_leaves_early_is_no_error(lab: Lab) -> None:
    with lab.start("query", "--schema") as started:
        assert started.stdout is not None and started.stderr is not None
        started.stdout.read(1)
        started.stdout.close()
        said = started.stderr.read()
    assert (started.returncode, said) == (0, "")


def test_sigterm_before_anything_has_begun_is_143(lab: Lab) -> None:
    lab.sweep("early", "{ema: {half_life: 4ba}}")
    with lab.start("sweep", "early") as started:
        until(lambda: "SIGTERM" in handlers(started.pid))
        started.send_signal(signal.SIGTERM)
        _, said = started.communicate(timeout=30)
    assert started.returncode == 143, said
    assert "Traceback" not in said


def handlers(pid: int) -> str:
    """Whether a process handles SIGTERM by now, by the mask of caught signals that the kernel shows."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), 16)
    return "SIGTERM" if caught >> (signal.SIGTERM - 1) & 1 else ""
