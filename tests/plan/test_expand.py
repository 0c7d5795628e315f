"""Run order, roles, blocks and ids."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter

import pytest

from expkit.errors import SpecError
from expkit.plan.expand import baseline_trial, expand, slots
from expkit.spec.files import load_recipe
from expkit.spec.identity import trial_id
from tests.spec.lab import GOLDEN, RECIPE, SWEEP, Lab, changed


def test_every_block_holds_each_arm_once_and_the_baseline_twice(lab: Lab) -> None:
    cells = list(expand(lab.sweep()))
    for block in range(5):
        mine = [c for c in cells if c.block == block]
        assert {c.trial.seed for c in mine} == {17 + block}
        assert Counter(c.role for c in mine) == {"arm": 7, "baseline": 1, "repeat": 1}
        first, repeat = (next(c for c in mine if c.role == role) for role in ("baseline", "repeat"))
        assert first.trial == repeat.trial
        assert (first.replicate, repeat.replicate) == (0, 1)
        assert [c.position for c in mine] == list(range(9 * block, 9 * block + 9))
    assert len({(c.trial.id, c.replicate) for c in cells}) == 45


def test_the_order_is_random_within_blocks_and_drawn_from_its_seed(lab: Lab) -> None:
    def order(text: str) -> list[str]:
        return [cell.trial.arm for cell in expand(lab.sweep(text))]

    other = changed(SWEEP, ("blocked_random, seed: 0", "blocked_random, seed: 1"))
    assert order(SWEEP) == order(SWEEP)
    assert order(SWEEP) != order(other)
    assert Counter(order(SWEEP)) == Counter(order(other))
    ids = {cell.trial.id for cell in expand(lab.sweep(SWEEP))}
    assert ids == {cell.trial.id for cell in expand(lab.sweep(other))}  # user report 28: order not in id


def test_a_trial_is_what_its_recipe_would_be_alone(lab: Lab) -> None:
    cell = next(c for c in expand(lab.sweep(GOLDEN)) if c.trial.arm == "colout[p_row=0.15] optimizer.sgd.lr=2.0")
    text = changed(RECIPE, ("algorithms: {}", "algorithms: {colout: {p_row: 0.15, p_col: 0.15}}"))
    path = lab.write("recipes/alone.yaml", text)
    alone = load_recipe(path, overrides=["optimizer.sgd.lr=2", f"seed={cell.trial.seed}"])
    assert trial_id(alone) == cell.trial.id
    assert cell.trial.id12 == cell.trial.id[:12]
    assert alone == cell.trial.recipe
    assert cell.trial.parameters == {"optimizer.sgd.lr": 2.0}


def test_a_parameter_reaches_what_refers_to_it(lab: Lab) -> None:
    recipe = changed(RECIPE, ("weight_decay: 5e-4", 'weight_decay: "${.lr}"'))
    text = changed(SWEEP, ("set: {}", "parameters: {vars.lr: [0.5, 1]}"))
    text = changed(text, ("ema: {half_life: 12ba}", 'nasty: {number: "${optimizer.sgd.lr}"}'))
    found = {
        (
            c.trial.parameters["vars.lr"],
            s["lr"],
            s["weight_decay"],
            c.trial.recipe.algorithms["nasty"].settings["number"],
        )
        for c in expand(lab.sweep(text, recipe))
        if "nasty" in c.trial.algorithms and (s := c.trial.recipe.optimizer.settings)
    }
    assert found == {(0.5, 0.5, 0.5, 0.5), (1, 1.0, 1.0, 1.0)}


def test_a_value_that_fits_only_with_others_is_said_when_it_is_reached(lab: Lab) -> None:
    recipe = changed(RECIPE, ("nesterov: true", "nesterov: false"))
    text = changed(
        SWEEP, ("set: {}", "parameters: {optimizer.sgd.nesterov: [false, true], optimizer.sgd.momentum: [0.9, 0.0]}")
    )
    with pytest.raises(SpecError, match="nesterov"):
        list(expand(lab.sweep(text, recipe)))


def test_pilots_are_baselines_on_seeds_of_their_own(lab: Lab) -> None:
    trial = baseline_trial(lab.sweep(GOLDEN), 2**31 + 5)
    assert (trial.arm, trial.seed, trial.recipe.seed) == ("none optimizer.sgd.lr=1.0", 2**31 + 5, 2**31 + 5)


def test_expansion_is_lazy_and_a_million_points_take_seconds_and_no_memory(lab: Lab) -> None:
    sweep = lab.sweep(overrides=["seeds.count=100000"])
    next(expand(sweep))
    tracemalloc.start()
    num = sum(1 for slot, _ in zip(slots(sweep), range(20_000), strict=False))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert num == 20_000
    assert peak < 2_000_000
    start = time.process_time()
    num = sum(1 for slot, _ in zip(slots(sweep), range(100_000), strict=False))
    assert (time.process_time() - start) / num < 10e-6


def test_ids_cost_at_most_60_microseconds(lab: Lab) -> None:
    sweep = lab.sweep(overrides=["seeds.count=500"])
    best = 1.0
    for _ in range(3):
        start = time.process_time()
        num = sum(1 for _ in expand(sweep))
        best = min(best, (time.process_time() - start) / num)
    assert best < 60e-6
