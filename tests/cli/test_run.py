"""`expkit run` and `expkit rerun`, with a user's own model and data by import path."""

from __future__ import annotations

import pytest

from expkit.launch.drive import MISSING
from expkit.store.query import connect
from expkit.store.records import Status
from tests.launch.lab import Lab

LINES = "expkit"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


def test_run_trains_a_model_of_the_user_s_own_and_says_what_to_do_next(lab: Lab) -> None:
    done = lab.expkit("run", "tiny")  # with an interpreter of its own, as a person does
    assert done.returncode == 0, done.stderr
    assert "r0: complete" in done.stdout
    assert "eval/accuracy" in done.stdout
    assert "next: expkit rerun" in done.stderr
    (id12,) = [folder.name for folder in lab.store.layout.trials.iterdir()]
    status = lab.store.read_status(id12, 0)
    assert status is not None
    assert status.code_sha


def test_run_of_a_complete_trial_says_so_and_trains_nothing(lab: Lab) -> None:
    done = lab.call("run", "tiny")
    assert done.returncode == 0
    assert "already" in done.stdout
    again = lab.json("run", "tiny")
    assert again["already"] is True
    assert again["final"]["eval/accuracy"] >= 0


def test_fast_dev_run_has_an_id_of_its_own_and_seed_another(lab: Lab) -> None:
    fast = lab.json("run", "tiny", "--fast-dev-run")
    assert fast["state"] == "complete"
    assert fast["id"] != lab.json("run", "tiny")["id"]


@pytest.mark.parametrize("ssr", [1.0, 0.5])
def test_a_budget_of_seconds_ends_by_the_train_clock_and_the_schedule_follows_it(lab: Lab, ssr: float) -> None:
    settings = ["trainer.max_duration=1s", "trainer.eval_interval=0.5dur", f"trainer.ssr={ssr}",
                "scheduler={cosine: {warmup: 0.2dur}}", "callbacks={lr_monitor: {}}",
                "data.train={'py:own:Points': {pause_s: 0.001}}"]  # fmt: skip
    done = lab.json("run", "tiny", *(part for setting in settings for part in ("--set", setting)))
    assert done["state"] == "complete"
    with connect(lab.runs) as con:
        sql = "SELECT batch, train_s, value FROM metrics WHERE id = ? AND name = ? ORDER BY batch"
        rates = con.rows(sql, [done["id"], "lr"])
        evaluations = con.rows(sql, [done["id"], "eval/accuracy"])
    assert rates[-2]["train_s"] < ssr <= rates[-1]["train_s"] < ssr + 1
    half, end = (row["train_s"] for row in evaluations)
    assert ssr / 2 <= half < ssr <= end
    highest = max(rates, key=lambda row: row["value"])
    assert highest["value"] == pytest.approx(0.1, rel=0.1)
    assert highest["train_s"] / ssr == pytest.approx(0.2, abs=0.15)
    assert 0 < rates[0]["value"] < 0.01
    assert rates[-1]["value"] < 0.005


def test_code_that_nobody_trusts_is_exit_2(lab: Lab, tmp_path: object) -> None:
    (lab.folder / "expkit.toml").rename(lab.folder / "away.toml")
    try:
        refused = lab.call("run", "tiny", "--seed", "3")
        allowed = lab.call("run", "tiny", "--seed", "3", "--trust-imports", "own")
    finally:
        (lab.folder / "away.toml").rename(lab.folder / "expkit.toml")
    assert refused.returncode == 2
    assert "trust" in refused.stderr
    assert allowed.returncode == 0, allowed.stderr


def test_a_trial_that_fails_is_exit_1_with_its_cause_and_runs_again_when_asked(lab: Lab) -> None:
    own = lab.folder / "own.py"
    text = own.read_text()
    own.write_text(
        text.replace("def make_net(width=4):", "def make_net(width=4):\n    raise ValueError('no net today')")
    )
    try:
        failed = lab.call("run", "tiny", "--seed", "4")
    finally:
        own.write_text(text)
    assert failed.returncode == 1
    assert "failed (exception)" in failed.stderr
    assert "no net today" in failed.stderr
    assert lab.call("run", "tiny", "--seed", "4").returncode == 0


def test_statuses_that_run_again_are_those_without_a_result() -> None:
    assert "complete" not in MISSING
    assert Status("interrupted", 1).state in MISSING
