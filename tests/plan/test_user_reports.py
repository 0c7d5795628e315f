"""What users of such tools reported of expansion: each row a test with its number."""

from __future__ import annotations

from expkit.plan.count import count
from expkit.plan.expand import expand
from tests.plan.test_count import EMPTY
from tests.plan.test_union import whole
from tests.spec.lab import GOLDEN, SWEEP, Lab, changed


def test_row_19_a_new_seed_or_method_leaves_the_old_ids(lab: Lab) -> None:
    before = {cell.trial.id for cell in expand(lab.sweep())}
    seeds = {cell.trial.id for cell in expand(lab.sweep(overrides=["seeds.count=6"]))}
    more = changed(SWEEP, ("{label_smoothing: {}", "{nasty: {}, label_smoothing: {}"))
    methods = {cell.trial.id for cell in expand(lab.sweep(more))}
    assert before < seeds
    assert before < methods
    assert (len(seeds - before), len(methods - before)) == (8, 40)


def test_row_20_paired_values(lab: Lab) -> None:
    pairs = "zip: [{optimizer.sgd.lr: [0.1, 0.2, 0.4], trainer.max_duration: [3ep, 2ep, 1ep]}]\n"
    assert whole(lab.sweep(EMPTY + pairs)).trials == 3 * 2
    uneven = changed(pairs, ("[3ep, 2ep, 1ep]", "[3ep, 2ep]"))
    (said,) = lab.sweep_problems(EMPTY + uneven)
    assert said.startswith("sweeps/ablate.yaml:5:7: zip.0: ")
    assert "optimizer.sgd.lr has 3 and trainer.max_duration has 2" in said


def test_row_21_conditional_forbidden_and_tied_combinations(lab: Lab) -> None:
    assert count(lab.sweep(GOLDEN)).trials == 168
    text = EMPTY + (
        "parameters:\n"
        "  optimizer: [{sgd: {}}, {adamw: {lr: 1e-3}}]\n"
        "  data.train.fashion_mnist_10k.batch_size: [64, 128]\n"
        "exclude:\n"
        "  - {when: \"optimizer == 'sgd' and data.train.fashion_mnist_10k.batch_size != 128\"}\n"
        '  - {when: "optimizer.adamw.lr != null and data.train.fashion_mnist_10k.batch_size == 128"}\n'
    )
    sweep = lab.sweep(text)
    assert whole(sweep).trials == 2 * 2
    found = {(c.trial.recipe.optimizer.name, c.trial.recipe.data.train.settings["batch_size"]) for c in expand(sweep)}
    assert found == {("sgd", 128), ("adamw", 64)}


def test_row_21_a_setting_tied_to_its_sibling_level_by_level(lab: Lab) -> None:
    sweep = lab.sweep(EMPTY + 'ablate: {candidates: {colout: {p_row: [0.1, 0.15], p_col: "${.p_row}"}}}\n')
    on = [c.trial.recipe.algorithms["colout"].settings for c in expand(sweep) if c.trial.algorithms]
    assert {(s["p_row"], s["p_col"]) for s in on} == {(0.1, 0.1), (0.15, 0.15)}


def test_row_23_methods_that_exclude_each_other_are_no_set_unless_allowed(lab: Lab) -> None:
    plain = EMPTY + "ablate: {candidates: {mixup: {}, cutmix: {}}}\n"
    counted = whole(lab.sweep(plain))
    assert (counted.sets, counted.trials) == (3, 6)
    assert [removed.rule for removed in counted.removed] == ["declared conflict mixup-cutmix"]
    allowed = lab.sweep(EMPTY + "ablate: {candidates: {mixup: {}, cutmix: {}}, allow: [[mixup, cutmix]]}\n")
    assert whole(allowed).sets == 4
    both = next(c.trial for c in expand(allowed) if c.trial.arm == "cutmix+mixup")
    assert both.recipe.allow == (("cutmix", "mixup"),)
