"""`expkit check`, as a process would call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spec.lab import RECIPE, SWEEP, Lab, changed


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.write("recipes/fashion_resnet.yaml", RECIPE)
    lab.write("sweeps/ablate.yaml", SWEEP)
    return lab


def expkit(lab: Lab, *args: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", "from expkit.cli import main; main()", *args],
        cwd=lab.folder, env={"PYTHONPATH": root, "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_good_files_are_named_on_stdout(lab: Lab) -> None:
    done = expkit(lab, "check", "ablate", "fashion_resnet.yaml")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "ablate: sweep ablate, 8 sets, 40 trials, 45 replicates"
    assert lines[1].startswith("fashion_resnet.yaml: recipe fashion-resnet, trial ")
    assert done.stderr == ""


def test_all_problems_of_all_files_on_stderr_and_exit_2(lab: Lab) -> None:
    lab.write("bad.yaml", changed(RECIPE, ("seed: 17", "seed: 017"), ("depth: 8", "dept: 8")))
    done = expkit(lab, "check", "bad.yaml", "ablate.yaml", "missing.yaml")
    assert done.returncode == 2
    assert done.stdout == "ablate.yaml: sweep ablate, 8 sets, 40 trials, 45 replicates\n"
    assert "bad.yaml:4:18: model.resnet.dept: unknown setting of resnet 'dept'; did you mean 'depth'?" in done.stderr
    assert "bad.yaml:19:7: seed: 017 has a leading zero" in done.stderr
    assert "there is no file missing.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_problem_that_several_files_share_is_said_once(lab: Lab) -> None:
    lab.write("recipes/fashion_resnet.yaml", changed(RECIPE, ("depth: 8", "dept: 8")))
    done = expkit(lab, "check", "fashion_resnet", "ablate")
    assert done.stderr.count("unknown setting of resnet") == 1
    assert "ablate: what is wrong with recipes/fashion_resnet.yaml stands above" in done.stderr


def test_a_recipe_that_is_not_there_is_no_question_of_trust(lab: Lab) -> None:
    lab.write("expkit.toml", 'trust = ["mylab.*"]\n')
    own = ("ema: {half_life: 12ba}", '"py:mylab.noise:Noise": {}')
    lab.write("sweeps/ablate.yaml", changed(SWEEP, own, ("fashion_resnet.yaml", "nope.yaml")))
    (said,) = expkit(lab, "check", "ablate").stderr.splitlines()
    assert said.startswith("sweeps/ablate.yaml:3:9: recipe: there is no file nope.yaml")


def test_presets_that_are_not_asked_for_are_checked_too(lab: Lab) -> None:
    lab.write("bad.yaml", changed(RECIPE, ("{smoke: {trainer.max_duration", "{smoke: {trainer.max_duratio")))
    done = expkit(lab, "check", "bad.yaml")
    assert done.returncode == 2
    assert "bad.yaml:21:19: trainer.max_duratio: unknown key 'max_duratio'" in done.stderr


def test_json(lab: Lab) -> None:
    lab.write("bad.yaml", "a: [")
    done = expkit(lab, "check", "--json", "ablate.yaml", "bad.yaml")
    good, bad = json.loads(done.stdout)
    assert (good["kind"], good["trials"], good["ok"]) == ("sweep", 40, True)
    assert (bad["ok"], [p["line"] for p in bad["problems"]]) == (False, [2])
    assert done.returncode == 2
