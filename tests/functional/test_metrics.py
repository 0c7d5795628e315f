from __future__ import annotations

import math

import pytest
import torch

from expkit.functional.metrics import Accuracy, CrossEntropy, classification


def test_batches_weigh_what_they_hold_defect_D24() -> None:
    accuracy = Accuracy()
    accuracy.update(torch.tensor([[2.0, 1.0], [0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 1, 0]))
    accuracy.update(torch.tensor([[2.0, 1.0]]), torch.tensor([1]))
    assert accuracy.compute() == 2 / 4  # the mean of batch means would be 1/3

    entropy = CrossEntropy()
    entropy.update(torch.zeros(3, 2), torch.tensor([0, 1, 0]))
    entropy.update(torch.zeros(1, 4), torch.tensor([1]))
    assert entropy.compute() == pytest.approx((3 * math.log(2) + math.log(4)) / 4)


def test_soft_targets_count_by_their_largest_class() -> None:
    accuracy = Accuracy()
    accuracy.update(torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([[0.9, 0.1], [0.8, 0.2]]))
    assert accuracy.compute() == 0.5


def test_places_to_ignore_count_nowhere() -> None:
    outputs = torch.zeros(1, 2, 3)
    for metric, expected in ((Accuracy(), 0.5), (CrossEntropy(), math.log(2))):
        metric.update(outputs, torch.tensor([[0, 1, -100]]))
        assert metric.compute() == pytest.approx(expected)


def test_nothing_seen_is_nan_and_reset_forgets() -> None:
    for metric in classification().values():
        assert math.isnan(metric.compute())
        metric.update(torch.zeros(1, 2), torch.tensor([0]))
        metric.reset()
        assert math.isnan(metric.compute())
