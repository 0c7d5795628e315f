from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch

from expkit.functional.colout import draw_kept, draw_kept_each, keep, num_kept


@pytest.mark.parametrize(
    ("size", "share", "kept"), [(28, 0.15, 23), (20, 0.15, 17), (10, 0.1, 9), (10, 0.9, 1), (3, 0.99, 1), (7, 0.0, 7)]
)
def test_how_many_are_left_is_rounded_down_and_never_none(size: int, share: float, kept: int) -> None:
    assert num_kept(size, share) == kept


def test_survivors_keep_their_order_hand_computed() -> None:
    images = torch.arange(12.0).view(1, 1, 3, 4)
    left = keep(images, torch.tensor([0, 2]), torch.tensor([1, 3]))
    assert left.tolist() == [[[[1, 3], [9, 11]]]]


def test_each_sample_may_lose_its_own() -> None:
    images = torch.arange(24.0).view(2, 1, 3, 4)
    left = keep(images, torch.tensor([[0, 2], [0, 1]]), torch.tensor([[1, 3], [0, 1]]))
    assert left.tolist() == [[[[1, 3], [9, 11]]], [[[12, 13], [16, 17]]]]
    labels = keep(torch.arange(24).view(2, 3, 4), torch.tensor([[0, 2], [0, 1]]), torch.tensor([[1, 3], [0, 1]]))
    assert torch.equal(labels, left.squeeze(1).long())


def test_every_choice_is_equally_likely() -> None:
    rng = torch.Generator().manual_seed(0)
    together = Counter(tuple(draw_kept(4, 2, rng).tolist()) for _ in range(6000))
    each = Counter(map(tuple, draw_kept_each(6000, 4, 2, rng).tolist()))
    for counts in (together, each):
        assert counts.keys() == set(itertools.combinations(range(4), 2))
        assert all(abs(count - 1000) < 150 for count in counts.values())  # five standard deviations
