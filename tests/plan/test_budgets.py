"""`budgets`: every arm at every ratio."""

from __future__ import annotations

import pytest

from expkit.analysis.budgets import budget_of
from expkit.plan.expand import baseline_trial, expand
from tests.plan.test_count import EMPTY, agrees
from tests.plan.test_union import EMA, whole
from tests.spec.lab import Lab

BUDGETS = "budgets: {ssr: [0.25, 1, 0.5]}\n"


def test_every_arm_runs_at_every_budget_and_the_report_reads_them(lab: Lab) -> None:
    sweep = lab.sweep(EMPTY + EMA + BUDGETS + "parameters: {optimizer.sgd.lr: [0.1, 0.2]}\n")
    counted = whole(sweep)
    assert [step.text for step in counted.steps][2] == "3 budgets of trainer.ssr (0.25, 1.0, 0.5): points"
    assert (counted.trials, counted.blocks) == (2 * 2 * 3 * 2, 2 * 3 * 2)
    trials = {cell.trial.arm: cell.trial for cell in expand(sweep)}
    assert {budget_of(arm) for arm in trials} == {
        (f"{on} optimizer.sgd.lr={lr}", ssr) for on in ("none", "ema") for lr in (0.1, 0.2) for ssr in (0.25, 0.5, 1.0)
    }
    assert all(trial.recipe.trainer.ssr == budget_of(arm)[1] for arm, trial in trials.items())


def test_pilots_run_at_the_longest_budget(lab: Lab) -> None:
    trial = baseline_trial(lab.sweep(EMPTY + EMA + BUDGETS), 2**31)
    assert trial.recipe.trainer.ssr == 1.0


def test_budgets_hold_in_every_grid_and_for_what_is_included(lab: Lab) -> None:
    grids = "grids: [{parameters: {optimizer.sgd.lr: [0.1]}}, {parameters: {optimizer.sgd.lr: [0.2]}}]\n"
    include = "include: [{algorithms: {label_smoothing: {}}, parameters: {optimizer.sgd.lr: 0.1}, seeds: [17]}]\n"
    counted = whole(lab.sweep(EMPTY + EMA + BUDGETS + grids + include))
    assert counted.trials == 2 * 2 * 3 * 2 + 3
    own = include.replace("0.1}", "0.1, trainer.ssr: 4}")
    assert whole(lab.sweep(EMPTY + EMA + BUDGETS + grids + own)).trials == 2 * 2 * 3 * 2 + 2


def test_spellings_of_one_ratio_are_one_and_overrides_reach_it(lab: Lab) -> None:
    assert agrees(lab.sweep(EMPTY + "budgets: {ssr: [1, 1.0, 0.5]}\n")).trials == 4
    assert agrees(lab.sweep(EMPTY + BUDGETS, overrides=["budgets.ssr=[2]"])).trials == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budgets: [0.5]", "5:10: budgets: must be a map of ratios such as {ssr: [0.25, 0.5, 1.0]}, but got a list"),
        ("budgets: {epochs: [1]}", "budgets: must be a map of ratios such as {ssr: [0.25, 0.5, 1.0]}"),
        ("budgets: {ssr: 0.5}", "5:16: budgets.ssr: must be a list of values, but got 0.5"),
        ("budgets: {ssr: []}", "budgets.ssr: must have at least one value"),
        ("budgets: {ssr: [0.5, x]}", "5:22: budgets.ssr.1: must be a number"),
        ("budgets: {ssr: [0]}", "must be a number greater than 0, but got 0"),
        ("budgets: {ssr: [1]}\nparameters: {trainer.ssr: [2]}", "budgets.ssr: trainer.ssr has its values in another"),
        ("budgets: {ssr: [1]}\nzip: [{trainer.ssr: [2], optimizer.sgd.lr: [1]}]", "has its values in another place"),
        ("budgets: {ssr: [1]}\ngrids: [{parameters: {trainer.ssr: [2]}}]", "has its values in another place"),
    ],
)
def test_what_is_refused(lab: Lab, text: str, message: str) -> None:
    said = lab.sweep_problems(EMPTY + f"{text}\n")
    assert any(message in line for line in said), said
