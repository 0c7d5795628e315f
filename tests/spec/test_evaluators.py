"""Several evaluators in a recipe, by label: read, merged, overridden, varied, identified, and refused at their line."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from expkit.duration import Time
from expkit.spec.dump import dump_recipe
from expkit.spec.expressions import parse
from expkit.spec.identity import identity, trial_id
from expkit.spec.keys import explain
from expkit.spec.merge import labelled, normalised
from expkit.spec.reader import read_text
from expkit.spec.recipe import Recipe
from expkit.spec.tree import Map, Mark, Problems, Scalar
from expkit.spec.values import MISSING, value_at
from tests.spec.lab import RECIPE, SWEEP, Lab, changed

ONE = "  eval: {fashion_mnist_10k: {split: validation, batch_size: 500}}"
TWO = """  eval:
    val: {fashion_mnist_10k: {split: validation, batch_size: 500}}
    seen-before: {name: fashion_mnist_10k, split: train, batch_size: 500}"""
SEVERAL = changed(RECIPE, (ONE, TWO), ("eval/accuracy", "val/accuracy"))


def labels(recipe: Recipe) -> dict[str, Any]:
    return {label: component.settings["split"] for label, component in recipe.data.eval.items()}


@pytest.mark.parametrize(("text", "found"), [
    ("{fashion_mnist_10k: {split: validation}}", False),
    ("{fashion_mnist_10k: {}}", False),
    ("{name: fashion_mnist_10k, split: validation}", False),
    ("{fashion_mnist: {split: validation, batch_size: 5}}", False),
    ('{"py:mylab.data:Points": {options: {noise: {}}}}', False),
    ("{fashion_mnist_10k: {}, batch_size: 5}", False),
    ("{val: {fashion_mnist_10k: {}}}", True),
    ("{val: {fashion_mnist: {split: validation}}}", True),
    ("{val: {name: fashion_mnist_10k}}", True),
    ('{val: "${data.train}"}', True),
    ("{name: {fashion_mnist_10k: {}}}", True),
    ("{austen: {austen: {}}, other: {austen: {split: train}}}", True),
    ("{}", False), ("[]", False), ("austen", False),
])  # fmt: skip
def test_one_component_is_told_from_labels(text: str, found: bool) -> None:
    assert labelled(read_text(text, "x.yaml", Problems())) is found


def test_both_forms_of_a_component_stand_under_a_label(lab: Lab) -> None:
    recipe = lab.recipe(SEVERAL)
    assert labels(recipe) == {"seen-before": "train", "val": "validation"}
    assert labels(lab.recipe()) == {"eval": "validation"}
    assert [c.name for c in recipe.components[:4]] == ["resnet", *["fashion_mnist_10k"] * 3]
    assert lab.recipe(yaml.safe_dump(yaml.safe_load(dump_recipe(recipe)))) == recipe


def test_their_labels_are_part_of_an_id_their_order_is_not_and_one_called_eval_is_the_plain_one(lab: Lab) -> None:
    plain, several = trial_id(lab.recipe()), trial_id(lab.recipe(SEVERAL))
    [first, *rest] = TWO.splitlines()
    assert trial_id(lab.recipe(changed(SEVERAL, (TWO, "\n".join([first, *reversed(rest)]))))) == several
    assert trial_id(lab.recipe(changed(SEVERAL, ("seen-before:", "seen:")))) != several != plain
    assert trial_id(lab.recipe(changed(RECIPE, ("eval: {fashion_mnist_10k: {split: validation, batch_size: 500}}",
            "eval: {eval: {fashion_mnist_10k: {split: validation, batch_size: 500}}}")))) == plain  # fmt: skip
    assert set(identity(lab.recipe(SEVERAL))["data"]["eval"]) == {"val", "seen-before"}


def test_an_interval_and_a_number_of_batches_may_be_by_label(lab: Lab) -> None:
    given = changed(SEVERAL, ("eval_interval: 0.125ep", "eval_interval: {val: 0.125ep}"),
                    ("  checkpoint:", "  eval_subset_num_batches: {seen-before: 2}\n  checkpoint:"))  # fmt: skip
    recipe = lab.recipe(given)
    assert recipe.trainer.eval_interval == {"val": Time.parse("0.125ep")}
    assert recipe.trainer.eval_subset_num_batches == {"seen-before": 2}
    assert lab.recipe(dump_recipe(recipe)) == recipe
    spelled = identity(recipe)["trainer"]
    assert (spelled["eval_interval"], spelled["eval_subset_num_batches"]) == ({"val": "0.125ep"}, {"seen-before": 2})
    assert "eval_subset_num_batches" not in identity(lab.recipe(SEVERAL))["trainer"]
    assert trial_id(recipe) != trial_id(lab.recipe(SEVERAL))


def test_files_that_extend_it_merge_by_label(lab: Lab) -> None:
    lab.write("recipes/base.yaml", SEVERAL)
    more = """\
version: 1
name: more
extends: base.yaml
data:
  eval:
    val: {fashion_mnist_10k: {batch_size: 100}}
    rotated: {austen: {split: validation}}
    seen-before: {austen: {split: test}}
"""
    recipe = lab.recipe(more)
    found = {label: (c.name, c.settings["split"], c.settings["batch_size"]) for label, c in recipe.data.eval.items()}
    assert found == {"rotated": ("austen", "validation", 32), "seen-before": ("austen", "test", 32),
                     "val": ("fashion_mnist_10k", "validation", 100)}  # fmt: skip
    plain = changed(more, (more[more.index("  eval:") :], "  eval: {austen: {split: test}}\n"))
    assert labels(lab.recipe(plain + "metrics: {primary: {name: eval/accuracy}}\n")) == {"eval": "test"}


def test_dotted_overrides_reach_one_of_them_and_may_add_another(lab: Lab) -> None:
    reached = lab.recipe(SEVERAL, overrides=["data.eval.val.fashion_mnist_10k.batch_size=7"])
    assert {label: c.settings["batch_size"] for label, c in reached.data.eval.items()} == {"seen-before": 500, "val": 7}
    added = lab.recipe(SEVERAL, overrides=["data.eval.test={fashion_mnist_10k: {split: test}}"])
    assert labels(added) == {"seen-before": "train", "test": "test", "val": "validation"}


@pytest.mark.parametrize(("override", "says"), [
    ("data.eval.vall.fashion_mnist_10k.batch_size=7", "unknown evaluator 'vall'; did you mean 'val'?"),
    ("data.eval.val.austen.batch_size=7", "data.eval.val is 'fashion_mnist_10k' here, not 'austen'; did you mean "
     "data.eval.val.fashion_mnist_10k.batch_size?"),
    ("data.eval.val.batch_size=7", "data.eval.val is 'fashion_mnist_10k' here, not 'batch_size'"),
])  # fmt: skip
def test_an_override_of_what_is_not_there_is_no_new_evaluator(lab: Lab, override: str, says: str) -> None:
    [said] = lab.recipe_problems(SEVERAL, overrides=[override])
    assert says in said


@pytest.mark.parametrize(("pair", "says"), [
    (("name: val/accuracy", "name: vall/accuracy"),
     "recipes/fashion_resnet.yaml:19:19: metrics.primary.name: vall/accuracy: unknown evaluator 'vall'; did you mean "
     "'val'?"),
    (("name: val/accuracy", "name: eval/accuracy"), "eval/accuracy: unknown evaluator 'eval'"),
    (("0.125ep", "{vall: 1ep}"), ":16:25: trainer.eval_interval.vall: unknown evaluator 'vall'; did you mean 'val'?"),
    (("0.125ep", "{val: 0ep}"), "trainer.eval_interval: val must be positive, but got 0ep"),
    (("  checkpoint:", "  eval_subset_num_batches: {val: 0}\n  checkpoint:"),
     "trainer.eval_subset_num_batches: must be a whole number of at least 1, but got 0"),
    (("0.125ep", "{val: soon}"), "trainer.eval_interval.val: 'soon' is not a duration"),
    (("lr_monitor: {}", "early_stopper: {monitor: other/accuracy}"),
     ":13:57: callbacks.early_stopper.monitor: other/accuracy: unknown evaluator 'other'"),
    (("seen-before:", "train:"), ":9:5: data.eval.train: an evaluator cannot be called train, as metrics of the "
     "training data are"),
    (("seen-before:", "se/en:"), ":9:5: data.eval.se/en: the label of an evaluator is made of letters"),
    (("{name: fashion_mnist_10k, split: train, batch_size: 500}", "7"),
     "data.eval.seen-before: must be a component with its settings"),
    (("{name: fashion_mnist_10k,", "{name: fashion_mnist,"), "data.eval.seen-before.fashion_mnist: unknown dataset"),
])  # fmt: skip
def test_what_is_wrong_with_a_label_is_said_at_its_line(lab: Lab, pair: tuple[str, str], says: str) -> None:
    assert any(says in said for said in lab.recipe_problems(changed(SEVERAL, pair)))


@pytest.mark.parametrize("name", ["train/loss", "memory/peak_rss_mem", "accuracy"])
def test_a_primary_that_a_callback_or_training_records_is_no_evaluators(lab: Lab, name: str) -> None:
    given = changed(SEVERAL, ("val/accuracy", name), ("lr_monitor: {}", "memory_monitor: {}"))
    assert lab.recipe(given).metrics.primary.name == name


def test_a_plain_recipe_has_its_one_evaluator(lab: Lab) -> None:
    [said] = lab.recipe_problems(changed(RECIPE, ("eval/accuracy", "val/accuracy")))
    assert said.endswith(
        "metrics.primary.name: val/accuracy: unknown evaluator 'val'; did you mean 'eval'? there are: eval"
    )


def test_values_of_paths_go_through_labels(lab: Lab) -> None:
    recipe, plain = lab.recipe(SEVERAL), lab.recipe()
    assert value_at(recipe, "data.eval.val.fashion_mnist_10k.split") == "validation"
    assert value_at(recipe, "data.eval.val") == value_at(plain, "data.eval") == "fashion_mnist_10k"
    assert value_at(plain, "data.eval.fashion_mnist_10k.split") == "validation"
    for path in ("data.eval.other.fashion_mnist_10k.split", "data.other", "data.eval.val.austen.split"):
        assert value_at(recipe, path) is MISSING
    assert parse(Scalar("at('data.eval.seen-before.fashion_mnist_10k.split') == 'train'", Mark("x", 1, 1)), "when",
                 Problems()) is not None  # fmt: skip


def test_a_sweep_varies_settings_and_whole_components_of_one_evaluator(lab: Lab) -> None:
    varied = SWEEP + "parameters:\n  data.eval.val.fashion_mnist_10k.batch_size: [100, 250]\n"
    sweep = lab.sweep(varied, SEVERAL)
    assert sweep.parameters[0].values == (100, 250)
    whole = SWEEP + "parameters:\n  data.eval.val: [{austen: {split: test}}, {fashion_mnist_10k: {split: test}}]\n"
    inside = whole + "  data.eval.val.austen.batch_size: [8, 16]\n"
    assert lab.sweep(whole, SEVERAL).grids[0].axes.count() == 2
    assert lab.sweep(inside, SEVERAL).grids[0].axes.count() == 3
    [said] = lab.sweep_problems(SWEEP + "parameters: {data.eval.val.fashion_mnist_10k.batch_size: [many]}\n", SEVERAL)
    assert "must be a whole number" in said


def test_normalising_twice_changes_nothing() -> None:
    root = read_text(SEVERAL, "x.yaml", Problems())
    assert isinstance(root, Map)
    assert normalised(normalised(root)) == normalised(root)


def test_what_a_setting_by_label_takes_is_said_in_words() -> None:
    explained = explain("trainer.eval_interval")
    assert explained is not None and explained["kind"] == "key, duration | map of duration"
