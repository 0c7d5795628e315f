"""Precision: which numbers the forward pass uses. fp32 enters no autocast; amp_* keep the weights in fp32."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from expkit.errors import UsageError
from expkit.trainer.state import Precision

_DTYPES = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}
_NOTHING = contextlib.nullcontext()


def autocast(device: torch.device, precision: Precision) -> Any:
    """The context of forward pass and loss."""
    if precision == "fp32":
        return _NOTHING
    return torch.autocast(device.type, dtype=_DTYPES[precision])


def gradient_scaler(device: torch.device, precision: Precision) -> torch.amp.GradScaler | None:
    """What amp_fp16 needs so that small gradients survive; UsageError where the device cannot do it."""
    if precision != "amp_fp16":
        return None
    if device.type != "cuda":
        raise UsageError(f"amp_fp16 needs a CUDA device, but the device is {device.type}; use amp_bf16 or fp32")
    return torch.amp.GradScaler("cuda")


def device_of(name: str) -> torch.device:
    """`auto` (cuda where there is one, else cpu), `cpu` or `cuda`."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise UsageError(f"device must be auto, cpu or cuda, but got {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("device is cuda, but torch finds no CUDA device; use cpu or auto")
    return torch.device(name, torch.cuda.current_device()) if name == "cuda" else torch.device(name)
