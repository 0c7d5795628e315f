from __future__ import annotations

import pytest
import torch
from torch import nn

from expkit.functional.ema import places_of, smoothing_of, swap, update


def test_half_of_the_old_average_is_left_after_a_half_life() -> None:
    average, current = torch.tensor([1.0]), torch.tensor([0.0])
    for _ in range(12):
        update([average], [current], smoothing_of(12))
    assert average.item() == pytest.approx(0.5)
    assert smoothing_of(12, update_interval=12) == 0.5


def test_hand_computed() -> None:
    average = torch.tensor([1.0, 2.0])
    update([average], [torch.tensor([3.0, 2.0])], 0.75)
    assert average.tolist() == [1.5, 2.0]


def test_whole_numbers_are_copied_never_truncated_defect_D11() -> None:
    average, current = torch.tensor(3), torch.tensor(10)
    update([average], [current], 0.99)
    assert average.item() == 10
    flags = torch.tensor([True, False])
    update([flags], [torch.tensor([False, False])], 0.99)
    assert flags.tolist() == [False, False]


def test_places_hold_each_tensor_once_and_see_a_replaced_one() -> None:
    shared = nn.Linear(2, 2)
    module = nn.Sequential(shared, nn.BatchNorm1d(2), shared)
    places = places_of(module)
    assert list(places) == ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
                            "1.num_batches_tracked"]  # fmt: skip
    module[1].running_mean = torch.ones(2)
    tensors, key = places["1.running_mean"]
    assert tensors[key].tolist() == [1.0, 1.0]


def test_swapping_twice_leaves_every_bit() -> None:
    weight = nn.Parameter(torch.tensor([0.1, 0.2]))
    held = [torch.tensor([0.3, 0.4])]
    pointer = weight.data_ptr()
    swap(held, [weight])
    assert weight.tolist() == pytest.approx([0.3, 0.4]) and held[0].tolist() == pytest.approx([0.1, 0.2])
    swap(held, [weight])
    assert weight.data_ptr() == pointer
