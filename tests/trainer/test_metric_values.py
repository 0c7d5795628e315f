"""What metrics compute: numbers by name, however nested; what is no number, or far too many, is said."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch

from expkit.errors import ExpkitError
from expkit.trainer.evaluator import Evaluator
from tests.trainer.doubles import batches, trainer


class Computes:
    def __init__(self, value: Any) -> None:
        self.value = value

    def reset(self) -> None:
        pass

    def update(self, outputs: Any, targets: Any) -> None:
        pass

    def compute(self) -> Any:
        return self.value


def computed(value: Any) -> dict[str, float]:
    return trainer().eval(Evaluator("val", batches(1), {"m": Computes(value)}))


NUMBERS: list[tuple[Any, dict[str, float]]] = [
    (torch.tensor(0.5), {"val/m": 0.5}),
    (torch.tensor(0.5, requires_grad=True), {"val/m": 0.5}),
    (torch.tensor([0.5]), {"val/m.0": 0.5}),
    (torch.tensor([[1, 2], [3, 4]]), {"val/m.0.0": 1, "val/m.0.1": 2, "val/m.1.0": 3, "val/m.1.1": 4}),
    (torch.tensor(True), {"val/m": 1.0}),
    (np.float32(0.5), {"val/m": 0.5}),
    (np.ones(2), {"val/m.0": 1, "val/m.1": 1}),
    (Decimal("0.5"), {"val/m": 0.5}),
    ({"a": {"b": torch.ones(2)}, 3: 1}, {"val/m.a.b.0": 1, "val/m.a.b.1": 1, "val/m.3": 1}),
    ([], {}),
    (math.inf, {"val/m": math.inf}),
]


@pytest.mark.parametrize(("value", "series"), NUMBERS)
def test_numbers_have_names(value: Any, series: dict[str, float]) -> None:
    assert computed(value) == series
    assert all(type(number) is float for number in computed(value).values())


def test_nan_is_a_value() -> None:
    assert math.isnan(computed(torch.tensor(math.nan))["val/m"])


OTHERS: list[tuple[Any, str]] = [
    (None, "a NoneType: None"),
    ("0.5", "a str: '0.5'"),
    (b"1", "a bytes"),
    (1j, "a complex"),
    (torch.tensor(1j), "a Tensor"),
    (10**400, "a int"),
    ({"a": [object()]}, r"^val/m.a.0 must be .* a object"),
    ((i for i in range(2)), "a generator"),
    (torch.ones(65, 64), "has 4160 numbers, and each would be a series of its own; at most 4096 are recorded"),
    ([0.0] * 4097, "has 4097 numbers"),
]


@pytest.mark.parametrize(("value", "says"), OTHERS)
def test_what_is_no_number_is_said(value: Any, says: str) -> None:
    with pytest.raises(ExpkitError, match=says):
        computed(value)


def test_an_error_of_a_metric_is_its_own() -> None:
    class Breaks(Computes):
        def compute(self) -> Any:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        trainer().eval(Evaluator("val", batches(1), {"m": Breaks(0)}))


@pytest.mark.parametrize("data", [[], iter([]), batches(2, size=0, last=0)])
def test_an_evaluation_of_nothing_is_no_nan(data: Any) -> None:
    with pytest.raises(ExpkitError, match="the data of evaluator eval gave no batch with a sample"):
        trainer().eval(data)


def test_a_generator_that_is_used_up_is_noticed_at_the_second_evaluation() -> None:
    once = trainer(eval_dataloader=(batch for batch in batches(2)), max_duration="2ep")
    with pytest.raises(ExpkitError, match="a generator gives its batches only once: use a list or a DataLoader"):
        once.fit()
    assert once.state.timestamp.batch == 8
