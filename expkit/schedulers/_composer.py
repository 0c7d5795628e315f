"""Composer's names of schedules: `CosineAnnealingWithWarmupScheduler(t_warmup="1ep")` is our cosine with a warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from expkit import plugins

_NAMES = {
    "StepScheduler": ("step", "step_size", "gamma"),
    "MultiStepScheduler": ("multi_step", "milestones", "gamma"),
    "ConstantScheduler": ("constant", "alpha", "t_max"),
    "LinearScheduler": ("linear", "alpha_i", "alpha_f", "t_max"),
    "ExponentialScheduler": ("exponential", "gamma", "decay_period"),
    "CosineAnnealingScheduler": ("cosine", "t_max", "alpha_f"),
    "CosineAnnealingWarmRestartsScheduler": ("cosine_warm_restarts", "t_0", "t_mult", "alpha_f"),
    "PolynomialScheduler": ("polynomial", "power", "t_max", "alpha_f"),
    "MultiStepWithWarmupScheduler": ("multi_step", "t_warmup", "milestones", "gamma", "scale_warmup"),
    "ConstantWithWarmupScheduler": ("constant", "t_warmup", "alpha", "t_max", "scale_warmup"),
    "LinearWithWarmupScheduler": ("linear", "t_warmup", "alpha_i", "alpha_f", "t_max", "scale_warmup"),
    "CosineAnnealingWithWarmupScheduler": ("cosine", "t_warmup", "t_max", "alpha_f", "scale_warmup"),
    "PolynomialWithWarmupScheduler": ("polynomial", "t_warmup", "power", "t_max", "alpha_f", "scale_warmup"),
}
"""Our plug-in and the arguments in Composer's order; `t_warmup` is our `warmup`."""


def maker(name: str) -> Callable[..., Any] | None:
    """What makes our plug-in from Composer's arguments; None for a name that is not Composer's."""
    if name not in _NAMES:
        return None
    plugin, *arguments = _NAMES[name]

    def make(*given: Any, **named: Any) -> Any:
        if len(given) > len(arguments):
            raise TypeError(f"{name} takes {', '.join(arguments)}, but got {len(given)} arguments")
        for unknown in set(named) - set(arguments):
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
        settings = {**dict(zip(arguments, given, strict=False)), **named}
        if "t_warmup" in arguments:  # Composer leaves a warm-up its length unless told otherwise
            settings = {"scale_warmup": False, **settings}
            settings["warmup"] = settings.pop("t_warmup", None)
        return plugins.build("schedulers", plugin, settings)

    return make
