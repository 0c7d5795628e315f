"""Precision: which numbers the forward pass uses. fp32 is fp32; amp_* keep weights, gradients and steps in fp32.

Nothing here touches torch's own switches: TF32 is as torch or the user has set it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, get_args

import torch

from expkit.errors import UsageError, unknown
from expkit.trainer.arguments import refuse
from expkit.trainer.checkpoint import checks
from expkit.trainer.state import Precision

_DTYPES = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}
_NOTHING = contextlib.nullcontext()


def autocast(device: torch.device, precision: Precision) -> Any:
    """The context of forward pass and loss."""
    return _NOTHING if precision == "fp32" else torch.autocast(device.type, dtype=_DTYPES[precision])


def refuse_autocast_around() -> None:
    """UsageError inside an autocast of the user's, on or off.

    It would reach the backward pass, and casts of weights are forgotten only where the outermost one ends: a second
    step would train on those of the first.
    """
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    if depth:
        raise UsageError("the trainer must not run inside torch.autocast; leave it out, precision= says what is used")


def refuse_no_gradients() -> None:
    """UsageError inside torch.no_grad or torch.inference_mode of the user's."""
    if not torch.is_grad_enabled():
        raise UsageError("fit must not run inside torch.no_grad() or torch.inference_mode(): nothing could be trained")


def check_precision(precision: str, device: torch.device) -> None:
    """UsageError for numbers that are not offered, or not on this device."""
    if not isinstance(precision, str):
        refuse("precision", " or ".join(get_args(Precision)), precision)
    if precision in ("fp8", "amp_fp8"):
        raise UsageError(f"precision {precision} is not offered: it takes layers of another library and a GPU made "
                         f"for it; use amp_bf16")  # fmt: skip
    if precision not in get_args(Precision):
        raise UsageError(unknown("precision", precision, get_args(Precision)))
    if precision == "amp_fp16" and device.type != "cuda":
        raise UsageError(f"amp_fp16 needs a CUDA device, but the device is {device.type}; use amp_bf16 or fp32")


class Scaler:
    """Scales the loss so that small gradients survive in fp16, and leaves out a step whose gradients overflowed.

    The scale is halved after each step left out and grows again; `skipped` counts them. Kept from fit to fit.
    """

    def __init__(self, scaler: torch.amp.GradScaler, device: torch.device) -> None:
        scaler.scale(torch.zeros((), device=device))  # now it has a scale, also where a rank's first batch is empty
        self._scaler = scaler
        self.scale = float(scaler.get_scale())
        """As of the last step."""
        self.skipped = 0
        """Steps left out so far."""

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to go backward from."""
        return self._scaler.scale(loss)

    def unscale(self, optimizer: torch.optim.Optimizer) -> None:
        """Make the gradients what they would be without a scale; once a step."""
        self._scaler.unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Step unless a gradient is inf or nan; whether it did."""
        self._scaler.step(optimizer)
        self._scaler.update()
        before, self.scale = self.scale, float(self._scaler.get_scale())  # waits, as the step before it has already
        stepped = self.scale >= before
        self.skipped += not stepped
        return stepped

    def state_dict(self) -> dict[str, Any]:
        """Scale, steps since it last changed, steps left out."""
        return {"scale": self.scale, "steps": self._scaler.state_dict()["_growth_tracker"], "skipped": self.skipped}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        scale = checks.number(state.get("scale"), "scale")
        if not 0 < scale < math.inf:
            raise ValueError(f"scale must be positive, but is {scale}")
        steps, skipped = (checks.integer(state.get(name), name) for name in ("steps", "skipped"))
        self._scaler.load_state_dict({**self._scaler.state_dict(), "scale": scale, "_growth_tracker": steps})
        self.scale, self.skipped = scale, skipped


def scaler_of(precision: Precision, device: torch.device, closures: Sequence[str]) -> Scaler | None:
    """What amp_fp16 needs, None for other precisions; UsageError beside one of those that need a closure."""
    if precision != "amp_fp16":
        return None
    if closures:  # they step on gradients that nobody has looked at for inf
        raise UsageError(f"precision cannot be amp_fp16 with {closures[0]}, which needs gradients more than once a "
                         f"step; use amp_bf16 or fp32")  # fmt: skip
    return Scaler(torch.amp.GradScaler(device.type), device)
