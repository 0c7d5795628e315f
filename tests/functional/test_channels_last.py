from __future__ import annotations

import torch
from torch import nn

from expkit.functional.channels_last import apply_channels_last, to_channels_last


def test_only_strides_change_and_parameters_stay_the_same_objects() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 4, 2))
    before = [(p, p.detach().clone()) for p in model.parameters()]
    assert apply_channels_last(model) == 1
    assert model[0].weight.stride() == (27, 1, 9, 3)
    for parameter, (same, value) in zip(model.parameters(), before, strict=True):
        assert parameter is same
        assert torch.equal(parameter, value)
    assert apply_channels_last(model) == 0  # the second time there is nothing to move


def test_a_model_of_matrices_and_one_by_one_kernels_has_nothing_to_move() -> None:
    assert apply_channels_last(nn.Sequential(nn.Linear(3, 2), nn.Conv2d(8, 4, 1))) == 0  # one pixel has one order


def test_images_are_laid_out_anew_and_all_else_is_given_back() -> None:
    images = torch.arange(48.0).view(2, 3, 2, 4)
    moved = to_channels_last(images)
    assert torch.equal(moved, images)
    assert moved.stride() == (24, 1, 12, 3)
    assert to_channels_last(moved) is moved
    ids = torch.zeros(2, 5)
    assert to_channels_last(ids) is ids
