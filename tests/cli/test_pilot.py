"""`expkit pilot`, and a sweep whose target is a pilot."""

from __future__ import annotations

import json

import pytest

from tests.launch.lab import Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    made = Lab(tmp_path_factory.mktemp("lab"))
    recipe = made.folder / "recipes" / "tiny.yaml"
    recipe.write_text(recipe.read_text().replace("target: 0.6", "target: {pilot: {seeds: 2}}"))
    made.sweep("one", "{ema: {half_life: 4ba}}")
    return made


def test_a_sweep_without_a_target_file_runs_the_pilot_first(lab: Lab) -> None:
    done = lab.call("sweep", "one")
    assert done.returncode == 0, done.stderr
    assert "the pilot runs first" in done.stderr
    target = json.loads((lab.folder / "sweeps" / "one.target.json").read_text())
    assert target["value"] == min(target["finals"])
    assert all(seed >= 2**31 for seed in target["seeds"])
    assert lab.store.targets("one")["hash"] == target["hash"]
    rows = lab.store.read_plan("one")
    assert [row.role for row in rows].count("pilot") == 2
    assert {row.target_hash for row in rows if row.role != "pilot"} == {target["hash"]}
    for row in rows:
        if row.role != "pilot":
            attempt = lab.store.read_attempt(lab.store.layout.attempt(row.id, row.replicate, 1))
            assert attempt is not None
            assert attempt["target_hash"] == target["hash"]


def test_a_target_file_is_not_replaced_unless_forced(lab: Lab) -> None:
    if not (lab.folder / "sweeps" / "one.target.json").exists():
        assert lab.call("pilot", "one").returncode == 0
    refused = lab.call("pilot", "one")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    forced = lab.json("pilot", "one", "--force")
    assert forced["metric"] == "eval/accuracy"
    assert len(forced["finals"]) == 2


def test_a_pilot_needs_a_recipe_that_asks_for_one(lab: Lab) -> None:
    done = lab.call("pilot", "one", "--set", "metrics.target=0.5", "--force")
    assert done.returncode == 2
    assert "pilot" in done.stderr


def test_a_target_that_is_derived_anew_after_arms_ran_is_exploratory(lab: Lab) -> None:
    lab.sweep("late", "{label_smoothing: {}}")
    assert lab.call("sweep", "late").returncode == 0
    report = lab.runs / "sweeps" / "late" / "report" / "summary.json"
    before = json.loads(report.read_text())["target"]
    assert (before["exploratory"], len(before["ladder"])) == (False, 3)
    assert [share for share, _ in before["ladder"]] == [0.9, 0.95, 0.99]
    assert lab.call("pilot", "late", "--force").returncode == 0
    done = lab.call("sweep", "late")
    assert (done.returncode, "this call ran 0" in done.stderr) == (0, True)
    after = json.loads(report.read_text())
    assert after["target"]["hash"] != before["hash"]
    assert after["target"]["exploratory"] is True
    assert "was set after data had been seen: exploratory" in after["target"]["sentence"]
