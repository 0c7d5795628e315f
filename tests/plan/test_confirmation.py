"""What a confirmation runs: fresh trials in blocks with their baseline, and which data are opened for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from expkit.duration import Time
from expkit.errors import UsageError
from expkit.plan.confirmation import cells, held_out, held_out_metric
from expkit.plan.expand import expand
from expkit.spec.dump import dump_recipe
from expkit.spec.files import load_recipe
from expkit.spec.identity import trial_id
from expkit.spec.recipe import Component, Data, Recipe
from tests.spec.lab import SWEEP, Lab, changed

SEEDS = (2**31 + 5, 2**31 + 6)


def test_every_block_holds_the_arms_once_and_their_baseline_twice_on_test_data_too(lab: Lab) -> None:
    sweep = lab.sweep()
    made = cells(sweep, ["ema", "label_smoothing"], SEEDS)
    assert [cell.position for cell in made] == list(range(8))
    for block, seed in enumerate(SEEDS):
        mine = [cell for cell in made if cell.block == block]
        assert Counter(cell.trial.arm for cell in mine) == {"ema": 1, "label_smoothing": 1, "none": 2}
        assert [cell.role for cell in mine if cell.trial.arm == "none"] == ["baseline", "repeat"]
        assert {cell.trial.seed for cell in mine} == {seed}
    assert not {cell.trial.id for cell in made} & {cell.trial.id for cell in expand(sweep)}
    recipe = made[0].trial.recipe
    assert sorted(recipe.data.eval) == ["eval", "test"]
    assert recipe.data.eval["test"].settings["split"] == "test"
    assert recipe.trainer.eval_interval == {"eval": Time.parse("0.125ep"), "test": Time.parse("1dur")}


def test_a_trial_that_confirms_is_what_its_file_says(lab: Lab) -> None:
    trial = cells(lab.sweep(), ["ema"], SEEDS)[0].trial
    path = lab.folder / "again.yaml"
    path.write_text(dump_recipe(trial.recipe))
    assert trial_id(load_recipe(path)) == trial.id


def test_each_arm_stands_beside_the_baseline_of_its_own_parameters(lab: Lab) -> None:
    sweep = lab.sweep(changed(SWEEP, ("order:", "parameters: {optimizer.sgd.lr: [0.1, 0.2]}\norder:")))
    made = cells(sweep, ["ema optimizer.sgd.lr=0.2", "ema optimizer.sgd.lr=0.1"], SEEDS[:1])
    by_block = [{cell.trial.arm for cell in made if cell.block == block} for block in (0, 1)]
    assert by_block == [{f"{methods} optimizer.sgd.lr={lr}" for methods in ("none", "ema")} for lr in (0.2, 0.1)]
    with pytest.raises(UsageError, match=r"unknown arm 'ema optimizer\.sgd\.lr=0\.3'"):
        cells(sweep, ["ema optimizer.sgd.lr=0.3"], SEEDS)


def _evaluated_on(recipe: Recipe, **evaluators: Component) -> Recipe:
    return replace(recipe, data=Data(recipe.data.train, evaluators))


@pytest.mark.parametrize(
    ("evaluator", "why"),
    [
        (Component("fashion_mnist_10k", "fashion_mnist_10k", {"split": "test"}), "was evaluated on test data"),
        (Component("py:mylab.d:Points", "points", {}), "points has no splits"),
        (Component("austen", "austen", {"split": "train", "characters": 3_000_000}), "has no such test split"),
    ],
)
def test_data_without_a_split_to_open_say_why(lab: Lab, evaluator: Component, why: str) -> None:
    recipe = _evaluated_on(lab.sweep().recipe, eval=evaluator)
    data, said = held_out(recipe)
    assert data is None
    assert why in said


def test_code_of_ones_own_has_a_test_split_where_it_has_splits(lab: Lab) -> None:
    recipe = _evaluated_on(lab.sweep().recipe, eval=Component("py:mylab.d:Points", "points", {"split": "val"}))
    data, said = held_out(recipe)
    assert (data, said) == (Component("py:mylab.d:Points", "points", {"split": "test"}), "")
    assert held_out_metric(recipe) == "test/accuracy"
    elsewhere = replace(recipe, metrics=replace(recipe.metrics, primary=replace(recipe.metrics.primary, name="loss")))
    assert held_out(elsewhere)[0] is None
