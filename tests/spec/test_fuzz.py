"""Whatever a file holds: a value or a SpecError with places, never a traceback."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from expkit.errors import SpecError, UsageError
from expkit.plan.count import count
from expkit.spec.dump import dump_recipe
from expkit.spec.files import load_recipe
from expkit.spec.identity import trial_id
from expkit.spec.sweep_file import load_sweep
from tests.spec.lab import GOLDEN, RECIPE, SWEEP, Lab

BOUNDED = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
KEYS = st.sampled_from(
    ["sgd", "version", "name", "extends", "vars", "model", "data", "train", "eval", "optimizer", "scheduler",
     "algorithms", "callbacks", "trainer", "metrics", "seed", "runtime", "presets", "resnet", "mlp", "ema", "<<",
     "as", "set", "ablate", "recipe", "candidates", "baseline", "always", "design", "constraints", "conflicts",
     "requires", "because", "zip", "grids", "include", "allow", "max_size", "pair", "data.train",
     "scheduler.cosine.warmup",
     "parameters", "exclude", "when", "seeds", "count", "base", "order", "run", "report", "budget", "values", "colout",
     "nasty", "py:a.b:C", "optimizer.sgd.lr", "p_row", "max_duration", "name", "anything"]
) | st.text(max_size=6)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["1e-3", "010", "1:30", "None", "off", "${vars.lr}", "${.x}", "${env:HOME}", "2ep", "full", "ema",
                       "pairwise", "fashion_resnet", "../recipes/fashion_resnet.yaml",
                       "has('ema')", "a.b > 1", ".", "..", "/"])
)  # fmt: skip
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)


def check(lab: Lab, recipe: str, sweep: str, overrides: tuple[str, ...] = ()) -> None:
    """Loads both; every problem has a place."""
    recipe_path = lab.write("recipes/fashion_resnet.yaml", recipe)
    sweep_path = lab.write("sweeps/ablate.yaml", sweep)
    for load in (lambda: trial_id(_there_and_back(lab, load_recipe(recipe_path, overrides=overrides))),
                 lambda: count(load_sweep(sweep_path, overrides=overrides))):  # fmt: skip
        try:
            load()
        except SpecError as e:
            assert e.problems
            assert all(p.line >= 1 and p.column >= 1 and p.message for p in e.problems)
        except UsageError as e:
            assert "there is no file" in str(e)


def _there_and_back(lab: Lab, recipe: Any) -> Any:
    again = load_recipe(lab.write("again.yaml", dump_recipe(recipe)))
    assert again == recipe or "nan" in repr(recipe)
    return recipe


@BOUNDED
@given(text=st.text())
def test_any_text(lab: Lab, text: str) -> None:
    check(lab, text, text, (f"trainer.ssr={text}", f"ablate.design={text}"))


@BOUNDED
@given(text=st.text(alphabet="ab: -[]{},&*!|>'\"%@`#?\n\t<~10.$", max_size=60))
def test_any_line_noise(lab: Lab, text: str) -> None:
    check(lab, text, text)


@BOUNDED
@given(tree=TREES, key=KEYS)
def test_any_tree(lab: Lab, tree: Any, key: str) -> None:
    text = json.dumps(tree)
    check(lab, RECIPE + json.dumps(key) + ": " + text + "\n", SWEEP + json.dumps(key) + ": " + text + "\n")


@BOUNDED
@given(tree=TREES, data=st.data())
def test_any_value_in_any_place(lab: Lab, tree: Any, data: st.DataObject) -> None:
    value = json.dumps(tree)
    base = data.draw(st.sampled_from([SWEEP, GOLDEN]))
    check(lab, _replaced(RECIPE, value, data), _replaced(base, value, data))


def _replaced(text: str, value: str, data: st.DataObject) -> str:
    """The text with the value behind one of its colons exchanged."""
    colons = [i for i, c in enumerate(text) if text[i : i + 2] == ": "]
    start = data.draw(st.sampled_from(colons)) + 2
    ends = [i for i in range(start, len(text)) if text[i] in ",}\n"]
    return text[:start] + value + text[ends[0] :]


@BOUNDED
@given(data=st.data())
def test_any_mutation_of_the_files(lab: Lab, data: st.DataObject) -> None:
    check(lab, _mutated(RECIPE, data), _mutated(data.draw(st.sampled_from([SWEEP, GOLDEN])), data))


def _mutated(text: str, data: st.DataObject) -> str:
    """Some characters deleted, doubled or exchanged."""
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        span = data.draw(st.integers(0, 12))
        put = data.draw(st.text(alphabet="ab: -[]{},'\"\n&*!$01.", max_size=4) | st.just(text[at : at + span] * 2))
        text = text[:at] + put + text[at + span :] or "x"
    return text


NAMED = st.sampled_from([
    "optimizer", "optimizer.sgd.lr", "optimizer.adamw.lr", "scheduler", "data.train", "vars.lr", "trainer.ssr", "model",
    "algorithms.ema.half_life", "callbacks", "name", "",
])  # fmt: skip
VALUES = st.lists(
    LEAVES | st.sampled_from([{"sgd": {"lr": 1}}, {"adamw": {}}, {"name": "sgd"}, {"sgd": 3}, {}]), max_size=3
)
METHODS = st.dictionaries(st.sampled_from(["ema", "nasty", "colout", "py:a.b:C"]), TREES, max_size=2)
LISTS = st.dictionaries(NAMED, VALUES, max_size=3)
ONES = st.dictionaries(NAMED, LEAVES, max_size=2)
GRID = st.fixed_dictionaries(
    {}, optional={"parameters": LISTS, "candidates": METHODS, "zip": st.lists(LISTS, max_size=2)}
)
INCLUDED = st.fixed_dictionaries({}, optional={"parameters": ONES, "seeds": TREES, "algorithms": METHODS})


@BOUNDED
@given(grid=GRID, grids=st.lists(GRID, max_size=2), include=st.lists(INCLUDED, max_size=2), design=TREES)
def test_any_union(lab: Lab, grid: dict[str, Any], grids: list[Any], include: list[Any], design: Any) -> None:
    ablate = {"candidates": grid.pop("candidates", {}), "design": design}
    sweep = {"version": 1, "name": "s", "recipe": "fashion_resnet", **grid, "grids": grids, "include": include}
    check(lab, RECIPE, json.dumps({**sweep, "ablate": ablate}))
    check(lab, RECIPE, json.dumps({**sweep, "ablate": {**ablate, "design": "full"}}))
