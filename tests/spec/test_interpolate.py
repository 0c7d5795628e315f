"""References: what they take over, and how a wrong one is answered."""

from __future__ import annotations

import pytest

from tests.spec.lab import RECIPE, Lab, changed


def test_references_take_over_type_and_value(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_LR", "1e-2")
    recipe = lab.recipe(
        changed(
            RECIPE,
            ("vars: {lr: 0.2}", 'vars: {lr: "${env:LAB_LR,3}", n: 3, again: "${vars.lr}"}'),
            ('lr: "${vars.lr}"', 'lr: "${vars.again}", dampening: "${.weight_decay}"'),
            ("nesterov: true", "nesterov: false"),
            ("max_duration: 2ep", "max_duration: ${vars.n}ep"),
            ("eval_interval: 0.125ep", "eval_interval: ${.max_duration}"),
            ("seed: 17", "seed: ${data.train.fashion_mnist_10k.batch_size}"),
        )
    )
    assert (recipe.optimizer.settings["lr"], recipe.optimizer.settings["dampening"]) == (0.01, 0.0005)
    assert (str(recipe.trainer.max_duration), str(recipe.trainer.eval_interval)) == ("3ep", "3ep")
    assert recipe.seed == 128


def test_defaults_of_the_environment_are_used_where_it_is_silent(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_SEED", raising=False)
    assert lab.recipe(changed(RECIPE, ("seed: 17", 'seed: "${env:LAB_SEED,23}"'))).seed == 23


def test_a_map_can_be_referred_to(lab: Lab) -> None:
    recipe = lab.recipe(changed(RECIPE, ("  eval: {fashion_mnist_10k: {split: validation, batch_size: 500}}",
                                         '  eval: "${data.train}"')))  # fmt: skip
    assert recipe.data.eval == {"eval": recipe.data.train}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('"${vars.lrr}"', "${vars.lrr}: unknown name 'lrr'; did you mean 'lr'? there are: lr"),
        ('"${.lr}"', "${.lr} leads back to itself"),
        ('"${env:LAB_NOT_SET}"', "environment variable LAB_NOT_SET is not set and has no default"),
        ('"${env:1}"', "must be ${env:NAME} or ${env:NAME,default}"),
        ('"${vars.lr"', "${ is not closed by }"),
        ('"${vars.lr.x}"', "'lr' holds no further names"),
        ('"x${vars}"', "${vars} is no single value and cannot be part of a text"),
        ('"${vars.word}"', "must be a number, but got abc"),
    ],
)
def test_wrong_references_are_said_once(lab: Lab, value: str, message: str) -> None:
    said = lab.recipe_problems(changed(RECIPE, ('"${vars.lr}"', value), ("vars: {", "vars: {word: abc, ")))
    assert len(said) == 1
    assert message in said[0]
    assert said[0].startswith("recipes/fashion_resnet.yaml:8:23: optimizer.sgd.lr: ")


def test_references_cannot_explode_or_run_in_circles(lab: Lab) -> None:
    chain = ", ".join(f'v{i}: "${{vars.v{i + 1}}}${{vars.v{i + 1}}}"' for i in range(40))
    said = lab.recipe_problems(
        changed(RECIPE, ("vars: {", f"vars: {{{chain}, v40: aaaa, "), ("seed: 17", 'seed: "${vars.v0}"'))
    )
    assert "references" in said[0]
    circle = changed(RECIPE, ("vars: {", 'vars: {a: "${vars.b}", b: "${vars.a}", '), ("seed: 17", 'seed: "${vars.a}"'))
    assert "leads back to itself" in lab.recipe_problems(circle)[0]
