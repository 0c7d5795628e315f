"""A word means what its field says; the words that mean something else to others are refused (user reports 1, 3, 4)."""

from __future__ import annotations

from typing import Any

import pytest

from expkit.spec.dump import recipe_to_json
from tests.spec.lab import RECIPE, Lab, changed


def nasty(lab: Lab, settings: str) -> dict[str, Any]:
    recipe = lab.recipe(changed(RECIPE, ("algorithms: {}", f"algorithms: {{nasty: {{{settings}}}}}")))
    return dict(recipe.algorithms["nasty"].settings)


def refused(lab: Lab, settings: str) -> str:
    return "\n".join(lab.recipe_problems(changed(RECIPE, ("algorithms: {}", f"algorithms: {{nasty: {{{settings}}}}}"))))


@pytest.mark.parametrize(
    ("settings", "key", "value"),
    [
        ("number: 1e-3", "number", 0.001),
        ("number: 1E-3", "number", 0.001),
        ("number: 1.0e-3", "number", 0.001),
        ("number: 3", "number", 3.0),
        ("text: 67217e15", "text", "67217e15"),
        ("text: true", "text", "true"),
        ("text: 'off'", "text", "off"),
        ("text: '010'", "text", "010"),
        ("text: 'None'", "text", "None"),
        ("text: 'null'", "text", "null"),
        ("flag: on", "flag", True),
        ("flag: No", "flag", False),
        ("whole: 0x10", "whole", 16),
        ("whole: -3", "whole", -3),
        ("maybe: null", "maybe", None),
        ("maybe: 1e3", "maybe", "1e3"),
        ("span: 1h30m", "span", "5400sec"),
        ("words: [1, b]", "words", ["1", "b"]),
        ("table: {a: 1}", "table", {"a": 1.0}),
        ("anything: '.inf'", "anything", ".inf"),
        ("anything: [1, 2.5, x, null, true, '1']", "anything", [1, 2.5, "x", None, True, "1"]),
    ],
)
def test_words_are_typed_by_their_field(lab: Lab, settings: str, key: str, value: Any) -> None:
    found = nasty(lab, settings)[key]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("text: off", "off means false to some; write true or false, or quote it if it is text"),
        ("anything: yes", "yes means true to some"),
        ("whole: 010", "010 has a leading zero, which some read as octal; write 10, or quote it if it is text"),
        ("text: 0555567", "0555567 has a leading zero"),
        ("whole: 08", "08 has a leading zero"),
        ("text: 1:30", "1:30 is read as a number by some"),
        ("maybe: None", "None is Python's word; write null, or quote it if it is text"),
        ("number: '0.5'", "must be a number, but got the text '0.5'; without the quotes it would be a number"),
        ("number: abc", "must be a number, but got abc"),
        ("number: 1e999", "must be a number, but got 1e999"),
        ("whole: 1.5", "must be a whole number, but got 1.5"),
        ("whole: true", "must be a whole number, but got true"),
        ("flag: 1", "must be true or false, but got 1"),
        ("text: null", "must be text, but got null"),
        ("text: [a]", "must be text, but got a list"),
        ("number: .inf", "algorithms.nasty.number: must be a finite number"),
        ("anything: [1, .nan]", "algorithms.nasty.anything: must be a finite number"),
        ("span: 5", "'5' is not a duration"),
        ("words: a", "must be a list, but got a"),
        ("table: {a: x}", "algorithms.nasty.table.a: must be a number, but got x"),
        ("whol: 1", "unknown setting of nasty 'whol'; did you mean 'whole'? there are: anything, flag,"),
    ],
)
def test_what_does_not_fit_is_said_in_plain_words(lab: Lab, settings: str, message: str) -> None:
    said = refused(lab, settings)
    assert message in said
    assert "recipes/fashion_resnet.yaml:10:" in said
    assert "pydantic" not in said


def test_limits_are_said_without_jargon(lab: Lab) -> None:
    said = lab.recipe_problems(
        changed(
            RECIPE,
            ("momentum: 0.9", "momentum: 1.5"),
            ("depth: 8", "depth: 7.5"),
            ("max_duration: 2ep", "max_duration: 2ep\n  ssr: -1\n  microbatch: 0\n  precision: fp8"),
        )
    )
    assert said == [
        "recipes/fashion_resnet.yaml:4:25: model.resnet.depth: must be a whole number, but got 7.5",
        "recipes/fashion_resnet.yaml:8:47: optimizer.sgd.momentum: must be a number less than 1, but got 1.5",
        "recipes/fashion_resnet.yaml:14:8: trainer.ssr: must be a number greater than 0, but got -1",
        "recipes/fashion_resnet.yaml:15:15: trainer.microbatch: must be a whole number of at least 1, but got 0",
        "recipes/fashion_resnet.yaml:16:14: trainer.precision: must be 'fp32', 'amp_bf16' or 'amp_fp16', but got fp8",
    ]


def test_a_target_is_a_number_a_pilot_or_null(lab: Lab) -> None:
    pilot = "target: {pilot: {seeds: 5, rule: lowest_final}}"
    assert recipe_to_json(lab.recipe(changed(RECIPE, (pilot, "target: 0.9"))))["metrics"]["target"] == 0.9
    assert lab.recipe(changed(RECIPE, (pilot, "target: null"))).metrics.target is None
    assert (
        "unknown form 'pilott'; did you mean 'pilot'?"
        in lab.recipe_problems(changed(RECIPE, ("{pilot: {seeds", "{pilott: {seeds")))[0]
    )
    assert (
        "must be a whole number of at least 2, but got 1"
        in lab.recipe_problems(changed(RECIPE, ("seeds: 5", "seeds: 1")))[0]
    )
