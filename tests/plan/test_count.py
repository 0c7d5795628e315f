"""The arithmetic, checked against numbers worked out by hand and against the enumeration."""

from __future__ import annotations

import time

import pytest

from expkit.errors import SpecError
from expkit.plan.count import count
from expkit.plan.designs import LISTED, SIZES
from expkit.plan.expand import expand, slots
from expkit.plan.trial import Arithmetic
from expkit.spec import sweep_keys
from expkit.spec.sweep import Sweep
from tests.spec.lab import GOLDEN, RECIPE, SWEEP, Lab, changed

EMPTY = "version: 1\nname: s\nrecipe: fashion_resnet\nseeds: 2\n"


def agrees(sweep: Sweep) -> Arithmetic:
    """Counting and enumerating say the same."""
    counted = count(sweep)
    found = list(slots(sweep))
    assert len(found) == counted.replicates
    assert sum(slot.role == "repeat" for slot in found) == counted.repeats
    assert len({slot.block for slot in found}) == counted.blocks
    sets = {frozenset(level.label.split("[")[0] for level in slot.arm.levels) for slot in found}
    assert len(sets) == counted.sets
    assert [slot.position for slot in found] == list(range(len(found)))
    return counted


def test_the_golden_count_is_168(lab: Lab) -> None:
    counted = agrees(lab.sweep(GOLDEN))
    assert [step.count for step in counted.steps] == [32, 48, 32, 64, 56, 168]
    assert (counted.sets, counted.trials, counted.repeats) == (24, 168, 6)
    assert [(r.rule, r.because, r.count) for r in counted.removed] == [
        ("conflict selective_backprop-colout", "the loss of a dropped row says nothing", 16),
        ("exclude has('selective_backprop') and optimizer.sgd.lr > 1.5", "it diverges there", 8),
    ]
    assert len({cell.trial.id for cell in expand(lab.sweep(GOLDEN))}) == 168


def test_the_shipped_sweep_has_8_sets_40_trials_45_replicates(lab: Lab) -> None:
    counted = agrees(lab.sweep())
    assert (counted.sets, counted.trials, counted.repeats, counted.replicates) == (8, 40, 5, 45)


@pytest.mark.parametrize(
    ("ablate", "sets", "trials"),
    [
        ("{candidates: [ema, label_smoothing], always: [nasty]}", 5, 10),  # the baseline, bare, is added
        ("{candidates: [ema, label_smoothing], always: [nasty], baseline: [nasty]}", 4, 8),
        ("{candidates: [ema, label_smoothing], always: [ema]}", 3, 6),
        ("{candidates: [ema, label_smoothing], always: [ema], baseline: [ema]}", 2, 4),
        ("{candidates: [ema, label_smoothing], baseline: [nasty, ema]}", 5, 10),
        ("{candidates: {colout: {p_row: [0.1, 0.2], p_col: [0.1, 0.2]}}}", 2, 10),
        ("{candidates: {colout: {p_row: [0.1, 0.2]}}, baseline: ['colout[p_row=0.1]']}", 2, 6),
        ("{candidates: [ema, nasty, colout], constraints: [{conflicts: [ema, nasty, colout]}]}", 4, 8),
        ("{candidates: [ema, nasty], constraints: [{requires: {ema: nasty}}]}", 3, 6),
        ("{candidates: [ema, nasty], constraints: [{requires: {ema: attention}}]}", 2, 4),
        ("{candidates: [ema, nasty], constraints: [{requires: {ema: convolutions}}]}", 4, 8),
        ("{candidates: [ema, nasty, rival]}", 4, 8),  # rival declares what no model here has
        ("{}", 1, 2),
    ],
)
def test_sets(lab: Lab, ablate: str, sets: int, trials: int) -> None:
    with_ema = changed(RECIPE, ("algorithms: {}", "algorithms: {ema: {half_life: 5ba}}"))
    recipe = with_ema if "ema" in ablate else RECIPE
    counted = agrees(lab.sweep(EMPTY + f"ablate: {ablate}\n", recipe))
    assert (counted.sets, counted.trials) == (sets, trials)


def test_what_declarations_remove_is_counted_and_named(lab: Lab) -> None:
    recipe = changed(RECIPE, ("algorithms: {}", "algorithms: {ema: {half_life: 5ba}}"))
    counted = agrees(lab.sweep(EMPTY + "ablate: {candidates: [ema, rival]}\n", recipe))
    assert [(r.rule, r.count) for r in counted.removed] == [
        ("declared conflict ema-rival", 1),
        ("rival declares to require attention", 1),
    ]
    assert "neither the model nor the data provide it" in counted.removed[1].because


def test_a_method_of_the_recipe_is_on_everywhere_unless_it_is_a_candidate(lab: Lab) -> None:
    recipe = changed(RECIPE, ("algorithms: {}", "algorithms: {ema: {half_life: 5ba}, nasty: {whole: 3}}"))
    cells = list(expand(lab.sweep(EMPTY + "ablate: {candidates: {ema: {}, label_smoothing: {}}}\n", recipe)))
    assert {frozenset(c.trial.recipe.algorithms) - {*c.trial.algorithms} for c in cells} == {frozenset({"nasty"})}
    settings = {c.trial.recipe.algorithms["ema"].settings["half_life"] for c in cells if "ema" in c.trial.algorithms}
    assert settings == {"5ba"}  # {} means what the recipe sets for it


def test_conditions_on_levels_and_null(lab: Lab) -> None:
    text = changed(GOLDEN, ("has('selective_backprop') and optimizer.sgd.lr > 1.5", "algorithms.colout.p_row > 0.12"))
    counted = agrees(lab.sweep(text))
    assert [step.count for step in counted.steps] == [32, 48, 32, 64, 48, 144]
    whole_point = changed(GOLDEN, ("has('selective_backprop') and optimizer.sgd.lr > 1.5", "optimizer.sgd.lr > 1.5"))
    counted = agrees(lab.sweep(whole_point))
    assert (counted.trials, counted.blocks) == (96, 3)
    method = changed(GOLDEN, ("has('selective_backprop') and optimizer.sgd.lr > 1.5", "has('selective_backprop')"))
    assert agrees(lab.sweep(method)).sets == 16


def test_a_condition_may_not_take_the_baseline_from_other_arms(lab: Lab) -> None:
    text = changed(GOLDEN, ("has('selective_backprop') and optimizer", "not has('ema') and optimizer"))
    with pytest.raises(SpecError, match=r"yaml:16:12: exclude: removes the baseline none at optimizer.sgd.lr=2.0"):
        count(lab.sweep(text))


def test_a_baseline_that_breaks_a_rule_is_refused(lab: Lab) -> None:
    ablate = "{candidates: [nasty, colout], baseline: [nasty, colout], constraints: [{conflicts: [nasty, colout]}]}"
    with pytest.raises(SpecError, match="the baseline colout\\+nasty breaks a rule: conflict nasty-colout"):
        count(lab.sweep(EMPTY + f"ablate: {ablate}\n"))


def test_a_plan_over_max_trials_is_refused_by_its_count(lab: Lab) -> None:
    text = changed(SWEEP, ("set: {}", "budget: {max_trials: 39}"))
    with pytest.raises(SpecError, match=r":4:1: budget.max_trials: the plan has 40 trials, more than the 39 allowed"):
        count(lab.sweep(text))
    many = ", ".join(f'"py:mylab.m:T{i}": {{}}' for i in range(60))
    sweep = lab.sweep(
        EMPTY + f"ablate: {{candidates: {{{many}}}}}\nbudget: {{max_trials: 9}}\n", trust_imports=["mylab.*"]
    )
    with pytest.raises(SpecError, match="the plan has 2,305,843,009,213,693,952 trials"):
        count(sweep)
    with pytest.raises(SpecError, match="1,152,921,504,606,846,976 configurations, more than the 16,777,216"):
        next(slots(sweep))


def test_a_million_trials_count_in_a_second(lab: Lab) -> None:
    rates = ", ".join(f"{i}.5" for i in range(1, 1001))
    text = changed(GOLDEN, ("[1.0, 2.0]", f"[{rates}]"), ("seeds: 3", "seeds: 40"), ("> 1.5", "> 500"))
    sweep = lab.sweep(text)
    start = time.process_time()
    counted = count(sweep)
    assert counted.trials == (32 * 1000 - 8 * 501) * 40
    assert time.process_time() - start < 1.0


def test_designs_of_files_and_plans_are_the_same() -> None:
    assert {*SIZES, *LISTED} == set(sweep_keys.DESIGNS)
