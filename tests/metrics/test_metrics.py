from __future__ import annotations

import math

import pytest
import torch

from expkit.metrics.accuracy import Accuracy
from expkit.metrics.cross_entropy import CrossEntropy


def test_accuracy_weighs_samples_not_batches_defect_D24() -> None:
    metric = Accuracy()
    metric.update(torch.tensor([[2.0, 1.0], [0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 1, 0]))
    metric.update(torch.tensor([[2.0, 1.0]]), torch.tensor([1]))
    assert metric.compute() == 0.5


def test_cross_entropy_in_nats() -> None:
    metric = CrossEntropy()
    metric.update(torch.zeros(2, 4), torch.tensor([0, 3]))
    assert metric.compute() == pytest.approx(math.log(4))
