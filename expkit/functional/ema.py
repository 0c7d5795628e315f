"""Exponential moving average of a model's weights; evaluating the average is smoother than evaluating the last step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


def smoothing_of(half_life: float, update_interval: float = 1.0) -> float:
    """The weight that the old average keeps at each update, so that half of it is left after `half_life`.

    Both in one unit: 2 ** (-update_interval / half_life).
    """
    return float(2.0 ** (-update_interval / half_life))


def places_of(module: nn.Module) -> dict[str, tuple[dict[str, Any], str]]:
    """Where every parameter and buffer stands, by its name: the owner's dict and the key in it; each tensor once.

    Walking a module takes longer than averaging a small one, so it is done once; looking up goes on finding the
    right tensor where a layer puts a new one in its place.
    """
    places: dict[str, tuple[dict[str, Any], str]] = {}
    seen: set[int] = set()
    for prefix, owner in module.named_modules():
        for tensors in (owner._parameters, owner._buffers):
            for key, tensor in tensors.items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    places[f"{prefix}.{key}" if prefix else key] = (tensors, key)
    return places


@torch.no_grad()
def update(averages: Iterable[Tensor], currents: Iterable[Tensor], smoothing: float) -> None:
    """Average <- s * average + (1 - s) * current, in place; whole numbers (counters) are copied: they have no mean."""
    pairs = list(zip(averages, currents, strict=True))
    moving = [(a, c) for a, c in pairs if a.is_floating_point() or a.is_complex()]
    if moving:
        torch._foreach_lerp_([a for a, _ in moving], [c for _, c in moving], 1 - smoothing)  # one call for all
    for average, current in pairs:
        if not (average.is_floating_point() or average.is_complex()):
            average.copy_(current)


def swap(held: Iterable[Tensor], current: Iterable[Tensor]) -> None:
    """Exchange the contents of two rows of tensors by pointer: no copy, no rounding; twice is not at all."""
    for a, b in zip(held, current, strict=True):
        a.data, b.data = b.data, a.data
