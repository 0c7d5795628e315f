"""Conditions: what they may hold, what null means in them, and that nothing in them is ever run."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expkit.errors import SpecError
from expkit.spec.expressions import Expression, parse
from expkit.spec.tree import Mark, Problems, Scalar

VALUES: dict[str, Any] = {"optimizer.sgd.lr": 0.5, "a.lambda.b": 3, "name": "x", "flag": True, "none": None}


def holds(text: str, on: tuple[str, ...] = ("ema",)) -> bool:
    problems = Problems()
    expression = parse(Scalar(text, Mark("f", 3, 10), "quoted"), "when", problems)
    problems.raise_if_any()
    assert expression is not None
    return expression.holds(on.__contains__, VALUES.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("has('ema')", True),
        ("has('mixup')", False),
        ("has('ema') and optimizer.sgd.lr > 0.4", True),
        ("not has('ema') or optimizer.sgd.lr >= 1", False),
        ("0.1 < optimizer.sgd.lr <= 0.5", True),
        ("at('a.lambda.b') == 3", True),
        ("name == 'x'", True),
        ("name in ['x', 'y']", True),
        ("name not in ('y',)", True),
        ("optimizer.adamw.lr < 1", False),
        ("optimizer.adamw.lr >= 1", False),
        ("optimizer.adamw.lr != 1", False),
        ("optimizer.adamw.lr == null", True),
        ("optimizer.sgd.lr != null", True),
        ("flag == true", True),
        ("flag == 1", False),
        ("flag != 1", True),
        ("optimizer.sgd.lr > -1", True),
        ("true", True),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("__import__('os')", 11),
        ("has('a') and (lambda: 1)()", 24),
        ("x[0]", 11),
        ("has(name)", 11),
        ("has('a', 'b')", 11),
        ("a + 1 > 2", 11),
        ("f'{x}'", 11),
        ("(y := 3)", 12),
        ("[i for i in x]", 11),
        ("x is null", 11),
        ("name in other", 11),
        ("().__class__", 11),
    ],
)
def test_anything_else_is_refused_at_its_place(text: str, column: int) -> None:
    with pytest.raises(SpecError) as caught:
        holds(text)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (3, column)
    assert "cannot stand in a condition; it holds has('method'), paths" in problem.message


@pytest.mark.parametrize("text", ["has(", "(" * 500, "", "a b", "\0", "'"])
def test_no_condition_at_all(text: str) -> None:
    with pytest.raises(SpecError):
        holds(text)


def test_words_and_numbers_cannot_be_compared() -> None:
    with pytest.raises(SpecError, match="cannot compare 'x' with 1"):
        holds("name < 1")


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text(alphabet="ab.('\") <>=!and ornothas[],019-\n", max_size=40))
def test_any_text_is_a_condition_or_a_problem(text: str) -> None:
    problems = Problems()
    found = parse(Scalar(text, Mark("f", 1, 1)), "when", problems)
    assert isinstance(found, Expression) != bool(problems.found)
    if found is not None:
        with contextlib.suppress(SpecError):
            found.holds(lambda name: True, VALUES.get)
