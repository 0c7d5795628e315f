"""Adam with decoupled weight decay. Loshchilov and Hutter 2017, arXiv 1711.05101."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.contracts import Optimizer


@dataclass
class AdamW(Optimizer):
    """Adam whose weight decay acts on the weights themselves: the optimizer of most language recipes."""

    lr: Annotated[float, Field(ge=0)] = 1e-3
    """Learning rate that the schedule multiplies."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.9, 0.999)
    """How slowly the averages of the gradient and of its square forget."""
    eps: Annotated[float, Field(gt=0)] = 1e-8
    """Added to the denominator, so that it is never 0."""
    weight_decay: Annotated[float, Field(ge=0)] = 1e-2
    """Weights shrink by this times the learning rate in each step."""

    def build(self, params: Iterable[Any]) -> Any:
        from torch.optim import AdamW as Torch

        return Torch(params, lr=self.lr, betas=self.betas, eps=self.eps, weight_decay=self.weight_decay)
