"""What users of such tools reported of running sweeps: each row a test with its number; one fork server for all."""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path
from typing import get_type_hints

import pytest
import typer

from expkit.cli import app
from expkit.store.layout import Layout
from tests.launch.lab import Lab

QUICK = "set: {trainer.max_duration: 2ba, trainer.eval_interval: 2ba}\n"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def files_of(lab: Lab, ids: set[str]) -> dict[str, str]:
    """Each file of some trials with the hash of its bytes."""
    root = lab.store.layout.root / "trials"
    paths = (path for path in root.rglob("*") if path.is_file() and path.relative_to(root).parts[0] in ids)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_row_12_no_command_writes_to_a_users_file(lab: Lab) -> None:
    lab.sweep("mine", "{ema: {half_life: 3ba}}")
    yours = [*lab.folder.glob("*.*"), *(lab.folder / "recipes").iterdir(), *(lab.folder / "sweeps").iterdir()]
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in yours if path.is_file()}
    for arguments in (("check", "mine"), ("check", "tiny"), ("plan", "mine"), ("run", "tiny"), ("sweep", "mine"),
                      ("status", "mine"), ("report", "mine"), ("query", "SELECT 1"), ("explain", "ema")):  # fmt: skip
        assert lab.call(*arguments).returncode == 0, arguments
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in before} == before


def test_row_14_every_option_that_takes_a_value_takes_one(lab: Lab) -> None:
    for name, command in vars(typer.main.get_command(app))["commands"].items():
        hints = get_type_hints(getattr(importlib.import_module(f"expkit.cli.{name}"), name))
        for option in command.params:
            is_switch = getattr(option, "is_flag", False)
            assert is_switch == (hints.get(option.name) is bool), f"{name} {option.name}"
    lab.sweep("short", "{}")
    done = lab.call("plan", "short", "--set", "name=hello")
    assert done.stdout.startswith("sweep hello: ")
    assert "--set" in lab.call("plan", "--help").stdout
    assert "PATH=VALUE" in lab.call("plan", "--help").stdout


@pytest.mark.parametrize("num", [60, pytest.param(600, marks=pytest.mark.soak)])
def test_row_16_a_grid_runs_each_point_once(lab: Lab, num: int) -> None:
    odd = ["'1'", "1", "1.0", "'1e-3'", "[1, 2]", "[1, [2]]", "null", "true", "'true'"]
    kinds = ", ".join([*odd, *(f"0.{i}" for i in range(1, 9)), *(f"k{i}" for i in range(num - 18))])
    path = lab.sweep("grid", f"{{'py:own:Trouble': {{kind: {{values: [{kinds}]}}}}}}", timing="shared")
    path.write_text(path.read_text() + QUICK)
    (lab.folder / "own.py").write_text((lab.folder / "own.py").read_text().replace("kind: str", "kind: object"))
    done = lab.call("sweep", "grid", "--jobs", "4")
    assert done.returncode == 0, done.stderr
    rows = lab.store.read_plan("grid")
    assert len({row.id for row in rows}) == num
    statuses = [lab.store.read_status(row.id, row.replicate) for row in rows]
    assert [(s.state, s.attempt) for s in statuses if s] == [("complete", 1)] * (num + 1)  # and the A/A repeat


def test_row_38_row_39_row_40_fifty_trials_stop_after_three_and_retry_runs_all_of_them(lab: Lab) -> None:
    recipe = lab.folder / "recipes" / "tiny.yaml"
    recipe.write_text(recipe.read_text().replace("{pause_s: 0.0}", "{pause_s: 0.0, path: points.txt}"))
    numbers = ", ".join(map(str, range(48)))
    path = lab.sweep("typo", f"{{'py:own:Trouble': {{number: [{numbers}]}}}}", timing="shared")
    path.write_text(path.read_text() + QUICK)
    done = lab.call("sweep", "typo")
    assert done.returncode == 1, done.stderr
    states = list(lab.states("typo").values())
    assert (len(states), states.count("failed"), states.count("pending")) == (50, 3, 47)
    (lab.folder / "points.txt").touch()
    done = lab.call("sweep", "typo", "--retry", "failed", "--jobs", "4")
    assert done.returncode == 0, done.stderr
    assert list(lab.states("typo").values()) == ["complete"] * 50


def test_row_19_a_sweep_that_grows_runs_what_is_new_and_one_that_shrinks_forgets_nothing(lab: Lab) -> None:
    lab.sweep("grows", "{ema: {half_life: 3ba}}", timing="shared")
    assert lab.call("sweep", "grows").returncode == 0
    old = {row.id for row in lab.store.read_plan("grows")}
    before = files_of(lab, old)

    lab.sweep("grows", "{ema: {half_life: 3ba}, label_smoothing: {}}", seeds=2, timing="shared")
    done = lab.call("sweep", "grows")
    assert done.returncode == 0, done.stderr
    rows = lab.store.read_plan("grows")
    assert old < {row.id for row in rows}
    assert f"this call ran {len(rows) - 3}" in done.stderr
    assert files_of(lab, old) == before

    lab.sweep("grows", "{label_smoothing: {}}", timing="shared")
    done = lab.call("sweep", "grows")
    assert done.returncode == 0, done.stderr
    assert "this call ran 0" in done.stderr
    assert files_of(lab, old) == before
    report = json.loads((Layout(lab.runs).report("grows") / "summary.json").read_text())
    assert {arm["label"] for arm in report["arms"]} == {"none", "label_smoothing"}
    assert len(lab.json("query", "SELECT DISTINCT id FROM trials")) == 8


RIVAL = """
class Rival(Trouble):
    conflicts = frozenset({"ema"})
"""


def test_row_23_a_conflict_that_code_of_ones_own_declares_is_lifted_for_the_trial_too(lab: Lab) -> None:
    (lab.folder / "own.py").write_text((lab.folder / "own.py").read_text() + RIVAL)
    lab.sweep("refused", "{ema: {half_life: 3ba}, 'py:own:Rival': {}}")
    assert lab.call("sweep", "refused").returncode == 1
    assert lab.states("refused")["ema+rival b0 r0"] == "failed"
    path = lab.sweep("allowed", "{ema: {half_life: 5ba}, 'py:own:Rival': {}}")
    path.write_text(path.read_text().replace("ablate: {", "ablate: {allow: [[ema, rival]], "))
    done = lab.call("sweep", "allowed")
    assert done.returncode == 0, done.stderr
    assert lab.states("allowed")["ema+rival b0 r0"] == "complete"
