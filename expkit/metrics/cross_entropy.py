"""Cross-entropy of a classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from expkit.trainer.contracts import Metric


@dataclass
class CrossEntropy(Metric):
    """Mean cross-entropy in nats over all samples seen, whatever the sizes of their batches."""

    _sums: Any = field(default=None, init=False, repr=False, compare=False)

    def reset(self) -> None:
        self._sums = None

    def update(self, outputs: Any, targets: Any) -> None:
        self._opened().update(outputs, targets)

    def compute(self) -> float:
        return float("nan") if self._sums is None else float(self._sums.compute())

    def totals(self) -> list[float]:
        return self._opened().totals()  # type: ignore[no-any-return]

    def set_totals(self, totals: list[float]) -> None:
        self._opened().set_totals(totals)

    def _opened(self) -> Any:
        if self._sums is None:
            from expkit.functional.metrics import CrossEntropy as Sums

            self._sums = Sums()
        return self._sums
