from __future__ import annotations

import pytest
import torch

from expkit.functional.losses import soft_cross_entropy
from expkit.functional.mixing import Mix, draw_beta, draw_partners

SWAP = Mix(torch.tensor([1, 0]), 0.25)


def test_targets_hand_computed_from_ids_and_from_probabilities() -> None:
    logits = torch.zeros(2, 3)
    from_ids = SWAP.targets(logits, torch.tensor([0, 2]))
    assert from_ids.tolist() == [[0.75, 0, 0.25], [0.25, 0, 0.75]]
    assert SWAP.targets(logits, torch.tensor([[1.0, 0, 0], [0, 0, 1.0]])).tolist() == from_ids.tolist()
    assert SWAP.targets(logits.bfloat16(), torch.tensor([0, 2])).dtype == torch.float32


@pytest.mark.parametrize("shape", [(6,), (6, 5)])
def test_mixed_losses_are_the_loss_of_mixed_targets(shape: tuple[int, ...]) -> None:
    rng = torch.Generator().manual_seed(0)
    outputs = torch.randn(6, 4, *shape[1:], generator=rng)
    targets = torch.randint(4, shape, generator=rng)
    by = Mix(draw_partners(6, rng), 0.3)
    whole = soft_cross_entropy(outputs, by.targets(outputs, targets))
    torch.testing.assert_close(by.loss(soft_cross_entropy)(outputs, targets), whole)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 5.0])
def test_coefficients_have_mean_and_variance_of_the_beta_distribution(alpha: float) -> None:
    rng = torch.Generator().manual_seed(0)
    drawn = torch.tensor([draw_beta(alpha, rng) for _ in range(4000)])
    assert drawn.mean() == pytest.approx(0.5, abs=0.03)
    assert drawn.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)


def test_tiny_and_huge_alphas_are_numbers() -> None:
    rng = torch.Generator().manual_seed(0)
    assert all(0 <= draw_beta(alpha, rng) <= 1 for alpha in (1e-12, 1e-3, 1000.0) for _ in range(50))


def test_draws_come_from_the_generator_given() -> None:
    def draws(seed: int) -> tuple[float, list[int]]:
        rng = torch.Generator().manual_seed(seed)
        torch.rand(3)
        return draw_beta(1.0, rng), draw_partners(9, rng).tolist()

    assert draws(1) == draws(1) != draws(2)
    assert sorted(draws(1)[1]) == list(range(9))
