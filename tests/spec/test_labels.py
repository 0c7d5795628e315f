"""Values as they stand in labels: short, another text for every other value, and apart again in a report."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.analysis.replicate import methods_of, parameters_of
from expkit.duration import Time
from expkit.plan.expand import expand
from expkit.spec.labels import label_text
from tests.spec.lab import Lab

EMPTY = "version: 1\nname: s\nrecipe: fashion_resnet\nseeds: 1\n"
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10)
    | st.floats(-2, 2, width=16)
    | st.text(alphabet="a1. +[%", max_size=3)
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1), inner)
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"), (-0.0, "0.0"), (1, "1"), (True, "true"), (None, "null"), ("relu", "relu"), ("1", '"1"'),
        ("two words", "two%20words"), (Time.parse("2ep"), "2ep"), ([0.9, 0.95], "[0.9,0.95]"), ([], "[]"),
        ([["a"], ["b+c"]], '[["a"],["b%2Bc"]]'), ({"sgd": {"lr": 0.5, "nesterov": True}}, "sgd[lr=0.5,nesterov=true]"),
        ({"adamw": {}}, "adamw"), ({"a": 1}, '{"a":1}'), (list(range(100)), "[100~3aab9a67]"),
    ],
)  # fmt: skip
def test_text_of_a_value(value: Any, text: str) -> None:
    assert label_text(value) == text


@given(one=VALUES, other=VALUES)
def test_other_values_have_other_texts(one: Any, other: Any) -> None:
    if label_text(one) == label_text(other):
        assert repr(one).replace("-0.0", "0.0") == repr(other).replace("-0.0", "0.0")


@given(value=VALUES)
def test_a_report_takes_labels_apart_again(value: Any) -> None:
    text = label_text(value)
    label = f"ema+nasty[anything={text}] a.b={text} c.d=2"
    assert methods_of(label) == {"ema", f"nasty[anything={text}]"}
    assert parameters_of(label) == {"a.b": text, "c.d": "2"}


def test_lists_are_levels_of_a_setting_that_takes_lists(lab: Lab) -> None:
    text = EMPTY + "ablate: {candidates: {nasty: {words: {values: [[a], [b, c], [a]]}}}}\n"
    arms = {c.trial.arm: c.trial.recipe.algorithms for c in expand(lab.sweep(text))}
    assert sorted(arms) == ['nasty[words=["a"]]', 'nasty[words=["b","c"]]', "none"]
    assert list(arms['nasty[words=["b","c"]]']["nasty"].settings["words"]) == ["b", "c"]
    long = ", ".join(f"[{', '.join(f'word{i}' for i in range(n))}]" for n in (20, 21))
    sweep = lab.sweep(EMPTY + f"ablate: {{candidates: {{nasty: {{words: {{values: [{long}]}}}}}}}}\n")
    assert len({c.trial.arm for c in expand(sweep)}) == 3  # alike in their first hundred characters
