"""Deterministic mode and seed_context give back every switch and generator that they moved, also after an error."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from expkit.trainer.callback import Callback
from expkit.trainer.deterministic import deterministic
from expkit.trainer.streams import seed_context
from tests.trainer.doubles import batches, trainer

CPU = torch.device("cpu")


def switches() -> tuple[Any, ...]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
        os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    )


ON = (True, False, True, False, ":4096:8")


@dataclass
class Look(Callback):
    """Notes the switches at every moment of interest, and fails at one if told to."""

    fail_at: str = ""

    def __post_init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def _look(self, where: str) -> None:
        self.seen[where] = switches()
        if where == self.fail_at:
            raise ZeroDivisionError

    def init(self, state: Any, logger: Any) -> None:
        self._look("init")

    def after_forward(self, state: Any, logger: Any) -> None:
        self._look("fit")

    def eval_after_forward(self, state: Any, logger: Any) -> None:
        self._look("eval")

    def predict_after_forward(self, state: Any, logger: Any) -> None:
        self._look("predict")


@pytest.mark.parametrize("fail_at", ["", "init", "fit", "eval", "predict"])
def test_it_holds_while_the_model_is_at_work_and_no_longer(fail_at: str) -> None:
    before, look = switches(), Look(fail_at)
    try:
        t = trainer(callbacks=[look], deterministic_mode=True)
        for call in (t.fit, lambda: t.eval(batches(1)), lambda: t.predict(batches(1))):
            assert switches() == before
            call()
    except ZeroDivisionError:
        assert fail_at
    assert switches() == before
    assert set(look.seen.values()) == {ON}
    assert fail_at in {"", *look.seen}


def test_it_is_off_where_nobody_wants_it() -> None:
    before, look = switches(), Look()
    trainer(callbacks=[look]).fit()
    assert set(look.seen.values()) == {before}


def test_an_operation_that_cannot_is_named() -> None:
    def histogram() -> Any:  # its CUDA kernel is not; put_ without accumulate is not deterministic anywhere
        return torch.zeros(3).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]), accumulate=False)

    histogram()
    with deterministic(True), pytest.raises(RuntimeError, match="put_"):
        histogram()
    histogram()


def test_what_the_user_had_set_is_there_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with deterministic(True):
            assert switches()[1] is False and switches()[4] == ":16:8"  # a value that will do is left
        assert switches()[:2] == (True, True)
        with deterministic(True), deterministic(True):
            pass
        assert switches()[:2] == (True, True)
    finally:
        torch.use_deterministic_algorithms(False)


def draws() -> list[float]:
    return [float(torch.rand(())), random.random(), float(np.random.rand())]


@pytest.mark.parametrize("end", [lambda: None, lambda: 1 / 0], ids=["done", "error"])
def test_seed_context_gives_the_generators_back(end: Callable[[], Any]) -> None:
    """Composer's has no try/finally."""
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    expected = draws()
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    inside = []
    for purpose in ("eval", "eval", "other"):
        try:
            with seed_context(CPU, 5, purpose):
                inside.append(draws())
                end()
        except ZeroDivisionError:
            pass
    assert draws() == expected
    assert inside[0] == inside[1] != inside[2]
