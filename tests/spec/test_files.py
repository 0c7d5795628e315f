"""Recipe files: what they extend, what overrides them, how they are found, and what is said of all that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.errors import SpecError
from expkit.spec.files import find_file, load_recipe
from expkit.spec.sweep_file import load_sweep
from tests.spec.lab import DOUBLES, RECIPE, SWEEP, Lab, RivalDouble, changed


def test_a_recipe_has_every_default_filled_in(lab: Lab) -> None:
    recipe = lab.recipe()
    assert recipe.optimizer.settings == {
        "lr": 0.2,
        "momentum": 0.9,
        "weight_decay": 0.0005,
        "nesterov": True,
        "dampening": 0.0,
    }
    assert str(recipe.trainer.max_duration) == "2ep"
    assert recipe.trainer.precision == "fp32"
    assert list(recipe.callbacks) == ["lr_monitor", "speed_monitor"]


def test_both_forms_of_a_component_are_one(lab: Lab) -> None:
    other = changed(
        RECIPE,
        ("model: {resnet: {depth: 8,", "model: {name: resnet, depth: 8,"),
        ("in_channels: 1}}", "in_channels: 1}"),
    )
    assert lab.recipe(other) == lab.recipe()


def test_all_problems_of_a_file_at_once_in_order(lab: Lab) -> None:
    said = lab.recipe_problems(
        changed(
            RECIPE,
            ("model: {resnet: {depth: 8", "modle: {}\nmodel: {resnet: {dept: 8"),
            ("optimizer: {sgd", "optimizer: {sgdd"),
            ("seed: 17", "seed: 010"),
            ("callbacks: {speed_monitor: {}", "callbacks: {speed_monitr: {}"),
        )
    )
    assert [line.split(": ", 2)[1] for line in said] == [
        "modle",
        "model.resnet.dept",
        "optimizer.sgdd",
        "callbacks.speed_monitr",
        "seed",
    ]
    assert "unknown key 'modle'; did you mean 'model'? there are: algorithms, allow, callbacks" in said[0]
    assert "unknown optimizer 'sgdd'; did you mean 'sgd'? there are: adamw, " in said[2]


def test_missing_keys_are_required(lab: Lab) -> None:
    said = lab.recipe_problems("name: x\n")
    assert [line.partition(": ")[2] for line in said] == [
        f"{key}: is required" for key in ("data", "metrics", "model", "optimizer", "trainer", "version")
    ]


def test_extends_merges_maps_and_replaces_components(lab: Lab) -> None:
    lab.write("recipes/base.yaml", changed(RECIPE, ("algorithms: {}", "algorithms: {ema: {half_life: 5ba}}")))
    lab.write("recipes/other.yaml", "optimizer: {sgd: {lr: 0.5}}\ntrainer: {ssr: 0.5}\n")
    child = lab.write(
        "recipes/child.yaml",
        "version: 1\nname: child\nextends: [base.yaml, other.yaml]\n"
        "scheduler: {linear: {}}\nalgorithms: {label_smoothing: {}}\nmodel: {resnet: {width: 4}}\n",
    )
    recipe = load_recipe(child)
    assert recipe.name == "child"
    assert recipe.optimizer.settings["lr"] == 0.5
    assert recipe.optimizer.settings["momentum"] == 0.9
    assert (recipe.trainer.ssr, str(recipe.trainer.max_duration)) == (0.5, "2ep")
    assert recipe.scheduler is not None
    assert recipe.scheduler.name == "linear"
    assert sorted(recipe.algorithms) == ["ema", "label_smoothing"]
    assert (recipe.model.settings["width"], recipe.model.settings["depth"]) == (4, 8)
    with pytest.raises(SpecError, match="unknown preset 'smoke'"):
        load_recipe(child, presets=["smoke"])


def test_an_error_in_a_base_names_the_base(lab: Lab) -> None:
    lab.write("recipes/base.yaml", changed(RECIPE, ("momentum: 0.9", "momentum: 9")))
    child = lab.write("recipes/child.yaml", "version: 1\nname: child\nextends: base.yaml\n")
    with pytest.raises(SpecError) as caught:
        load_recipe(child)
    assert lab.said(caught.value)[0].startswith("recipes/base.yaml:8:47: optimizer.sgd.momentum:")


def test_extends_refuses_circles_and_missing_files(lab: Lab) -> None:
    a = lab.write("recipes/a.yaml", "version: 1\nname: a\nextends: b.yaml\n")
    lab.write("recipes/b.yaml", "version: 1\nname: b\nextends: [a.yaml, c.yml]\n")
    with pytest.raises(SpecError) as caught:
        load_recipe(a)
    said = lab.said(caught.value)
    assert "recipes/b.yaml:3:11: extends: a.yaml extends this file in turn; files cannot extend each other" in said
    assert any("there is no file c.yml" in line for line in said)


def test_a_base_that_is_not_there_is_the_only_problem_and_not_the_keys_that_it_would_have(lab: Lab) -> None:
    child = lab.write("recipes/child.yaml", "version: 1\nname: child\nextends: fashon.yaml\n")
    lab.write("sweeps/s.yaml", changed(SWEEP, ("fashion_resnet.yaml", "child.yaml")))
    for load in (lambda: load_recipe(child), lambda: load_sweep(lab.folder / "sweeps" / "s.yaml")):
        with pytest.raises(SpecError) as caught:
            load()
        (said,) = lab.said(caught.value)
        assert said.startswith("recipes/child.yaml:3:10: extends: there is no file fashon.yaml")


def test_a_problem_inside_a_base_leaves_none_of_the_others_out(lab: Lab) -> None:
    lab.write("recipes/base.yaml", changed(RECIPE, ("seed: 17", "seed: 17\nseed: 18")))
    child = lab.write("recipes/child.yaml", "version: 1\nname: child\nextends: base.yaml\nsed: 3\n")
    with pytest.raises(SpecError) as caught:
        load_recipe(child)
    assert [line.split(":")[0] for line in lab.said(caught.value)] == ["recipes/base.yaml", "recipes/child.yaml"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["runtime.device=cpu"], "amp_fp16 needs a CUDA device, but runtime.device is cpu; use amp_bf16 or fp32"),
        (["algorithms={twice: {}}"], "cannot be amp_fp16 with twice, which needs gradients more than once a step; use"),
        (["runtime.device=gpu:one"], "runtime.device: must be auto, cpu, gpu, cuda, mps, tpu, hpu or neuron, gpu and"),
    ],
)
def test_precision_and_device_are_checked_as_far_as_files_tell(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, overrides: list[str], message: str
) -> None:
    class Twice(RivalDouble):
        conflicts = requires = frozenset()
        needs_closure = True

    monkeypatch.setitem(DOUBLES["algorithms"], "twice", Twice)
    said = lab.recipe_problems(overrides=["trainer.precision=amp_fp16", *overrides])
    assert any(message in line for line in said), said
    assert lab.recipe(overrides=["trainer.precision=amp_fp16"]).trainer.precision == "amp_fp16"


def test_presets_then_overrides(lab: Lab) -> None:
    recipe = lab.recipe(presets=["smoke"], overrides=["optimizer.sgd.lr=1e-3", "trainer.ssr=0.5"])
    assert str(recipe.trainer.max_duration) == "4ba"
    assert (recipe.optimizer.settings["lr"], recipe.trainer.ssr) == (0.001, 0.5)
    assert str(lab.recipe(presets=["smoke"], overrides=["trainer.max_duration=8ba"]).trainer.max_duration) == "8ba"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["seed"], "'seed' sets nothing; the form is path.to.key=value"),
        (["seed=1", "seed=2"], "seed: is given twice with --set"),
        (["trainer.max_duratio=1ep"], "unknown key 'max_duratio'; did you mean 'max_duration'?"),
        (["optimizer.adamw.lr=1"], "optimizer is 'sgd' here, not 'adamw'; did you mean optimizer.sgd.lr?"),
        (["optimizer.sgd.lrr=1"], "unknown setting of sgd 'lrr'; did you mean 'lr'?"),
        (["optimizer.sgd.lr=[1"], "--set:"),
        (["trainer.microbatch=None"], "None is Python's word; write null"),
        (["seed=07"], "07 has a leading zero"),
    ],
)
def test_overrides_follow_the_rules_of_the_files(lab: Lab, overrides: list[str], message: str) -> None:
    said = lab.recipe_problems(overrides=overrides)
    assert all(line.startswith("--set:") for line in said)
    assert any(message in line for line in said), said


def test_a_whole_component_by_override_replaces_it(lab: Lab) -> None:
    assert lab.recipe(overrides=["optimizer={adamw: {lr: 1e-3}}"]).optimizer.name == "adamw"
    assert lab.recipe(overrides=["scheduler=null"]).scheduler is None


def test_bare_names_are_found_here_and_in_their_folder(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.write("recipes/r.yaml", RECIPE)
    lab.write("here.yaml", RECIPE)
    monkeypatch.chdir(lab.folder)
    assert find_file("r", "recipe") == find_file("r.yaml", "recipe") == Path("recipes/r.yaml")
    assert find_file("here", "recipe") == Path("here.yaml")
    with pytest.raises(SpecError, match=r"no file rr.yaml; did you mean r.yaml\? in recipes/ there are: r.yaml"):
        find_file("rr.yaml", "recipe")


def test_methods_that_exclude_each_other_or_lack_what_they_need(lab: Lab) -> None:
    said = lab.recipe_problems(changed(RECIPE, ("algorithms: {}", "algorithms: {ema: {half_life: 5ba}, rival: {}}")))
    assert said == [
        "recipes/fashion_resnet.yaml:10:37: algorithms.rival: cannot be used together with ema; "
        "allow: [[ema, rival]] lifts that",
        "recipes/fashion_resnet.yaml:10:37: algorithms.rival: rival requires attention, "
        "which model resnet and data fashion_mnist_10k do not provide",
    ]


def test_own_code_by_import_path_is_trusted_or_refused_and_never_imported(lab: Lab) -> None:
    own = changed(RECIPE, ("model: {resnet: {depth: 8, width: 8, stem_stride: 2, num_classes: 10, in_channels: 1}}",
                           'model: {"py:mylab.nets:MakeNet": {width: 64, rate: 1e-3, note: \'012\'}}'))  # fmt: skip
    assert 'write trust = ["mylab.*"] into expkit.toml' in lab.recipe_problems(own)[0]
    recipe = lab.recipe(own, trust_imports=["mylab.*"])
    assert (recipe.model.label, recipe.model.settings) == ("make_net", {"width": 64, "rate": 0.001, "note": "012"})
    lab.write("expkit.toml", 'trust = ["mylab.*"]\n')
    assert lab.recipe(own) == recipe
    named = lab.recipe(own.replace("{width: 64,", "{as: wide, width: 64,"), overrides=["model.wide.width=32"])
    assert (named.model.label, named.model.settings["width"]) == ("wide", 32)
    assert "is no import path" in lab.recipe_problems(own.replace("py:mylab.nets:MakeNet", "py:mylab.nets"))[0]


def test_a_broken_expkit_toml_is_said(lab: Lab) -> None:
    lab.write("expkit.toml", "trust = 3\n")
    assert 'trust must be a list of packages, such as trust = ["mylab.*"]' in lab.recipe_problems()[0]
