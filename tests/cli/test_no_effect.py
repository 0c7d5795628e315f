"""Row 24 of the user reports: a method that finds nothing to do in a model of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.launch.lab import Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A linear model by import path: what it can do is known only where the trial runs."""
    made = Lab(tmp_path_factory.mktemp("lab"))
    made.sweep("blur", "{blurpool: {}, ema: {half_life: 2ba}}", seeds=3)
    done = made.call("sweep", "blur")
    assert done.returncode == 0, done.stderr
    return made


def test_user_report_24_blurpool_without_convolutions_is_flagged_and_listed_apart(lab: Lab) -> None:
    rows = lab.json("query", "SELECT DISTINCT name, effective FROM algorithms ORDER BY name")
    assert rows == [{"name": "blurpool", "effective": False}, {"name": "ema", "effective": True}]
    summary = lab.json("report", "blur")
    arms = {arm["label"]: arm for arm in summary["arms"]}
    assert arms["blurpool"]["verdict"] == "NO EFFECT BY CONSTRUCTION"
    assert arms["blurpool+ema"]["equals"] == "ema"
    assert arms["ema"]["verdict"] != "NO EFFECT BY CONSTRUCTION"
    (guard,) = [guard for guard in summary["guards"] if guard["name"] == "methods applied"]
    assert "blurpool" in guard["sentence"]
    assert guard["light"] != "green"
    page = lab.call("report", "blur", "--format", "md").stdout
    assert "equals ema" in page and "blurpool" in page


def test_user_report_24_the_trial_says_so_itself(lab: Lab) -> None:
    (row,) = [row for row in lab.store.read_plan("blur") if row.arm == "blurpool" and row.block == 0]
    assert "blurpool found nothing to do" in lab.call("why", row.id).stdout
    assert "without effect: blurpool" in lab.call("show", row.id).stdout
    assert Path(lab.json("show", row.id)["recipe"]).name == "recipe.yaml"
