"""What is written loads to an equal recipe (user report 3: a saved 'no' that came back as false)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from expkit.spec.dump import dump_recipe, dump_tree
from expkit.spec.files import load_recipe
from expkit.spec.recipe import Component
from tests.spec.lab import RECIPE, Lab, changed

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def there_and_back(lab: Lab, text: str) -> None:
    recipe = lab.recipe(text)
    again = load_recipe(lab.write("again.yaml", dump_recipe(recipe)), trust_imports=["mylab.*"])
    assert again == recipe


def test_a_recipe_comes_back(lab: Lab) -> None:
    there_and_back(lab, RECIPE)
    there_and_back(lab, changed(RECIPE, ("algorithms: {}", "algorithms: {colout: {p_row: 0.1}, nasty: {span: 1h30m}}")))
    there_and_back(lab, changed(RECIPE, ("target: {pilot: {seeds: 5, rule: lowest_final}}", "target: 0.91")))
    there_and_back(lab, changed(RECIPE, ("scheduler: {cosine: {warmup: 0.1dur}}", "scheduler: null")))


@FEW
@given(value=JSON)
@example("no")
@example("012")
@example("1e-3")
@example("null")
@example("${vars.x} $${ ${")
@example("a\nb\r\x85\u2028\ufeff\x7f\U0001f600\\ \"'")
@example({"": -0.0, "${": float("inf"), "<<": "<<"})
@example({"true": True, "1:30": 10**30, "~": [1e300, 1e-7, 1e22]})
def test_any_value_of_own_code_comes_back(lab: Lab, value: Any) -> None:
    recipe = lab.recipe()
    odd = Component("py:mylab.nets:Net", "my_net", {"value": value, "a-b": value})
    recipe = replace(recipe, model=odd, algorithms={"odd": Component("py:mylab.m:Odd", "odd", {"v": value})})
    again = load_recipe(lab.write("again.yaml", dump_recipe(recipe)), trust_imports=["mylab.*"])
    assert again == recipe
    assert repr(again) == repr(recipe)  # 1 is not 1.0, true is not 1


@FEW
@given(text=st.text())
@example("off")
@example("None")
@example("08")
def test_any_text_of_a_text_field_comes_back(lab: Lab, text: str) -> None:
    recipe = lab.recipe(changed(RECIPE, ("algorithms: {}", "algorithms: {nasty: {}}")))
    nasty = recipe.algorithms["nasty"]
    recipe = replace(
        recipe, algorithms={"nasty": replace(nasty, settings={**nasty.settings, "text": text, "maybe": text})}
    )
    assert load_recipe(lab.write("again.yaml", dump_recipe(recipe))) == recipe


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_written_as_yaml_has_them(value: float) -> None:
    assert dump_tree({"a": value}) in ("a: .nan\n", "a: .inf\n", "a: -.inf\n")
