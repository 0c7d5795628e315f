"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.functional.sgd import require_momentum
from expkit.trainer.contracts import Optimizer


@dataclass
class SGD(Optimizer):
    """Gradient descent with momentum: the optimizer of most image recipes."""

    lr: Annotated[float, Field(ge=0)] = 0.1
    """Learning rate that the schedule multiplies."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the last step's direction that is kept."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Added to the gradient as this times the weights."""
    nesterov: bool = False
    """Whether the gradient is taken ahead of the momentum; needs momentum."""
    dampening: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the gradient that does not enter the momentum."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_momentum(self.nesterov, self.momentum, self.dampening)

    def build(self, params: Iterable[Any]) -> Any:
        from torch.optim import SGD as Torch

        return Torch(params, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay,
                     nesterov=self.nesterov, dampening=self.dampening)  # fmt: skip
