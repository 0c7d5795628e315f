"""Errors in a step or an evaluation: a sentence for torch's own where it is known what was meant, a place for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from expkit.errors import ExpkitError, UsageError
from expkit.trainer.diagnosis import shapes
from tests.trainer.doubles import batches, net, trainer


def targets_like(change: Callable[[torch.Tensor], Any]) -> list[Any]:
    return [(inputs, change(targets)) for inputs, targets in batches(2)]


class Gives(nn.Linear):
    """8 -> 4, and something made of that."""

    def __init__(self, change: Callable[[torch.Tensor], Any]) -> None:
        super().__init__(8, 4)
        self.change = change

    def forward(self, inputs: torch.Tensor) -> Any:
        return self.change(super().forward(inputs))


@dataclass
class Logits:
    logits: Any


TARGETS: list[tuple[Callable[[torch.Tensor], Any], str]] = [
    (lambda t: t + 4, "class ids must be from 0 to 3, for the model gives 4 classes, but targets are from 4 to"),
    (lambda t: t * 0 - 1, "but targets are from -1 to -1"),
    (lambda t: t.float(), r"class ids must be int64, but targets are float32 \[6\]; write targets.long\(\), or"),
    (lambda t: t.int(), r"class ids must be int64, but targets are int32 \[6\]"),
    (lambda t: t[:, None], r"class ids of shape \[6\] or probabilities of shape \[6, 4\], for the model gave float32 "
                           r"\[6, 4\], but they are int64 \[6, 1\]"),
    (lambda t: torch.ones(6, 5), r"but they are float32 \[6, 5\]"),
    (lambda t: t.tolist(), "targets must be a tensor of class ids, but they are a list"),
]  # fmt: skip


@pytest.mark.parametrize("loss_fn", [None, nn.CrossEntropyLoss(), nn.functional.cross_entropy])
@pytest.mark.parametrize(("change", "says"), TARGETS)
def test_targets_that_are_no_classes(change: Callable[[torch.Tensor], Any], says: str, loss_fn: Any) -> None:
    with pytest.raises(UsageError, match=says) as e:
        trainer(train_dataloader=targets_like(change), loss_fn=loss_fn).fit()
    assert " (in epoch 0, after 0 batches of it, batch (float32 [6, 8], " in str(e.value)
    assert e.value.__cause__ is not None and not hasattr(e.value, "__notes__")


OUTPUTS: list[tuple[Callable[[torch.Tensor], Any], str]] = [
    (lambda o: None, "a tensor of logits, or a mapping or tuple with one, but gave None"),
    (lambda o: object(), "but gave a object"),
    (Logits, "but gave a Logits"),
    (lambda o: o.sum(), "but they are int64|targets must be class ids"),
    (lambda o: o[:3], r"class ids of shape \[3\]"),
    (lambda o: o.long(), r"logits must be floating point, but the model gave int64 \[6, 4\]"),
    (lambda o: o.detach(), "does not depend on the weights: the model's outputs came without a gradient"),
]


@pytest.mark.parametrize(("change", "says"), OUTPUTS)
def test_outputs_that_are_no_logits(change: Callable[[torch.Tensor], Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(Gives(change)).fit()


def cross_entropy(outputs: Any, targets: Any) -> Any:
    return nn.functional.cross_entropy(outputs, targets)


LOSSES: list[tuple[Callable[..., Any], str]] = [
    (lambda o, t: o.sum(1), r"a scalar, the mean over samples, but its shape is \[6\]; use .mean\(\)"),
    (lambda o, t: o.sum().to(torch.complex64), "a real number with a fraction, but it is complex64"),
    (lambda o, t: o.sum().long(), "but it is int64"),
    (lambda o, t: o.sum().detach(), "does not depend on the weights: the loss came without a gradient"),
    (lambda o, t: torch.tensor(o.sum().item()), "the loss came without a gradient"),
    (lambda o, t: {"a": o.sum().detach()}, "the loss came without a gradient"),
    (lambda o, t: o.sum().item(), "a loss is a scalar tensor, or a tuple or dict of them, but got float"),
    (lambda o, t: None, "but got NoneType"),
    (lambda o, t: {"a": "b"}, "the parts of a loss are scalar tensors or numbers, but got {'a': 'b'}"),
    (lambda o, t: {}, "but got dict"),
    (lambda o, t: (o.sum(), o), "loss '1' must be a scalar"),
]


@pytest.mark.parametrize("size", [None, 4])
@pytest.mark.parametrize(("loss_fn", "says"), LOSSES)
def test_losses_that_nothing_goes_backward_from(loss_fn: Any, says: str, size: int | None) -> None:
    says = says if size is None else says.replace(r"\[6\]", r"\[4\]")
    with pytest.raises(ExpkitError, match=says) as e:
        trainer(loss_fn=loss_fn, device_train_microbatch_size=size).fit()
    assert "in epoch 0, after 0 batches of it, batch (float32 [" in f"{e.value}{getattr(e.value, '__notes__', '')}"


def test_what_is_frozen_or_without_gradients_is_named() -> None:
    frozen = net().requires_grad_(False)
    with pytest.raises(UsageError, match="all parameters of the optimizer are frozen, so there is nothing to train"):
        trainer(frozen).fit()
    assert trainer(frozen, eval_dataloader=batches()).eval().keys() == {"eval/accuracy"}
    for outside in (torch.no_grad(), torch.inference_mode()):
        made = trainer(max_duration="1ba")
        with outside, pytest.raises(UsageError, match=r"fit must not run inside torch.no_grad\(\) or torch.inference"):
            made.fit()
        made.fit()


def test_a_forward_of_several_arguments_is_named() -> None:
    class Two(nn.Linear):
        def forward(self, inputs: Any, mask: Any) -> Any:  # type: ignore[override]
            return super().forward(inputs * mask)

    with pytest.raises(UsageError, match="forward of Two is called with the inputs of a batch alone, but takes in"):
        trainer(Two(8, 4)).fit()


def mistaken(*_: Any) -> Any:
    raise TypeError("a mistake of mine")


USERS: list[dict[str, Any]] = [
    {"model": Gives(mistaken)},
    {"loss_fn": lambda outputs, targets: mistaken()},
    {"loss_fn": cross_entropy, "train_dataloader": targets_like(lambda t: t + 4)},
]


@pytest.mark.parametrize("settings", USERS)
def test_an_error_of_the_users_own_code_keeps_its_type_and_says_where(settings: dict[str, Any]) -> None:
    with pytest.raises((TypeError, IndexError)) as e:
        trainer(**settings).fit()
    assert [note.split(" (")[0] for note in e.value.__notes__] == ["in epoch 0, after 0 batches of it, batch"]


def test_inputs_of_another_type_or_shape_are_in_the_note() -> None:
    double = [(inputs.double(), targets) for inputs, targets in batches(3)]
    with pytest.raises(RuntimeError) as e:
        trainer(train_dataloader=[*batches(2), *double], max_duration="2ep").fit()
    assert e.value.__notes__ == [
        "in epoch 0, after 2 batches of it, batch (float64 [6, 8], int64 [6]); inputs are float64 and weights float32: "
        "inputs.to(torch.float32) fits"
    ]
    with pytest.raises(RuntimeError) as e:
        trainer(train_dataloader=[(torch.randn(6, 7), batches()[0][1])]).fit()
    assert "batch (float32 [6, 7], int64 [6])" in e.value.__notes__[0]


def test_an_evaluation_and_a_prediction_say_so_too() -> None:
    with pytest.raises(UsageError, match="but targets are from 4 to") as e:
        trainer(nn.Linear(8, 4), eval_dataloader={"val": targets_like(lambda t: t + 4)}, max_duration="1ep").fit()
    assert " (in epoch 0, after 4 batches of it, evaluator val, batch (float32 [6, 8], int64 [6])" in str(e.value)
    assert not hasattr(e.value, "__notes__")
    with pytest.raises(RuntimeError) as other:
        trainer().predict([torch.randn(6, 7)])
    assert other.value.__notes__ == ["in epoch 0, after 0 batches of it, batch float32 [6, 7]"]


def test_an_error_of_the_loader_does_not_speak_of_the_batch_before() -> None:
    class Breaks:
        def __len__(self) -> int:
            return 4

        def __iter__(self) -> Any:
            yield from batches(2)
            raise KeyError("third")

    with pytest.raises(KeyError) as e:
        trainer(train_dataloader=Breaks()).fit()
    assert e.value.__notes__ == ["in epoch 0, after 2 batches of it, while its data were loaded"]


def test_shapes_in_a_line() -> None:
    batch = {"ids": torch.zeros(2, 3, dtype=torch.int64), "more": [torch.zeros(2), "a"], "n": 3, "t": ["a", "b"]}
    assert shapes(batch) == "{ids: int64 [2, 3], more: (float32 [2], str), n: int, t: list}"
