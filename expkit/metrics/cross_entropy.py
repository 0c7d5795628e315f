"""Cross-entropy of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expkit.metrics._means import ClassifierMetric


@dataclass
class CrossEntropy(ClassifierMetric):
    """Mean cross-entropy in nats over all places seen, samples or tokens, whatever the sizes of their batches."""

    def open(self) -> Any:
        from expkit.functional import metrics

        return metrics.CrossEntropy(self.class_axis, self.shift)
