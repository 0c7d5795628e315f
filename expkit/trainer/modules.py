"""Modules: what was given as a model, and the optimizer of its parameters; what could train nothing is refused."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch
from torch import nn

from expkit import plugins
from expkit.errors import UsageError
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.arguments import instead, refuse
from expkit.trainer.calling import parameters
from expkit.trainer.compilation import unwrapped
from expkit.trainer.contracts import Model, Optimizer

_LOG = logging.getLogger(__name__)
_NO_FORWARD = nn.Module.forward


def module_of(given: Model | nn.Module) -> nn.Module:
    """The module to train; UsageError for what is none, or is not ready to be."""
    made = given.build() if isinstance(given, Model) else given
    if not isinstance(made, nn.Module):
        refuse("model", "a torch.nn.Module, or a model of expkit", made, instead(made))
    if "_parameters" not in vars(made):
        raise UsageError(f"model {type(made).__name__} is not ready: its __init__ must call super().__init__() first")
    module = unwrapped(made)
    if type(module).forward is _NO_FORWARD and "forward" not in vars(module):
        raise UsageError(f"model {type(module).__name__} has no forward(...), so it cannot be called with a batch")
    if empty := [name for name, tensor in _tensors(module) if tensor.is_meta]:
        raise UsageError(f"model {type(module).__name__} has no values for {empty[0]}, which is on the device meta; "
                         f"call model.to_empty(device='cpu') and initialise it or load its weights")  # fmt: skip
    return module


def optimizer_of(given: Any, model: nn.Module, loss_fn: Any = None) -> torch.optim.Optimizer:
    """The optimizer of the model's parameters; one that nobody chose says so, and how it steps.

    UsageError for one that was made for other parameters. Those of `loss_fn` may be in it as well; what it leaves out
    although it could be trained is said in the log.
    """
    if not any(True for _ in model.parameters()):
        raise UsageError(f"model {type(model).__name__} has no parameters, so there is nothing to train")
    given = _alone(given)
    if given is None:
        given = cast(Optimizer, plugins.build("optimizers", "sgd", {}))
        _LOG.warning("no optimizer was given: training with %s", given)
    if isinstance(given, Optimizer):
        given = given.build(model.parameters())
    if isinstance(given, type) or not _is_optimizer(given):
        refuse("optimizers", "an optimizer of expkit or of torch", given, instead(given, "model.parameters(), lr=..."))
    _check_parameters(given, model, loss_fn)
    _check_rates(given)
    return given  # type: ignore[no-any-return]


def who_needs_closure(algorithms: Mapping[str, Algorithm], optimizer: torch.optim.Optimizer) -> list[str]:
    """Who computes gradients more than once a step: methods, by their labels, and an optimizer such as LBFGS."""
    closure = parameters(optimizer.step).get("closure")
    wanted = closure is not None and closure.default is closure.empty
    methods = [label for label, algorithm in algorithms.items() if algorithm.needs_closure]
    return [*methods, *[type(optimizer).__name__] * wanted]


def _tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _alone(given: Any) -> Any:
    """What is alone in a list, as Composer takes it."""
    if not isinstance(given, (list, tuple)):
        return given
    if len(given) != 1:
        raise UsageError(f"optimizers must be one optimizer, but got {len(given)}; give it several parameter groups")
    return given[0]


def _is_optimizer(given: Any) -> bool:
    return all(hasattr(given, name) for name in ("param_groups", "state", "step", "state_dict", "load_state_dict"))


def _check_parameters(optimizer: torch.optim.Optimizer, model: nn.Module, loss_fn: Any) -> None:
    own = {id(p) for p in model.parameters()}
    beside = {id(p) for p in loss_fn.parameters()} if isinstance(loss_fn, nn.Module) else set()
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not stepped & own:
        raise UsageError(f"optimizers: {type(optimizer).__name__} has none of the model's parameters, so the model "
                         f"would never change; make it with the parameters of the model that is given")  # fmt: skip
    if strangers := len(stepped - own - beside):
        _LOG.warning("%s has %d of its %d parameters from elsewhere than the model and the loss",
                     type(optimizer).__name__, strangers, len(stepped))  # fmt: skip
    left = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in stepped]
    if left:
        _LOG.warning("%s leaves out %d parameters that could be trained, such as %s: they stay as they are",
                     type(optimizer).__name__, len(left), left[0])  # fmt: skip


def _check_rates(optimizer: torch.optim.Optimizer) -> None:
    for place, group in enumerate(optimizer.param_groups):
        if not 0 <= float(group.get("lr", 0.0)) < math.inf:
            raise UsageError(f"optimizers: the learning rate of {type(optimizer).__name__} must be finite and not "
                             f"negative, but it is {float(group['lr'])} in parameter group {place}")  # fmt: skip
