"""What testers ran into with sweeps, each with its story."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.launch.lab import Lab, until

NOTHING = """
from dataclasses import dataclass
from expkit.trainer.algorithm import Algorithm

@dataclass
class Nothing(Algorithm):
    def batch_start(self, state, logger):
        self.effective = True
"""


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


def test_code_that_was_edited_after_its_trials_were_complete_is_named_and_they_stay(lab: Lab) -> None:
    lab.sweep("edited", "{'py:more:Nothing': {}}")
    more = lab.folder / "more.py"
    more.write_text(NOTHING)
    options = ("--set", "seed=91", "--trust-imports", "more")
    first = lab.call("sweep", "edited", *options)
    assert (first.returncode, "differs" in first.stderr) == (0, False), first.stderr
    guards = json.loads((lab.store.layout.report("edited") / "summary.json").read_text())["guards"]
    assert "mixed" not in next(guard["sentence"] for guard in guards if guard["name"] == "code")
    (lab.folder / "unrelated.py").touch()
    assert "differs" not in lab.call("plan", "edited", *options).stdout
    more.write_text(NOTHING + "# edited\n")
    planned, again = lab.call("plan", "edited", *options), lab.call("sweep", "edited", *options)
    (row,) = [row for row in lab.store.read_plan("edited") if row.role == "arm"]
    said = "the code of 1 complete replicate differs from the code now (more), and none is run again for it: "
    said += f"expkit rerun {row.id}"
    assert said in planned.stdout
    assert said in again.stderr
    assert "this call ran 0" in again.stderr
    assert lab.json("plan", "edited", *options)["changed_code"] == [f"{row.id} r0"]


def test_a_run_that_is_complete_already_says_that_its_code_was_edited_since(lab: Lab) -> None:
    more = lab.folder / "net.py"
    more.write_text("from own import make_net\n")
    options = ("--set", "model={'py:net:make_net': {}}", "--trust-imports", "net", "--trust-imports", "own")
    assert lab.call("run", "tiny", *options).returncode == 0
    assert "differs" not in lab.call("run", "tiny", *options).stderr
    more.write_text("from own import make_net  # edited\n")
    again = lab.call("run", "tiny", *options)
    assert "complete already" in again.stdout
    assert "the code of 1 complete replicate differs from the code now (net)" in again.stderr
    assert lab.json("run", "tiny", *options)["changed_modules"] == ["net"]


@pytest.mark.parametrize(
    ("name", "seed", "method", "sentence"),  # a seed of its own: a shared baseline would gain late replicates
    [
        ("bare", 92, "'py:own:GradNorm': {}", "GradNorm must be a @dataclass: its fields are its settings"),
        ("noise", 95, "'py:own:GradNoise': {}", "module own has no 'GradNoise'"),
        ("widht", 98, "'py:own:Trouble': {knd: raise}", "unknown setting 'knd'; did you mean 'kind'?"),
    ],
)
def test_code_that_cannot_be_put_together_fails_once_in_one_sentence_and_what_needs_it_stays_pending(
    lab: Lab, name: str, seed: int, method: str, sentence: str
) -> None:
    own = lab.folder / "own.py"
    if "GradNorm" not in own.read_text():
        own.write_text(own.read_text() + "\nclass GradNorm(Algorithm):\n    norm: float = 1.0\n")
    lab.sweep(name, f"{{{method}, ema: {{}}}}", seeds=2)
    done = lab.call("sweep", name, "--set", f"seed={seed}")
    assert done.returncode == 1
    states = lab.states(name)
    assert Counter(states.values()) == {"complete": 6, "failed": 1, "pending": 3}
    assert done.stderr.count(sentence) == 1
    assert "does not work with these settings, so other trials with it stay pending" in done.stderr
    row = next(r for r in lab.store.read_plan(name) if lab.store.state_of(r.id, r.replicate) == "failed")
    told = lab.call("why", row.id).stdout
    assert told.count(sentence) == 1
    assert "pydantic" not in told + done.stderr
    assert "Traceback" not in told + done.stderr


def test_a_function_that_does_not_take_a_setting_says_which_it_takes(lab: Lab) -> None:
    done = lab.call("run", "tiny", "--set", "model={'py:own:make_net': {widht: 3}}")
    assert done.returncode == 1
    assert "failed (config)" in done.stderr
    assert "py:own:make_net: unknown setting 'widht'; did you mean 'width'? there are: width" in done.stderr


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
