"""What users of such tools reported of files: each row a test with its number."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from expkit.spec import keys
from expkit.spec.dump import dump_recipe
from expkit.spec.files import load_recipe
from expkit.spec.identity import trial_id
from expkit.spec.sweep_file import load_sweep
from tests.spec.lab import RECIPE, SWEEP, Lab, changed

EMPTY = "version: 1\nname: s\nrecipe: fashion_resnet\n"
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_row_01_a_number_in_exponent_form_is_a_float_and_the_same_trial(lab: Lab) -> None:
    written = ["1e-3", "1E-3", "1.0e-3", "0.001"]
    ids = {trial_id(lab.recipe(changed(RECIPE, ("vars: {lr: 0.2}", f"vars: {{lr: {lr}}}")))) for lr in written}
    assert len(ids) == 1
    (parameter,) = lab.sweep(EMPTY + f"parameters: {{optimizer.sgd.lr: [{', '.join(written)}]}}\n").parameters
    assert parameter.values == (0.001,)


@pytest.mark.parametrize("word", ["off", "on", "no", "yes"])
def test_row_03_a_switch_word_in_a_text_field_is_refused_at_its_line(lab: Lab, word: str) -> None:
    said = lab.recipe_problems(changed(RECIPE, ("algorithms: {}", f"algorithms: {{nasty: {{text: {word}}}}}")))
    assert said[0].startswith("recipes/fashion_resnet.yaml:10:28: algorithms.nasty.text: ")
    assert f"{word} means {'true' if word in ('on', 'yes') else 'false'} to some" in said[0]


@FEW
@given(
    text=st.sampled_from(["no", "012", "1e-3", "null", "on", "~", "1:30", "0x10", "", ".inf"]) | st.text(max_size=20)
)
def test_row_03_what_is_written_loads_as_the_same(lab: Lab, text: str) -> None:
    recipe = lab.recipe()
    component = recipe.model.__class__("py:mylab.m:Net", "net", {"text": text, "list": [text, 1.0, True, None]})
    whole = recipe.__class__(**{**vars(recipe), "model": component})
    path = lab.write("recipes/written.yaml", dump_recipe(whole))
    assert load_recipe(path, trust_imports=["mylab.*"]) == whole


def test_row_04_seed_with_leading_zero_is_refused_by_name(lab: Lab) -> None:
    said = lab.sweep_problems(EMPTY + "seeds: [07, 08, 010]\n")
    assert len(said) == 3
    for line, (word, plain) in zip(said, (("07", "7"), ("08", "8"), ("010", "10")), strict=True):
        assert f"{word} has a leading zero, which some read as octal; write {plain}" in line


def test_row_06_a_key_given_twice_is_refused_with_both_lines(lab: Lab) -> None:
    twice = changed(
        RECIPE, ("optimizer: {sgd: {lr:", "optimizer:\n  sgd:\n    lr: 0.1\n    lr: 0.2\nextra: {sgd: {lr:")
    )
    said = lab.recipe_problems(twice)
    assert any("optimizer.sgd.lr: key 'lr' is given twice, at line 10 and at line 11" in line for line in said), said
    assert lab.recipe_problems(overrides=["trainer.ssr=1", "trainer.ssr=2"]) == [
        "--set:1:1: trainer.ssr: is given twice with --set"
    ]


def test_row_07_an_unknown_key_is_refused_with_the_nearest(lab: Lab) -> None:
    said = lab.recipe_problems(changed(RECIPE, ("algorithms: {}", "algorithms: {label_smoothing: {smothing: 0.1}}")))
    assert "algorithms.label_smoothing.smothing: unknown setting of label_smoothing 'smothing'" in said[0]
    assert "did you mean 'smoothing'?" in said[0]


def test_row_09_inherited_maps_merge_and_lists_replace_and_explain_says_so(lab: Lab) -> None:
    lab.write("recipes/a.yaml", "callbacks: {speed_monitor: {window_size: 3}}\n")
    lab.write(
        "recipes/b.yaml",
        changed(RECIPE, ("callbacks: {speed_monitor: {}, lr_monitor: {}}", "callbacks: {stopper: {}}")),
    )
    child = "version: 1\nname: child\nextends: [b.yaml, a.yaml]\ncallbacks: {lr_monitor: {}}\n"
    recipe = load_recipe(lab.write("recipes/child.yaml", child))
    assert list(recipe.callbacks) == ["lr_monitor", "speed_monitor", "stopper"]
    assert recipe.callbacks["speed_monitor"].settings["window_size"] == 3
    lab.sweep(changed(SWEEP, ("seeds: {count: 5, base: 17}", "seeds: [1, 2, 3]")))
    child = "version: 1\nname: child\nextends: ablate.yaml\nseeds: [9]\n"
    assert load_sweep(lab.write("sweeps/child.yaml", child)).seeds == (9,)
    assert "maps merge by key, lists replace" in keys.text("extends")
    explained = keys.explain("callbacks")
    assert explained is not None
    assert "by name" in explained["text"]


def test_row_10_an_explicit_key_wins_over_a_merged_anchor(lab: Lab) -> None:
    anchor = "vars: {lr: 0.2}", "vars:\n  b: &b {lr: 0.3, momentum: 0.7}"
    merged = 'optimizer: {sgd: {lr: "${vars.lr}", momentum: 0.9,', "optimizer: {sgd: {<<: *b, lr: 0.4,"
    text = changed(RECIPE, anchor, merged)
    recipe = lab.recipe(text)
    assert (recipe.optimizer.settings["lr"], recipe.optimizer.settings["momentum"]) == (0.4, 0.7)


@pytest.mark.parametrize("axis", ["parameters: {optimizer.sgd.lr: [1, 2]}", "optimizer.sgd.lr: [1, 2]", "zip: []"])
def test_row_11_a_preset_may_not_add_axes(lab: Lab, axis: str) -> None:
    recipe = changed(RECIPE, ("presets: {", f"presets: {{wide: {{{axis}}}, "))
    said = lab.sweep_problems(SWEEP, recipe, presets=["wide"])
    assert any("unknown key" in line or "must be a number, but got a list" in line for line in said), said


@pytest.mark.parametrize(("word", "value"), [("null", None), ("8", 8), ("auto", "auto")])
def test_row_15_null_and_others_by_override(lab: Lab, word: str, value: object) -> None:
    recipe = lab.recipe(overrides=[f"trainer.microbatch={word}", "optimizer.sgd.nesterov=true"])
    assert recipe.trainer.microbatch == value
    assert recipe.optimizer.settings["nesterov"] is True
    assert lab.recipe(overrides=["optimizer.sgd.nesterov=false"]).optimizer.settings["nesterov"] is False
