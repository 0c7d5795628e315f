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


ABLATIONS = {"ablate": (8, 40, 5, 45), "ablate_language": (8, 40, 5, 45),
             "ablate_budgets": (2, 30, 15, 45), "ablate_language_budgets": (2, 20, 10, 30)}  # fmt: skip


@pytest.mark.parametrize("file", SWEEPS, ids=lambda f: f.name)
def test_a_sweep_is_as_large_as_its_first_lines_say(file: Path) -> None:
    sweep = load_sweep(file)
    found = count(sweep)
    assert sweep.name == file.stem
    assert (found.sets, found.trials, found.repeats, found.replicates) == ABLATIONS[sweep.name]
    said = f"{found.sets} sets, {found.trials} trials, {found.repeats} A/A repeats."
    assert said in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("file", sorted((ROOT / "sweeps").glob("*.target.json")), ids=lambda f: f.name)
def test_a_target_was_derived_from_the_baseline_that_its_sweep_trains(file: Path) -> None:
    sweep, target = load_sweep(file.with_name(file.name.replace(".target.json", ".yaml"))), targets.read(file)
    assert target["trials"] == [baseline_trial(sweep, seed).id12 for seed in target["seeds"]], "expkit pilot --force"


@pytest.mark.parametrize("name", ["ablate", "ablate_language"])
def test_a_sweep_over_budgets_has_the_target_of_the_ablation_that_it_continues(name: str) -> None:
    given = load_sweep(ROOT / "sweeps" / f"{name}_budgets.yaml").recipe.metrics.target
    assert given == pytest.approx(targets.read(ROOT / "sweeps" / f"{name}.target.json")["value"], rel=1e-3)
