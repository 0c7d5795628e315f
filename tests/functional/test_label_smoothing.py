from __future__ import annotations

import pytest
import torch

from expkit.functional.label_smoothing import smooth
from expkit.functional.losses import soft_cross_entropy


def test_hand_computed_from_ids() -> None:
    smoothed = smooth(torch.zeros(2, 4), torch.tensor([1, 3]), 0.2)
    expected = torch.tensor([[0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85]])
    torch.testing.assert_close(smoothed, expected)


def test_hand_computed_from_probabilities_and_they_stay_as_they_are() -> None:
    given = torch.tensor([[0.5, 0.5, 0.0, 0.0]])
    smoothed = smooth(torch.zeros(1, 4), given, 0.1)
    torch.testing.assert_close(smoothed, torch.tensor([[0.475, 0.475, 0.025, 0.025]]))
    assert given.tolist() == [[0.5, 0.5, 0.0, 0.0]]


@pytest.mark.parametrize("shape", [(6,), (6, 5)])
def test_loss_is_that_of_torchs_own_label_smoothing(shape: tuple[int, ...]) -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 10, *shape[1:], generator=rng)
    ids = torch.randint(10, shape, generator=rng)
    ours = soft_cross_entropy(logits, smooth(logits, ids, 0.1))
    torch.testing.assert_close(ours, torch.nn.functional.cross_entropy(logits, ids, label_smoothing=0.1))


def test_no_smoothing_is_one_hot_and_all_of_it_is_uniform() -> None:
    assert smooth(torch.zeros(1, 2), torch.tensor([0]), 0.0).tolist() == [[1.0, 0.0]]
    assert smooth(torch.zeros(1, 2), torch.tensor([0]), 1.0).tolist() == [[0.5, 0.5]]


def test_half_precision_logits_get_float32_targets() -> None:
    smoothed = smooth(torch.zeros(1, 10, dtype=torch.bfloat16), torch.tensor([0]), 0.1)
    assert smoothed[0, 0].item() == pytest.approx(0.91, abs=1e-6)
