"""Channels last: the channels of a pixel lie side by side in memory, which is how fast convolutions read them.

https://pytorch.org/tutorials/intermediate/memory_format_tutorial.html. Shapes and values stay; only strides change.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def apply_channels_last(model: nn.Module) -> int:
    """Lay out all four-dimensional weights and buffers anew, in place; how many of them really moved.

    The Parameter objects stay, so an optimizer that holds them needs no telling.
    """
    tensors = [*model.parameters(), *model.buffers()]
    num_moved = sum(not _is_channels_last(tensor) for tensor in tensors if tensor.ndim == 4)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return num_moved


def to_channels_last(inputs: Tensor) -> Tensor:
    """Images (N, C, H, W) with their channels last; anything else, and what is so already, is given back as it is."""
    if getattr(inputs, "ndim", 0) != 4:
        return inputs
    return inputs.contiguous(memory_format=torch.channels_last)


def _is_channels_last(tensor: Tensor) -> bool:
    return tensor.is_contiguous(memory_format=torch.channels_last)
