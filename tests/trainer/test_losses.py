"""Losses of several parts: what is optimised, what is recorded, and that parts of a batch add up to the whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from expkit.errors import ExpkitError
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from tests.trainer.doubles import Memory, batches, trainer, weights


def two(outputs: Any, targets: Any) -> tuple[Any, Any]:
    return cross_entropy(outputs, targets), outputs.square().mean()


def fitted(loss_fn: Any, **settings: Any) -> tuple[Any, Memory]:
    memory = Memory()
    data = batches(4, 6, last=5)
    t = trainer(loss_fn=loss_fn, train_dataloader=data, **{"loggers": [memory], "max_duration": "2ep", **settings})
    t.fit()
    return t, memory


FORMS = {
    "tuple": (lambda o, t: two(o, t), ["0", "1"]),
    "list": (lambda o, t: list(two(o, t)), ["0", "1"]),
    "dict": (lambda o, t: dict(zip(("ce", "norm"), two(o, t), strict=True)), ["ce", "norm"]),
    "total": (lambda o, t: {"ce": two(o, t)[0].detach(), "norm": 3.0, "total": sum(two(o, t))}, ["ce", "norm"]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [None, 4])
def test_parts_are_summed_or_total_alone_is_optimised_and_each_is_recorded(form: str, size: int | None) -> None:
    loss_fn, names = FORMS[form]
    t, memory = fitted(loss_fn, device_train_microbatch_size=size)
    plain, series = fitted(lambda o, t: sum(two(o, t)), device_train_microbatch_size=size)
    assert torch.equal(weights(t), weights(plain))
    assert memory.series("train/loss") == series.series("train/loss")
    assert {name for name, _, _ in memory.rows} == {"train/loss", *(f"train/loss/{name}" for name in names)}
    assert [batch for batch, _ in memory.series(f"train/loss/{names[0]}")] == list(range(1, 9))
    first, second = (dict(memory.series(f"train/loss/{name}")) for name in names)
    for batch, total in memory.series("train/loss"):
        if form == "total":
            assert second[batch] == pytest.approx(3.0)
        else:
            assert first[batch] + second[batch] == pytest.approx(total, rel=1e-6)


def test_parts_of_uneven_microbatches_weigh_by_their_samples() -> None:
    whole, in_parts = (fitted(FORMS["dict"][0], device_train_microbatch_size=size)[1] for size in (None, 4))
    for name in ("train/loss", "train/loss/ce", "train/loss/norm"):
        values = [[value for _, value in memory.series(name)] for memory in (whole, in_parts)]
        assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_total_alone_decides_what_is_learned() -> None:
    t, _ = fitted(lambda o, t: {"total": cross_entropy(o, t), "other": o.square().mean()})
    plain, _ = fitted(cross_entropy)
    assert torch.equal(weights(t), weights(plain))


def test_the_state_holds_the_scalar_and_the_parts_of_what_is_worked_on() -> None:
    @dataclass
    class Watch(Callback):
        seen: Any = field(default_factory=list, init=False)

        def after_loss(self, state: Any, logger: Any) -> None:
            assert state.loss.requires_grad and state.loss.ndim == 0
            assert not any(part.requires_grad for part in state.losses.values())
            self.seen.append({name: float(part) for name, part in state.losses.items()})

        def batch_end(self, state: Any, logger: Any) -> None:
            first, second = self.seen[-2:]
            for name, part in state.losses.items():
                assert float(part) == pytest.approx((4 * first[name] + 2 * second[name]) / 6, rel=1e-6)

    fitted(FORMS["dict"][0], callbacks=[Watch()], device_train_microbatch_size=4, max_duration="3ba")


def test_a_plain_loss_has_no_parts_and_one_series() -> None:
    t, memory = fitted(cross_entropy)
    assert t.state.losses == {}
    assert {name for name, _, _ in memory.rows} == {"train/loss"}


def test_a_method_may_change_the_scalar() -> None:
    @dataclass
    class Doubled(Algorithm):
        def after_loss(self, state: Any, logger: Any) -> None:
            state.loss = state.loss * 2

    t, _ = fitted(FORMS["dict"][0], algorithms=[Doubled()])
    plain, _ = fitted(lambda o, t: 2 * sum(two(o, t)))
    torch.testing.assert_close(weights(t), weights(plain))


def test_parts_may_come_and_go_over_time() -> None:
    calls = iter(range(100))

    def later(outputs: Any, targets: Any) -> dict[str, Any]:
        loss = {"ce": cross_entropy(outputs, targets)}
        return loss if next(calls) < 2 else {**loss, "norm": outputs.square().mean()}

    _, memory = fitted(later)
    assert [batch for batch, _ in memory.series("train/loss/norm")] == list(range(3, 9))
    assert [batch for batch, _ in memory.series("train/loss/ce")] == list(range(1, 9))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda o, t: {"ce": cross_entropy(o, t, reduction="none")}, r"'ce' must be a scalar, .* shape is \[6\]"),
        (lambda o, t: 1.0, "a tuple or dict of them, but got float"),
        (lambda o, t: {}, "but got dict"),
        (lambda o, t: None, "but got NoneType"),
    ],
)
def test_what_is_no_loss_is_said(given: Any, says: str) -> None:
    with pytest.raises(ExpkitError, match=says):
        fitted(given)
