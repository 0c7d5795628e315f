"""The files that ship: every recipe and sweep is good, named as its file, and as long as the README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.launch import targets
from expkit.plan.count import count
from expkit.plan.expand import baseline_trial
from expkit.spec.files import load_recipe
from expkit.spec.sweep_file import load_sweep

ROOT = Path(__file__).parent.parent
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
SWEEPS = sorted((ROOT / "sweeps").glob("*.yaml"))


@pytest.mark.parametrize("file", RECIPES, ids=lambda f: f.name)
def test_a_recipe_is_good_and_has_a_short_form(file: Path) -> None:
    assert load_recipe(file).name == file.stem.replace("_", "-")
    assert str(load_recipe(file, presets=("smoke",)).trainer.max_duration) == "4ba"


@pytest.mark.parametrize("file", SWEEPS, ids=lambda f: f.name)
def test_a_sweep_is_8_sets_5_seeds_and_a_repeat_of_the_baseline_a_seed(file: Path) -> None:
    sweep = load_sweep(file)
    arithmetic = count(sweep)
    assert sweep.name == file.stem
    assert (arithmetic.sets, arithmetic.trials, arithmetic.repeats, arithmetic.replicates) == (8, 40, 5, 45)


@pytest.mark.parametrize("file", SWEEPS, ids=lambda f: f.name)
def test_its_target_was_derived_from_the_baseline_that_it_trains(file: Path) -> None:
    sweep, target = load_sweep(file), targets.read(targets.target_file(file))
    assert target["trials"] == [baseline_trial(sweep, seed).id12 for seed in target["seeds"]], "expkit pilot --force"
