"""Optimizers whose weight decay does not depend on the learning rate. Loshchilov and Hutter 2017, arXiv 1711.05101.

Each step multiplies the weights by 1 - lr / initial_lr * weight_decay and then does what torch's optimizer does without
decay; so weight_decay is the share of the weights lost in a step at the full rate, and follows the schedule. In torch's
own AdamW the share is lr * weight_decay: its 1e-2 at lr 1e-3 is 1e-5 here. The classes bear Composer's names.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.optimizer import Optimizer, ParamsT
from torch.optim.sgd import sgd

STRONG = 1e-3
"""A decay per step from which on one may ask whether it was meant; weights are halved in 700 steps."""


class DecoupledSGDW(Optimizer):
    """Stochastic gradient descent whose decay is a share of the weights in each step at the full rate."""

    def __init__(
        self,
        params: ParamsT,
        lr: float,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        """As torch's SGD, but for `weight_decay`; warns from 1e-3 on."""
        settings = {"momentum": momentum, "dampening": dampening, "nesterov": nesterov}
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, **settings})
        _settle(self)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step; `closure` computes loss and gradients anew."""
        loss = _loss_of(closure)
        for group in self.param_groups:
            params = _decayed(group)
            state = [self.state[p] for p in params]
            momenta = [s.get("momentum_buffer") for s in state] if group["momentum"] else []
            sgd(
                params,
                [_grad(p) for p in params],
                momenta,
                has_sparse_grad=any(_grad(p).is_sparse for p in params),
                weight_decay=0.0,
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=False,
            )
            for s, momentum in zip(state, momenta, strict=bool(momenta)):
                s["momentum_buffer"] = momentum
        return loss


class DecoupledAdamW(Optimizer):
    """Adam whose decay is a share of the weights in each step at the full rate."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
        weight_decay: float = 1e-5,
        amsgrad: bool = False,
    ) -> None:
        """As torch's AdamW, but for `weight_decay`; warns from 1e-3 on."""
        settings = {"betas": betas, "eps": eps, "amsgrad": amsgrad}
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, **settings})
        _settle(self)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step; `closure` computes loss and gradients anew."""
        loss = _loss_of(closure)
        for group in self.param_groups:
            params = _decayed(group)
            state = [self.state[p] or self._begun(p, group["amsgrad"]) for p in params]
            adamw(
                params,
                [_grad(p) for p in params],
                [s["exp_avg"] for s in state],
                [s["exp_avg_sq"] for s in state],
                [s["max_exp_avg_sq"] for s in state] if group["amsgrad"] else [],
                [s["step"] for s in state],
                amsgrad=group["amsgrad"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=0.0,
                eps=group["eps"],
                maximize=False,
                has_complex=any(p.is_complex() for p in params),
            )
        return loss

    def _begun(self, p: Tensor, amsgrad: bool) -> dict[str, Any]:
        averages = ["exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * amsgrad]
        zeros = {name: torch.zeros_like(p, memory_format=torch.preserve_format) for name in averages}
        state = self.state[p] = {"step": torch.tensor(0.0), **zeros}
        return state


def decay_of(lr: float, initial_lr: float, weight_decay: float) -> float:
    """Share of the weights that a step takes away; the full `weight_decay` where the rate started at 0."""
    return weight_decay * (lr / initial_lr if initial_lr else 1.0)


def _settle(optimizer: Optimizer) -> None:
    """Keep the full rates, which decay is relative to, and warn of a decay that looks like one meant for AdamW."""
    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    strongest = max(optimizer.param_groups, key=lambda group: float(group["weight_decay"]))
    lr, decay = strongest["lr"], strongest["weight_decay"]
    if decay >= STRONG:
        halved = "in one step" if decay >= 0.5 else f"every {math.ceil(math.log(2) / -math.log1p(-decay))} steps"
        warnings.warn(
            f"weight_decay={decay:g} of {type(optimizer).__name__} is not multiplied by the learning rate: at the full "
            f"rate each step takes {decay:.3%} of the weights, which halves them {halved}; what AdamW does with "
            f"{decay:g} at lr={lr:g} is weight_decay={decay * lr:g} here",
            stacklevel=3,
        )


def _decayed(group: dict[str, Any]) -> list[Tensor]:
    """The parameters of a group that have gradients, their decay done."""
    params = [p for p in group["params"] if p.grad is not None]
    decay = decay_of(group["lr"], group.get("initial_lr", group["lr"]), group["weight_decay"])
    if params and decay:
        torch._foreach_mul_(params, 1 - decay)
    return params


def _grad(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad


def _loss_of(closure: Callable[[], float] | None) -> float | None:
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()
