"""Stochastic gradient descent with decoupled weight decay. Loshchilov and Hutter 2017, arXiv 1711.05101."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.functional.sgd import require_momentum
from expkit.trainer.contracts import Optimizer


@dataclass
class DecoupledSGD(Optimizer):
    """Gradient descent whose weight decay does not depend on the learning rate, so that each can be tuned alone.

    Weights are multiplied by 1 - lr / initial_lr * weight_decay in each step. With sgd it would be 1 - lr *
    weight_decay: its 5e-4 at lr 0.1 is 5e-5 here.
    """

    lr: Annotated[float, Field(ge=0)] = 0.1
    """Learning rate that the schedule multiplies."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the last step's direction that is kept."""
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the weights that a step at the full rate takes away, whatever the rate is; warns from 1e-3 on."""
    nesterov: bool = False
    """Whether the gradient is taken ahead of the momentum; needs momentum."""
    dampening: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the gradient that does not enter the momentum."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_momentum(self.nesterov, self.momentum, self.dampening)

    def build(self, params: Iterable[Any]) -> Any:
        from expkit.functional.decoupled import DecoupledSGDW

        return DecoupledSGDW(params, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay,
                             nesterov=self.nesterov, dampening=self.dampening)  # fmt: skip
