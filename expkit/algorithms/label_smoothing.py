"""Label smoothing: the loss sees softened targets, everybody else the ones that the data set gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.algorithm import Algorithm


@dataclass
class LabelSmoothing(Algorithm):
    """Spreads part of each target's certainty over all classes: less overconfident, often a little more accurate."""

    requires = frozenset({"soft_targets"})
    after = frozenset({"mixup", "cutmix"})
    changes_targets = True
    paper = "Szegedy et al. 2015, Rethinking the Inception Architecture for Computer Vision, arXiv 1512.00567"

    smoothing: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of each target that is spread evenly over all classes; 0 changes nothing."""
    _given: Any = field(default=None, init=False, repr=False, compare=False)

    def before_loss(self, state: Any, logger: Any) -> None:
        from expkit.functional.label_smoothing import smooth

        if self.smoothing == 0:
            return
        self._given = state.targets
        state.targets = smooth(state.logits, self._given, self.smoothing)
        self.effective = True

    def after_loss(self, state: Any, logger: Any) -> None:

        if self._given is not None:
            state.targets = self._given  # metrics want class ids
            self._given = None
