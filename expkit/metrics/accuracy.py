"""Accuracy of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expkit.metrics._means import ClassifierMetric


@dataclass
class Accuracy(ClassifierMetric):
    """Share of places, samples or tokens, whose largest output is the target, over all that were seen."""

    def open(self) -> Any:
        from expkit.functional import metrics

        return metrics.Accuracy(self.class_axis, self.shift)
