"""What the metrics of a classifier share: where its classes are, and sums that are opened with the first batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.contracts import Metric


@dataclass
class ClassifierMetric(Metric):
    """A mean over places: class ids of -100 count nowhere."""

    class_axis: int = 1
    """The axis of outputs that has one number a class: 1 as torch's losses want it, -1 for Hugging Face's language
    models, whose logits are (batch, sequence, vocabulary)."""
    shift: Annotated[int, Field(ge=0)] = 0
    """How many places outputs are ahead: 1 where labels are the inputs themselves, as causal language models have
    them, so that the output at place t is compared with the label at t + 1; 0 where labels are shifted already."""
    _sums: Any = field(default=None, init=False, repr=False, compare=False)

    def open(self) -> Any:
        """Sums of nothing, one of `functional/metrics.py`."""
        raise NotImplementedError

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
            self._sums = self.open()
        return self._sums
