"""What counts in a batch: its parts give the gradient of the whole, whatever counts in each of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from expkit.trainer.data_spec import DataSpec
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, batches, net, trainer, weights
from tests.trainer.test_calling import Sequences, sentences


def shifted_labels(batch: Any) -> Any:
    return (batch["labels"][:, 1:] != -100).sum()


def padded(lengths: list[int]) -> list[dict[str, Any]]:
    """Sequences of nine tokens of which the first few count."""
    (batch,) = sentences(count=1)
    batch["labels"] = torch.stack([row[:9] for row in torch.randint(11, (len(lengths), 9))])
    batch["labels"][torch.arange(9)[None] >= torch.tensor(lengths)[:, None]] = -100
    batch["input_ids"] = batch["labels"].clamp(min=0)
    del batch["idx"], batch["name"]
    return [{**batch, "attention_mask": torch.ones(len(lengths), 9)}]


def one_step(data: Any, size: int | None, model: Any = None, **more: Any) -> tuple[Trainer, torch.Tensor]:
    """A trainer after one step, and the gradient of that step."""
    t = trainer(
        model or Sequences(), train_dataloader=data, device_train_microbatch_size=size, max_duration="1ba", **more
    )
    t.fit()
    return t, torch.cat([p.grad.flatten() for p in t.state.model.parameters() if p.grad is not None])


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=8).filter(lambda lengths: max(lengths) > 1), st.integers(1, 8))
def test_a_batch_in_parts_has_the_gradient_of_the_whole_to_1e_6(lengths: list[int], size: int) -> None:
    data = padded(lengths)
    whole, in_parts = (one_step(DataSpec(data, weight_in_batch=shifted_labels), n) for n in (None, size))
    assert relative(in_parts[1], whole[1]) < 1e-6
    assert in_parts[0].state.train_loss == pytest.approx(whole[0].state.train_loss, rel=1e-6)


def test_by_samples_the_same_batch_has_another_gradient() -> None:
    data = padded([9, 2, 9, 9])
    _, whole = one_step(data, None)
    assert relative(one_step(data, 2)[1], whole) > 0.01
    assert relative(one_step(DataSpec(data, weight_in_batch=shifted_labels), 2)[1], whole) < 1e-6


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_parts_in_which_nothing_counts_make_no_nan(size: int) -> None:
    data = DataSpec(padded([0, 0, 9, 1, 0, 4]), weight_in_batch=shifted_labels)
    whole, in_parts = one_step(data, None), one_step(data, size)
    assert math.isfinite(in_parts[0].state.train_loss)
    assert relative(in_parts[1], whole[1]) < 1e-6
    assert in_parts[0].state.timestamp.sample == 6
    assert in_parts[0].state.num_microbatches == {1: 2, 2: 2, 3: 2, 5: 2}[size]


@pytest.mark.parametrize("size", [None, 2])
def test_a_batch_in_which_nothing_counts_has_no_loss(size: int | None) -> None:
    t, _ = one_step(DataSpec(padded([0, 0, 1, 0]), weight_in_batch=shifted_labels), size)
    assert t.diverged


def test_weights_of_samples_need_not_be_whole_numbers() -> None:
    """A mean weighted by the sample: each part weighs the sum of its weights."""
    data = [{"x": x, "labels": y, "w": torch.rand(len(y), generator=torch.Generator().manual_seed(0))}
            for x, y in batches()]  # fmt: skip

    def loss_fn(outputs: Any, batch: Any) -> Any:
        losses = cross_entropy(outputs, batch["labels"], reduction="none")
        return (losses * batch["w"]).sum() / batch["w"].sum()

    class Named(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: Any) -> Any:
            return self.net(x)

    spec = DataSpec(data, weight_in_batch=lambda batch: batch["w"].sum())
    whole, in_parts = (one_step(spec, size, Named(), loss_fn=loss_fn)[1] for size in (None, 4))
    assert relative(in_parts, whole) < 1e-6


def test_named_losses_are_weighed_alike() -> None:
    memories = [Memory(), Memory()]
    spec = DataSpec([(x, y.masked_fill(y > 1, -100)) for x, y in batches(4, 9)],
                    weight_in_batch=lambda batch: (batch[1] != -100).sum())  # fmt: skip
    for memory, size in zip(memories, (None, 2), strict=True):
        t = trainer(train_dataloader=spec, device_train_microbatch_size=size, loggers=[memory],
                    loss_fn=lambda o, t: {"ce": cross_entropy(o, t)})  # fmt: skip
        t.fit()
    whole, in_parts = ([value for _, value in memory.series("train/loss/ce")] for memory in memories)
    assert in_parts == pytest.approx(whole, rel=1e-5)
    assert memories[0].series("train/loss") == memories[0].series("train/loss/ce")


def test_by_default_samples_weigh_and_nothing_changes() -> None:
    runs = [trainer(train_dataloader=data, device_train_microbatch_size=4) for data in
            (batches(), DataSpec(batches(), weight_in_batch=lambda batch: len(batch[1])))]  # fmt: skip
    for t in runs:
        t.fit()
    assert torch.equal(*map(weights, runs))
