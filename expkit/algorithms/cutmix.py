"""CutMix: a box of each image comes from another one, and the targets are mixed by the area of the box."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.algorithm import Algorithm


@dataclass
class CutMix(Algorithm):
    """Trains on images with a box of another, one box and one pairing a microbatch: less overfitting over long runs.

    Metrics see the targets that the data set gave. `train/loss` is that of the mixed samples and stays higher. Targets
    that are images of the same height and width get the box as well, and are not mixed.
    """

    conflicts = frozenset({"mixup"})
    requires = frozenset({"images", "soft_targets"})
    before = frozenset({"label_smoothing"})
    changes_targets = True
    exact_under_microbatching = False
    paper = "Yun et al. 2019, CutMix: Regularization Strategy to Train Strong Classifiers, arXiv 1905.04899"

    alpha: Annotated[float, Field(ge=0, le=1000)] = 1.0
    """The area of the box is drawn from Beta(alpha, alpha), before the border cuts it off; 0 changes nothing."""
    uniform_sampling: bool = False
    """Whether every pixel is equally likely to be cut; the paper cuts those in the middle more often."""
    interpolate_loss: bool = False
    """Whether two losses are mixed instead of two targets, for losses that take class ids only."""
    _box: Any = field(default=None, init=False, repr=False, compare=False)
    _mix: Any = field(default=None, init=False, repr=False, compare=False)
    _targets: Any = field(default=None, init=False, repr=False, compare=False)
    _loss_fn: Any = field(default=None, init=False, repr=False, compare=False)

    def needs(self) -> frozenset[str]:
        """Soft targets, unless losses are mixed."""
        return self.requires - {"soft_targets"} if self.interpolate_loss else self.requires

    def before_forward(self, state: Any, logger: Any) -> None:
        from expkit.functional import cutmix as functional

        self._forget(state)  # what an attempt that broke off may have left
        images = state.inputs
        if self.alpha == 0 or getattr(images, "ndim", 0) != 4 or len(images) < 2:
            return
        rng = state.rng("cutmix", state.microbatch, state.timestamp.batch)
        mix, box = functional.draw_mix(images, self.alpha, self.uniform_sampling, rng)
        if mix.share > 0:
            self._mix, self._box = mix, box
            state.inputs = functional.paste(images, mix.partners, box)

    def before_loss(self, state: Any, logger: Any) -> None:
        from expkit.functional.cutmix import paste

        if self._mix is None:
            return
        images, targets = state.inputs, state.targets
        if targets.ndim >= 3 and targets.shape[-2:] == images.shape[-2:]:
            self._targets = targets
            state.targets = paste(targets, self._mix.partners, self._box)
        elif self.interpolate_loss:
            self._loss_fn = state.loss_fn
            state.loss_fn = self._mix.loss(state.loss_fn)  # sees what later methods make of the targets
        else:
            self._targets = targets
            state.targets = self._mix.targets(state.logits, targets)
        self.effective = True

    def after_loss(self, state: Any, logger: Any) -> None:

        if self._targets is not None:
            state.targets = self._targets  # metrics want class ids
        self._forget(state)

    def _forget(self, state: Any) -> None:
        if self._loss_fn is not None:
            state.loss_fn = self._loss_fn
        self._mix = self._box = self._targets = self._loss_fn = None
