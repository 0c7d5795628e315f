"""MixUp: the model sees weighted means of two samples and is asked for the same mean of their targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.algorithm import Algorithm


@dataclass
class MixUp(Algorithm):
    """Trains on means of two samples, one coefficient and one pairing a microbatch: less overfitting over long runs.

    Metrics see the targets that the data set gave. `train/loss` is that of the mixed samples and stays higher.
    """

    conflicts = frozenset({"cutmix"})
    requires = frozenset({"soft_targets"})
    before = frozenset({"label_smoothing"})
    changes_targets = True
    exact_under_microbatching = False
    paper = "Zhang et al. 2017, mixup: Beyond Empirical Risk Minimization, arXiv 1710.09412"

    alpha: Annotated[float, Field(ge=0, le=1000)] = 0.2
    """Coefficients are drawn from Beta(alpha, alpha): small ones hardly mix, 1 mixes evenly; 0 changes nothing."""
    interpolate_loss: bool = False
    """Whether two losses are mixed instead of two targets, for losses that take class ids only."""
    _mix: Any = field(default=None, init=False, repr=False, compare=False)
    _targets: Any = field(default=None, init=False, repr=False, compare=False)
    _loss_fn: Any = field(default=None, init=False, repr=False, compare=False)

    def needs(self) -> frozenset[str]:
        """Soft targets, unless losses are mixed."""
        return self.requires - {"soft_targets"} if self.interpolate_loss else self.requires

    def before_forward(self, state: Any, logger: Any) -> None:
        from expkit.functional import mixup as functional
        from expkit.functional.mixing import is_mixable

        self._forget(state)  # what an attempt that broke off may have left
        inputs, num_samples = state.inputs, state.num_samples
        if self.alpha == 0 or num_samples < 2 or not is_mixable(inputs):
            return
        rng = state.rng("mixup", state.microbatch, state.timestamp.batch)
        self._mix = functional.draw_mix(num_samples, self.alpha, rng)
        state.inputs = functional.mix(inputs, self._mix)

    def before_loss(self, state: Any, logger: Any) -> None:

        if self._mix is None:
            return
        if self.interpolate_loss:
            self._loss_fn = state.loss_fn
            state.loss_fn = self._mix.loss(state.loss_fn)  # sees what later methods make of the targets
        else:
            self._targets = state.targets
            state.targets = self._mix.targets(state.logits, self._targets)
        self.effective = True

    def after_loss(self, state: Any, logger: Any) -> None:

        if self._targets is not None:
            state.targets = self._targets  # metrics want class ids
        self._forget(state)

    def _forget(self, state: Any) -> None:
        if self._loss_fn is not None:
            state.loss_fn = self._loss_fn
        self._mix = self._targets = self._loss_fn = None
