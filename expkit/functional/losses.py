"""Losses that take class ids and class probabilities alike, so that methods may soften targets."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def soft_cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy in nats against class ids (N, ...) or class probabilities (N, C, ...); classes on axis 1.

    The mean is over all places, so that one-hot probabilities give what their ids give. Ids of -100 count nowhere.
    """
    if is_soft(logits, targets):
        dtype = torch.promote_types(logits.dtype, targets.dtype)  # half logits are as exact as the probabilities
        return F.cross_entropy(logits.to(dtype), targets.to(dtype), reduction=reduction)
    return F.cross_entropy(logits, targets.long(), reduction=reduction)


def is_soft(logits: Tensor, targets: Tensor) -> bool:
    """Whether targets are probabilities rather than ids; ValueError where they are neither of the two."""
    if targets.is_floating_point() and targets.shape == logits.shape:
        return True
    if not targets.is_floating_point() and targets.shape == logits.shape[:1] + logits.shape[2:]:
        return False
    raise ValueError(
        f"targets must be ids of shape {list(logits.shape[:1] + logits.shape[2:])} or probabilities of shape "
        f"{list(logits.shape)}, but got {str(targets.dtype).removeprefix('torch.')} of shape {list(targets.shape)}"
    )


def one_hot(targets: Tensor, num_classes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Ids (N, ...) -> probabilities (N, C, ...)."""
    hard = torch.zeros(targets.shape[0], num_classes, *targets.shape[1:], dtype=dtype, device=targets.device)
    return hard.scatter_(1, targets.long().unsqueeze(1), 1.0)
