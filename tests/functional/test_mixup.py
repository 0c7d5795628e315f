from __future__ import annotations

import torch

from expkit.functional.mixing import Mix
from expkit.functional.mixup import draw_mix, mix


def test_inputs_hand_computed_and_the_given_ones_stay() -> None:
    given = torch.tensor([[0.0, 4.0], [8.0, 0.0]])
    assert mix(given, Mix(torch.tensor([1, 0]), 0.25)).tolist() == [[2.0, 3.0], [6.0, 1.0]]
    assert given.tolist() == [[0.0, 4.0], [8.0, 0.0]]


def test_the_own_share_is_never_the_smaller_one() -> None:
    rng = torch.Generator().manual_seed(0)
    shares = [draw_mix(4, 1.0, rng).share for _ in range(300)]
    assert 0.4 < max(shares) <= 0.5
    assert min(shares) < 0.05


def test_alpha_zero_takes_nothing_of_the_partner() -> None:
    assert draw_mix(4, 0.0, torch.Generator()).share == 0
