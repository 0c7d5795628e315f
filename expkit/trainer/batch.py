"""Batches: what the trainer and the methods need to know about them. A batch is a pair (inputs, targets)."""

from __future__ import annotations

from typing import Any

import torch

from expkit.errors import ExpkitError

_UNCHANGED = object()


def inputs_of(batch: Any) -> Any:
    """What goes into the model."""
    return batch[0]


def targets_of(batch: Any) -> Any:
    """What the outputs are compared with."""
    return batch[1]


def replace(batch: Any, *, inputs: Any = _UNCHANGED, targets: Any = _UNCHANGED) -> Any:
    """A batch with other inputs or targets; the one given stays as it is."""
    return (
        batch[0] if inputs is _UNCHANGED else inputs,
        batch[1] if targets is _UNCHANGED else targets,
    )


def num_samples(batch: Any) -> int:
    """Samples in a batch."""
    return int(batch[0].shape[0])


def num_tokens(batch: Any) -> int:
    """Tokens in a batch: elements of integer inputs (B, L); 0 where the inputs are no sequences of ids."""
    inputs = batch[0]
    ids = isinstance(inputs, torch.Tensor) and inputs.dim() == 2 and not inputs.is_floating_point()
    return inputs.numel() if ids else 0


def split(batch: Any, size: int) -> list[Any]:
    """Microbatches of `size` samples, the last one smaller where it does not divide."""
    inputs, targets = batch
    return list(zip(inputs.split(size), targets.split(size), strict=True))


def empty(batch: Any) -> Any:
    """A batch of this kind without samples."""
    return (batch[0][:0], batch[1][:0])


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch on a device; the very same object where it is there already."""
    if isinstance(batch, (tuple, list)) and len(batch) == 2:
        return (batch[0].to(device, non_blocking=True), batch[1].to(device, non_blocking=True))
    raise ExpkitError(f"a batch is a pair (inputs, targets), but the loader gave {type(batch).__name__}")
