"""Selective backprop: the backward pass sees the samples that the model finds hardest. Jiang et al. 2019, 1910.00762.

The chance of a sample is (percentile of its loss in the batch) ** (1 / keep - 1), whose mean over a batch is `keep`.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator

import torch
from torch import Generator, Tensor, nn

from expkit.functional.progressive_resizing import resize

Loss = Callable[..., Tensor]


def is_due(progress: float, batch_in_epoch: int, start: float, end: float, interrupt: int) -> bool:
    """Whether to select now: from `start` to before `end`, but not in every `interrupt`-th batch (0: no exception)."""
    return start <= progress < end and not (interrupt and (batch_in_epoch + 1) % interrupt == 0)


def select(losses: Tensor, keep: float, rng: Generator) -> Tensor:
    """Places of the chosen samples in their order, (max(1, N * keep),); drawn without replacement, harder ones rather.

    Losses (N,). Equal ones rank in their order; nan, as of a sample of which nothing counts, ranks lowest.
    """
    count = max(1, int(len(losses) * keep + 1e-9))
    chances = percentiles(losses) ** (1 / keep - 1)
    return torch.multinomial(chances, count, generator=rng).sort().values


def percentiles(losses: Tensor) -> Tensor:
    """Middle of each loss's place among all, (N,) on the CPU in double: 1/8, 3/8, 5/8, 7/8 from the lowest of four."""
    order = losses.double().nan_to_num(nan=-torch.inf, posinf=torch.inf).argsort(stable=True).cpu()
    ranks = torch.empty(len(order), dtype=torch.float64)
    ranks[order] = torch.arange(len(order), dtype=torch.float64)
    return (ranks + 0.5) / len(order)


def score(model: nn.Module, loss_fn: Loss, inputs: Tensor, targets: Tensor, size: int | None = None) -> Tensor:
    """The loss of each sample, (N,), in passes of `size` samples; leaves the model as it was."""
    with scoring(model):
        parts = zip(*(torch.split(tensor, size or len(inputs)) for tensor in (inputs, targets)), strict=True)
        return torch.cat([losses_of(loss_fn, model(x), y) for x, y in parts])


@contextlib.contextmanager
def scoring(model: nn.Module) -> Iterator[None]:
    """No gradient, and the model in eval mode, so that no running statistic moves, nothing is dropped or drawn."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True  # each as it was: a frozen layer stays frozen


def losses_of(loss_fn: Loss, outputs: Tensor, targets: Tensor) -> Tensor:
    """Losses (N,) by a function that takes `reduction="none"`, else by one call a sample, 30 microseconds each.

    Either gives one number a sample; the losses of its places are averaged.
    """
    if "reduction" in inspect.signature(loss_fn).parameters:
        losses = loss_fn(outputs, targets, reduction="none")
        return losses.reshape(len(outputs), -1).mean(1)
    return torch.stack([loss_fn(outputs[i : i + 1], targets[i : i + 1]) for i in range(len(outputs))])


def shrink(images: Tensor, scale: float) -> Tensor:
    """Images (N, C, H, W) at a scale up to 1, which is cheaper to score; ValueError for what is no image."""
    if scale == 1:
        return images
    if images.ndim != 4:
        raise ValueError(f"scale_factor shrinks images (N, C, H, W), but inputs are {list(images.shape)}; use 1")
    height, width = (max(1, round(side * scale)) for side in images.shape[-2:])
    return resize(images, height, width)
