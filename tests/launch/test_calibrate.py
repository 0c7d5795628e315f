"""Calibrating this host, alone and with the arms of a sweep."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from expkit.analysis.reference_time import Phase
from expkit.errors import EnvironmentFault, UsageError
from expkit.launch import calibrate as timing
from expkit.launch.calibrate import Calibration, Order, calibrate, courses
from expkit.launch.tally import MOST, Tally, name_of
from expkit.launch.trials import add, trial_of
from expkit.spec.files import load_recipe
from expkit.spec.recipe import Component
from expkit.store.lock import acquire
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.records import PlanRow, Status
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.trainer import Trainer
from tests.launch.lab import Lab
from tests.store.synthetic import make_store

APART = timing._apart


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measures in this process: importing torch in another takes two seconds."""
    monkeypatch.setenv("EXPKIT_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(timing, "_apart", timing.here)


def test_a_host_is_timed_and_kept_in_a_file(tmp_path: Path) -> None:
    found = calibrate(Order(rounds=1))
    assert 0 < found.cpu_s < 1
    assert (found.setting["host"], found.setting["device"]) == (found.host, "cpu")
    found.write(tmp_path / "here.json")
    assert Calibration.read(tmp_path / "here.json") == found
    with acquire("shared"), pytest.raises(EnvironmentFault, match="is held by"):
        calibrate(Order(rounds=1))


@pytest.mark.soak  # 3 s: a process of its own
def test_it_is_timed_in_a_process_with_the_environment_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_apart", APART)
    assert calibrate(Order(rounds=1)).setting["malloc"] == "1073741824"
    with pytest.raises(EnvironmentFault, match=r"this machine could not be timed: .*nowhere\.yaml"):
        calibrate(Order(rounds=1, courses=[{"arm": "none", "recipe": "nowhere.yaml", "steps": {"8x8": 1}}]))


def test_doubts_about_a_host() -> None:
    quiet = Calibration("bench1", 1, "2.13.0", "2026-01-01T00:00:00Z", 0.0101, 0.0100, 0.0001, 20)
    assert quiet.doubts == []
    slip = tuple(Phase("ema", f"{n}x10", 200, 0.01 * n if n != 4 else 0.004, 0.0) for n in range(1, 7))
    noisy = Calibration("bench1", 2, "2.13.0", "2026-01-01T00:00:00Z", 0.0090, 0.0100, 0.0010, 20, {}, slip)
    assert noisy.doubts == ["rounds differ by 15 %", "wall over CPU time is 1.80",
                            "more than 20 % off what sizes predict: 4x10 of ema"]  # fmt: skip


def test_what_is_no_calibration_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no calibration"):
        Calibration.read(tmp_path / "none.json")
    whole = '{"host": "a", "threads": 1, "torch": "2", "utc": "", "wall_s": 1, "cpu_s": 1, "mad_s": 0, "rounds": 3'
    for text in ('{"host": 1}', "[]", f'{whole}, "phases": [{{"arm": "a"}}]}}', f'{whole}, "phases": 7}}'):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(UsageError, match="is no calibration that"):
            Calibration.read(tmp_path / "odd.json")
    with pytest.raises(UsageError, match="1 or more, but got 0, 1 and 200"):
        calibrate(Order(rounds=0))


def test_a_sweep_whose_trials_did_not_count_their_steps(tmp_path: Path) -> None:
    made = make_store(tmp_path / "runs", {}, seeds=(17,), num_batches=8, evaluations=2)
    with pytest.raises(UsageError, match="no complete trial of ablate has counted its steps"):
        courses(made.store, "ablate")


def written(lab: Lab) -> None:
    """A sweep `tiny` of two arms whose trials are complete and have counted their steps."""
    recipe = load_recipe(lab.folder / "recipes" / "tiny.yaml", trust_imports=["own"])
    trouble = Component("py:own:Trouble", "trouble", {"kind": "none"})
    trials = [trial_of(recipe), trial_of(dataclasses.replace(recipe, algorithms={"trouble": trouble}))]
    add(lab.store, trials)
    rows = []
    for position, trial in enumerate(trials):
        writer = MetricsWriter(lab.store.new_attempt(trial.id12, 0, "driver"), trial.id12, 0, 1)
        writer.log_many({"eval/accuracy": 0.5}, Stamp(8, 1, 0, 64, 0, 1.0, 1.0, 1.0))
        writer.close()
        lab.store.write_status(trial.id12, 0, Status("complete", 1, phases={"8x8": 8}))
        role = "arm" if position else "baseline"
        rows.append(PlanRow(trial.id12, 0, trial.arm, role, 0, position))
    lab.store.write_plan("tiny", "version: 1\nname: tiny\n", rows)
    lab.store.write_settings("tiny", {"baseline_arm": "none"})


def test_every_phase_of_every_arm_of_a_sweep_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(tmp_path / "lab")
    monkeypatch.chdir(lab.folder)
    written(lab)
    found = lab.json("calibrate", "tiny", "--steps", "12", "--rounds", "1")
    assert {(one["arm"], one["phase"]) for one in found["phases"]} == {("none", "8x8"), ("trouble", "8x8")}
    assert all(one["steps"] >= 12 and one["median_s"] > 0 for one in found["phases"])
    none, trouble = found["by_phases"]["arms"]
    assert none["seconds"] == pytest.approx(8 * next(o["median_s"] for o in found["phases"] if o["arm"] == "none"))
    assert trouble["speedup"]["lo"] < trouble["speedup"]["value"] < trouble["speedup"]["hi"]
    assert lab.json("report", "tiny")["reference"]["arms"] == [none, trouble]


@dataclasses.dataclass
class Half(Algorithm):
    """Scores the second batch, then trains on half of it."""

    def after_dataloader(self, state: object, logger: object) -> None:
        if state.timestamp.batch == 1:  # type: ignore[attr-defined]
            with torch.no_grad():
                state.model(state.inputs)  # type: ignore[attr-defined]
            state.batch = tuple(part[:2] for part in state.batch)  # type: ignore[attr-defined]


def tallied(batches: list[tuple[torch.Tensor, torch.Tensor]], **options: object) -> dict[str, int]:
    tally = Tally()
    with Trainer(
        model=torch.nn.Linear(3, 2), train_dataloader=batches, eval_dataloader=batches, max_duration="1ep",
        eval_interval="1ba", **options,  # type: ignore[arg-type]
    ) as trainer:  # fmt: skip
        tally.watch(trainer)
        trainer.fit()
    return tally.phases()


def test_steps_are_counted_by_what_they_do_and_evaluations_are_not() -> None:
    batches = [(torch.ones(size, 3), torch.zeros(size, dtype=torch.long)) for size in (4, 4, 4, 3)]
    assert tallied(batches) == {"4x3": 3, "3x3": 1}
    assert tallied(batches, algorithms=Half()) == {"4x3": 2, "4x3 forward + 2x3": 1, "3x3": 1}
    assert tallied(batches, device_train_microbatch_size=2) == {"2 * 2x3": 3, "2x3 + 1x3": 1}
    many = [(torch.ones(size, 3), torch.zeros(size, dtype=torch.long)) for size in range(1, MOST + 3)]
    assert tallied(many) == {}
    assert name_of([((), True)]) == "?"
