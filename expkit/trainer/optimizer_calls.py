"""Optimizer calls: forget gradients and step, without what torch puts around both for tools that are not at work.

Around `step` and `zero_grad` torch opens a range for its profiler and asks for hooks; with small tensors that takes 55
and 20 microseconds, as long as the step itself. What the weights become is the same, bit by bit.
"""

from __future__ import annotations

import torch
from torch.optim import optimizer as torch_optimizer

_AROUND = torch.optim.Optimizer.profile_hook_step(lambda: None).__code__
"""Of the function that torch puts in place of each optimizer's own `step`."""
_HOOKS_OF_ALL = (torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks)


def forget_gradients(optimizer: torch.optim.Optimizer) -> None:
    """What `optimizer.zero_grad()` does."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def step(optimizer: torch.optim.Optimizer) -> None:
    """What `optimizer.step()` does, through all that is around it where a hook, a profiler or anybody else is there."""
    given = type(optimizer).step
    if getattr(given, "__code__", None) is not _AROUND or _is_watched(optimizer):
        optimizer.step()
    else:
        given.__wrapped__(optimizer)  # type: ignore[attr-defined]


def _is_watched(optimizer: torch.optim.Optimizer) -> bool:
    before, after = _HOOKS_OF_ALL
    return bool(
        optimizer._optimizer_step_pre_hooks
        or optimizer._optimizer_step_post_hooks
        or before
        or after
        or "step" in vars(optimizer)  # one of its own, as torch's schedulers give it
        or torch.autograd._profiler_enabled()  # type: ignore[attr-defined]
    )
