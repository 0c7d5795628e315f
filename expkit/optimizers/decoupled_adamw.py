"""Adam with weight decay decoupled from the learning rate too. Loshchilov and Hutter 2017, arXiv 1711.05101."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.contracts import Optimizer


@dataclass
class DecoupledAdamW(Optimizer):
    """Adam whose weight decay does not depend on the learning rate, so that each can be tuned alone.

    Weights are multiplied by 1 - lr / initial_lr * weight_decay in each step. With adamw it would be 1 - lr *
    weight_decay: its 1e-2 at lr 1e-3 is 1e-5 here.
    """

    lr: Annotated[float, Field(ge=0)] = 1e-3
    """Learning rate that the schedule multiplies."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.9, 0.95)
    """How slowly the averages of the gradient and of its square forget."""
    eps: Annotated[float, Field(gt=0)] = 1e-8
    """Added to the denominator, so that it is never 0."""
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 1e-5
    """Share of the weights that a step at the full rate takes away, whatever the rate is; warns from 1e-3 on."""
    amsgrad: bool = False
    """Whether the largest average of the square so far divides, not the present one."""

    def build(self, params: Iterable[Any]) -> Any:
        from expkit.functional.decoupled import DecoupledAdamW as Torch

        return Torch(params, lr=self.lr, betas=self.betas, eps=self.eps, weight_decay=self.weight_decay,
                     amsgrad=self.amsgrad)  # fmt: skip
