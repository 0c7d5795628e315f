"""One id for one trial, however it is spelled; another for whatever changes the mathematics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from expkit.errors import UsageError
from expkit.spec.files import load_recipe
from expkit.spec.identity import Identifier, identity, trial_id
from tests.spec.lab import RECIPE, Lab, NastyDouble, changed

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
METHODS = {"label_smoothing": "{}", "ema": "{half_life: 5ba}", "progressive_resizing": "{}", "colout": "{p_row: 0.1}"}


def id_of(lab: Lab, *pairs: tuple[str, str], overrides: tuple[str, ...] = ()) -> str:
    return trial_id(lab.recipe(changed(RECIPE, *pairs), overrides=overrides))


@FEW
@given(order=st.permutations(sorted(METHODS)))
def test_the_order_of_methods_means_nothing(lab: Lab, order: list[str]) -> None:
    def written(names: list[str]) -> tuple[str, str]:
        return "algorithms: {}", "algorithms: {" + ", ".join(f"{n}: {METHODS[n]}" for n in names) + "}"

    assert id_of(lab, written(order)) == id_of(lab, written(sorted(METHODS)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("optimizer.sgd.lr=1e-3", "optimizer.sgd.lr=0.001"),
        ("optimizer.sgd.lr=1E-3", "optimizer.sgd.lr=1.0e-3"),
        ("trainer.max_duration=90m", "trainer.max_duration=1h30m"),
        ("trainer.max_duration=0.10ep", "trainer.max_duration=0.1ep"),
        ("optimizer.sgd.weight_decay=1", "optimizer.sgd.weight_decay=1.0"),
        ("optimizer.sgd.weight_decay=-0.0", "optimizer.sgd.weight_decay=0"),
        ("optimizer.sgd.dampening=0.0", "name=other"),
        ("metrics.primary.name=eval/f1", "runtime.threads=4"),
        ("metrics.target=0.9", "trainer.checkpoint.keep=last"),
        ("callbacks.speed_monitor.window_size=7", "vars.unused=1"),
        ("trainer.microbatch=null", "seed=17"),
        ("trainer.compile=false", "trainer.activation_checkpointing=[]"),
        ("trainer.compile=true", "trainer.compile=default"),
    ],
)
def test_what_does_not_change_the_mathematics_changes_no_id(lab: Lab, one: str, other: str) -> None:
    base = "callbacks: {speed_monitor: {}, lr_monitor: {}}", "callbacks: {speed_monitor: {}}"
    assert id_of(lab, base, overrides=(one, "optimizer.sgd.nesterov=false")) == id_of(
        lab, overrides=(other, "optimizer.sgd.nesterov=false")
    )


@pytest.mark.parametrize(
    "override",
    [
        "seed=18",
        "model.resnet.depth=14",
        "data.train.fashion_mnist_10k.batch_size=64",
        "data.eval.fashion_mnist_10k.batch_size=100",
        "optimizer.sgd.lr=0.3",
        "optimizer={adamw: {}}",
        "scheduler=null",
        "scheduler.cosine.warmup=0.2dur",
        "algorithms={label_smoothing: {}}",
        "trainer.max_duration=3ep",
        "trainer.ssr=0.5",
        "trainer.precision=amp_bf16",
        "trainer.eval_interval=1ep",
        "trainer.microbatch=32",
        "trainer.compile=true",
        "trainer.compile=max-autotune",
        "trainer.activation_checkpointing=true",
        "trainer.activation_checkpointing=[BasicBlock]",
        "callbacks={stopper: {}}",
        "callbacks={early_stopper: {monitor: eval/accuracy}}",
        "callbacks={threshold_stopper: {monitor: eval/accuracy, threshold: 0.9}}",
    ],
)
def test_every_setting_of_the_mathematics_changes_the_id(lab: Lab, override: str) -> None:
    assert id_of(lab, overrides=(override,)) != id_of(lab)


@FEW
@given(number=st.floats(0, 0.99), whole=st.integers(), other=st.floats(0, 0.99))
def test_another_value_of_any_setting_is_another_trial(lab: Lab, number: float, whole: int, other: float) -> None:
    def with_settings(value: float, count: int) -> str:
        return id_of(lab, ("algorithms: {}", f"algorithms: {{nasty: {{number: {value!r}, whole: {count}}}}}"))

    assert (with_settings(number, whole) == with_settings(other, whole)) == (number == other)
    assert with_settings(number, whole) != with_settings(number, whole + 1)


def test_auto_microbatch_is_in_the_id_only_where_it_could_matter(lab: Lab) -> None:
    mlp = "model: {resnet: {depth: 8, width: 8, stem_stride: 2, num_classes: 10, in_channels: 1}}", "model: {mlp: {}}"
    auto = ("trainer.microbatch=auto",)
    assert id_of(lab, mlp) == id_of(lab, mlp, overrides=auto)
    inexact = "algorithms={selective_backprop: {}}"
    assert id_of(lab, mlp, overrides=(inexact,)) != id_of(lab, mlp, overrides=(inexact, *auto))
    assert id_of(lab) != id_of(lab, overrides=auto)  # the network has batch statistics
    assert id_of(lab, mlp) != id_of(lab, mlp, overrides=("trainer.microbatch=32",))


def test_true_is_never_one(lab: Lab) -> None:
    def anything(value: str) -> str:
        return id_of(lab, ("algorithms: {}", f"algorithms: {{nasty: {{anything: {value}}}}}"))

    assert len({anything(value) for value in ("true", "1", "'1'", "null")}) == 4


def test_a_plugins_version_is_in_the_id(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    method = "algorithms: {}", "algorithms: {nasty: {}}"
    before = id_of(lab, method)
    monkeypatch.setattr(NastyDouble, "version", 2)
    assert id_of(lab, method) != before


def test_a_path_enters_as_its_content(lab: Lab) -> None:
    lab.write("recipes/a.bin", "same")
    lab.write("recipes/b.bin", "same")

    def weights(name: str) -> str:
        return id_of(lab, ("algorithms: {}", f"algorithms: {{nasty: {{weights: {name}}}}}"))

    assert weights("a.bin") == weights("b.bin") == weights("../recipes/a.bin")
    lab.write("recipes/b.bin", "other")
    assert weights("a.bin") != weights("b.bin")
    lab.write("recipes/folder/x", "1")
    lab.write("recipes/folder2/x", "1")
    assert weights("folder") == weights("folder2")
    with pytest.raises(UsageError, match="its content is part of the trial's id"):
        weights("missing.bin")


def test_own_code_enters_as_written(lab: Lab) -> None:
    def own(settings: str, **options: Any) -> str:
        text = changed(RECIPE, ("algorithms: {}", f'algorithms: {{"py:mylab.m:Trick": {{{settings}}}}}'))
        return trial_id(lab.recipe(text, trust_imports=["mylab.*"], **options))

    assert own("rate: 1e-3") == own("rate: 0.001")
    assert own("rate: 1") != own("rate: 1.0")  # its types are unknown here


def test_the_parts_put_together_are_plain_sorted_json(lab: Lab) -> None:
    import hashlib
    import json

    recipe = lab.recipe(
        changed(RECIPE, ("algorithms: {}", "algorithms: {nasty: {number: -0.0, text: 'ü'}, ema: {half_life: 5ba}}"))
    )
    document = identity(recipe)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert Identifier().text_of(recipe) == text
    assert trial_id(recipe) == hashlib.sha256(text.encode()).hexdigest()
    assert document["algorithms"]["nasty"]["settings"]["number"] == 0.0
    assert document["trainer"] == {"eval_interval": "0.125ep", "max_duration": "2ep", "precision": "fp32", "ssr": 1.0}
    assert not {"name", "metrics", "runtime"} & document.keys()


def test_the_shipped_recipe_is_the_trial_that_it_was() -> None:
    """Its results stay found: change it only with a plug-in's `version` or settings, and say so in the changelog."""
    recipe = load_recipe(Path(__file__).parents[2] / "recipes" / "fashion_resnet.yaml")
    assert trial_id(recipe) == "34814c93666aa86537ceaa907d35afbd9c6107499a475245db37d6e1239fdeca"


def test_a_pair_that_is_allowed_is_in_the_recipe_and_not_in_its_id(lab: Lab) -> None:
    methods = "algorithms: {}", "algorithms: {mixup: {}, cutmix: {}}"
    said = lab.recipe_problems(changed(RECIPE, methods))
    assert said[0].endswith("cannot be used together with cutmix; allow: [[cutmix, mixup]] lifts that")
    recipe = lab.recipe(changed(RECIPE, methods, ("seed: 17", "seed: 17\nallow: [[mixup, cutmix], [ema, mixup]]")))
    assert recipe.allow == (("cutmix", "mixup"),)
    assert "allow" not in identity(recipe)
