"""`expkit schema`: what editors know of the files is what the loader takes."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from expkit import plugins
from expkit.cli import app
from expkit.spec.convert import core_value
from expkit.spec.reader import read_file, read_text
from expkit.spec.tree import Problems
from tests.plan.test_golden import GOLDEN
from tests.spec.lab import GOLDEN as GOLDEN_SWEEP
from tests.spec.lab import RECIPE, SWEEP, changed

with warnings.catch_warnings(action="ignore"):
    from jsonschema import Draft7Validator

ROOT = Path(__file__).parents[2]
RECIPES = [*sorted((ROOT / "recipes").glob("*.yaml")), GOLDEN / "recipe.yaml"]
SWEEPS = sorted((ROOT / "sweeps").glob("*.yaml")) + sorted(p for p in GOLDEN.glob("*.yaml") if p.stem != "recipe")
EVAL = "eval: {fashion_mnist_10k: {split: validation, batch_size: 500}}"
BARE = "version: 1\nname: s\nrecipe: r.yaml\n"


def schema(kind: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["schema", kind], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def validators() -> dict[str, Draft7Validator]:
    return {kind: Draft7Validator(schema(kind)) for kind in ("recipe", "sweep")}


def said(validator: Draft7Validator, text: str) -> list[str]:
    """What is wrong with a file's text, read by our own rules of YAML."""
    value = core_value(read_text(text, "x.yaml", Problems()), "", Problems())
    return [error.message for error in validator.iter_errors(value)]


@pytest.mark.parametrize("kind", ["recipe", "sweep"])
def test_it_is_draft_07_with_a_title_and_the_committed_one(kind: str) -> None:
    found = schema(kind)
    Draft7Validator.check_schema(found)
    assert (found["$schema"], found["title"]) == ("http://json-schema.org/draft-07/schema#", f"expkit {kind}")
    assert "prefixItems" not in json.dumps(found)
    committed = json.loads((ROOT / "docs" / f"{kind}.schema.json").read_text(encoding="utf-8"))
    assert committed == found, f"write it again: expkit schema {kind} > docs/{kind}.schema.json"


@pytest.mark.parametrize("file", RECIPES + SWEEPS, ids=lambda f: f.name)
def test_files_of_this_repository_are_valid(validators: dict[str, Draft7Validator], file: Path) -> None:
    value = core_value(read_file(file, Problems()), "", Problems())
    validator = validators["sweep" if "recipe" in value else "recipe"]
    assert [error.message for error in validator.iter_errors(value)] == []


@pytest.mark.parametrize("file", [p for p in RECIPES + SWEEPS if p.parent != GOLDEN], ids=lambda f: f.name)
def test_shipped_files_name_their_schema_in_the_first_line(file: Path) -> None:
    first = file.read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema=../docs/{file.parent.name.removesuffix('s')}.schema.json"
    assert (file.parent / first.partition("=")[2]).is_file()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model: {resnet: {depth: 8,", "model: {resnet: {depth: '${vars.lr}',"),
        ("scheduler: {cosine: {warmup: 0.1dur}}", "scheduler: {name: linear, warmup: 3ba}"),
        ("algorithms: {}", "algorithms: {ema: {half_life: 12ba, as: average}, 'py:mylab.m:Trick': {a: [1]}}"),
        ("scheduler: {cosine: {warmup: 0.1dur}}", "scheduler: null"),
        ("scheduler: {cosine: {warmup: 0.1dur}}", "scheduler: '${vars.scheduler}'"),
        ("checkpoint: {every: null, keep: none}", "microbatch: auto"),
        ("max_duration: 2ep", "max_duration: 1h30m"),
        ("target: {pilot: {seeds: 5, rule: lowest_final}}", "target: 0.8"),
        ("seed: 17", "allow: [[ema, blurpool]]\nextends: [a.yaml]"),
        (EVAL, "eval: {val: {austen: {split: test}}, own: {name: 'py:mylab.data:Own', size: 3}}"),
        (EVAL, "eval: {val: '${data.train}'}"),
        ("eval_interval: 0.125ep", "eval_interval: {val: 0.125ep, own: 3ba}\n  eval_subset_num_batches: {own: 2}"),
    ],
)
def test_what_a_recipe_may_say(validators: dict[str, Draft7Validator], old: str, new: str) -> None:
    assert said(validators["recipe"], changed(RECIPE, (old, new))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("depth: 8", "dept: 8"),
        ("width: 8", "width: 0"),
        ("momentum: 0.9", "momentum: 1.5"),
        ("momentum: 0.9", "momentum: high"),
        ("algorithms: {}", "algorithms: {emma: {}}"),
        ("seed: 17", "sead: 17"),
        ("max_duration: 2ep", "max_duration: 2 epochs"),
        ("mode: max", "mode: maximum"),
        ("keep: none", "keep: some"),
        ("target: {pilot: {seeds: 5,", "target: {pilot: {seeds: 1,"),
        ("version: 1", "version: 2"),
        (EVAL, "eval: {train: {austen: {split: test}}}"),
        (EVAL, "eval: {val: {austen: {split: best}}}"),
        (EVAL, "eval: {}"),
        ("eval_interval: 0.125ep", "eval_interval: {val: often}"),
        (
            "metrics:\n  primary: {name: eval/accuracy, mode: max}\n  target: {pilot: {seeds: 5, rule: lowest_final}}",
            "",
        ),
    ],
)
def test_what_a_recipe_may_not_say(validators: dict[str, Draft7Validator], old: str, new: str) -> None:
    assert said(validators["recipe"], changed(RECIPE, (old, new)))


@pytest.mark.parametrize(
    "text",
    [
        SWEEP,
        GOLDEN_SWEEP,
        BARE + "seeds: [1, 2]\nablate: {candidates: [ema, blurpool], design: [{max_size: 2}, leave_one_out]}\n",
        BARE + "parameters: {optimizer: [{sgd: {lr: 0.5}}, {adamw: {}}], a.b: {values: [1]}, c.d: {value: 1}}\n",
        BARE + "zip: [{a.b: [1, 2], c.d: [x, y]}]\ngrids: [{parameters: {a.b: [1]}, candidates: {ema: {}}}]\n",
        BARE + "include: [{algorithms: {ema: {half_life: 3ba}}, parameters: {a.b: 1}, seeds: [1]}]\n",
        BARE + "ablate: {constraints: [{allow: [[ema, blurpool]], because: x}], allow: [{pair: [ema, blurpool]}]}\n",
        BARE + "ablate: {candidates: {ema: {half_life: [3ba, 6ba]}, label_smoothing: {smoothing: {values: [0.1]}}}}\n",
    ],
)  # fmt: skip
def test_what_a_sweep_may_say(validators: dict[str, Draft7Validator], text: str) -> None:
    assert said(validators["sweep"], text) == []


@pytest.mark.parametrize(
    "text",
    [
        BARE + "ablate: {design: ful}\n",
        BARE + "ablate: {design: max_size}\n",
        BARE + "ablate: {candidates: {emma: {}}}\n",
        BARE + "ablate: {candidates: {label_smoothing: {smoothing: [0.1, 2]}}}\n",
        BARE + "run: {job: 1}\n",
        BARE + "seeds: {count: 5, bas: 3}\n",
        BARE + "parameters: {a.b: 3}\n",
        BARE + "include: [{algorithm: {}}]\n",
        BARE + "exclude: [{because: x}]\n",
        "version: 1\nname: s\n",
    ],
)
def test_what_a_sweep_may_not_say(validators: dict[str, Draft7Validator], text: str) -> None:
    assert said(validators["sweep"], text)


def test_every_setting_of_every_plug_in_is_described() -> None:
    found = schema("recipe")["$defs"]
    for kind in ("models", "datasets", "optimizers", "schedulers", "algorithms", "callbacks"):
        for name in plugins.names(kind):
            own = found[f"{kind}.{name}"]
            assert own["description"]
            for setting in plugins.settings(plugins.load(kind, name)):
                assert own["properties"][setting.name]["description"] == setting.doc != ""


def test_every_key_is_described() -> None:
    for kind in ("recipe", "sweep"):
        properties = schema(kind)["properties"]
        plain = [key for key, value in properties.items() if not value.get("description")]
        assert plain == (["data"] if kind == "recipe" else ["ablate"])  # their keys are
