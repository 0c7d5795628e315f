from __future__ import annotations

import math

import pytest
import torch

from expkit.functional.losses import is_soft, one_hot, soft_cross_entropy


def test_hand_computed_for_ids_and_for_probabilities() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)]])  # probabilities 1/4, 3/4
    assert soft_cross_entropy(logits, torch.tensor([0])).item() == pytest.approx(math.log(4))
    half = soft_cross_entropy(logits, torch.tensor([[0.5, 0.5]])).item()
    assert half == pytest.approx((math.log(4) + math.log(4 / 3)) / 2)


@pytest.mark.parametrize("shape", [(5,), (5, 2), (5, 3, 4)])
def test_one_hot_probabilities_give_what_ids_give(shape: tuple[int, ...]) -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(shape[0], 7, *shape[1:], generator=rng)
    ids = torch.randint(7, shape, generator=rng)
    for reduction in ("mean", "sum"):
        hard = soft_cross_entropy(logits, ids, reduction)
        torch.testing.assert_close(soft_cross_entropy(logits, one_hot(ids, 7), reduction), hard)


def test_half_precision_logits_keep_the_precision_of_the_probabilities() -> None:
    logits = torch.tensor([[0.0, 1.0]], dtype=torch.bfloat16)
    assert soft_cross_entropy(logits, torch.tensor([[0.05, 0.95]])).dtype == torch.float32


def test_targets_that_are_neither_are_refused_with_both_shapes() -> None:
    with pytest.raises(ValueError, match=r"ids of shape \[2\] or probabilities of shape \[2, 3\], but got float32 of"):
        is_soft(torch.zeros(2, 3), torch.zeros(2))
