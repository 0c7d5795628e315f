"""Floating-point operations of a training step: counted by torch once a shape of inputs, looked up afterwards."""

from __future__ import annotations

import copy
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

_counted: WeakKeyDictionary[nn.Module, dict[torch.Size, float]] = WeakKeyDictionary()


def training_flops(module: nn.Module, inputs: Tensor) -> float:
    """Forward and backward for `inputs` of this shape: three times the products of the forward pass.

    The backward pass has two for each (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). Convolutions, linear
    layers and attention count, two operations a multiplication and addition; what is done element by element does not.
    """
    known = _counted.setdefault(module, {})
    if inputs.shape not in known:
        known[inputs.shape] = 3.0 * _forward_flops(module, inputs)
    return known[inputs.shape]


def _forward_flops(module: nn.Module, inputs: Tensor) -> int:
    """Counted on a copy without data, which computes nothing and draws nothing."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        copy.deepcopy(module).to("meta").eval()(inputs.to("meta"))
    return int(counter.get_total_flops())
