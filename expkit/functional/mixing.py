"""Mixing: what MixUp and CutMix share. Each sample has a partner in its batch and takes a share of it.

N samples, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from expkit.functional.losses import is_soft, one_hot


@dataclass(frozen=True)
class Mix:
    """Who is mixed with whom, and how much of the partner goes in."""

    partners: Tensor
    """(N,): a permutation of the batch."""
    share: float
    """Of the partner, 0 to 1."""

    def targets(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Ids or probabilities -> probabilities of the logits' shape (N, C, ...), (1 - share) own + share partner's."""
        dtype = torch.promote_types(logits.dtype, torch.float32)
        own = targets.to(dtype) if is_soft(logits, targets) else one_hot(targets, logits.shape[1], dtype)
        return torch.lerp(own, own[self.partners], self.share)

    def loss(self, loss_fn: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        """The same mean of two losses instead of two targets, for a loss that knows nothing but class ids.

        With cross-entropy, which is linear in its targets, both are equal.
        """

        def mixed(outputs: Tensor, targets: Tensor) -> Tensor:
            return torch.lerp(loss_fn(outputs, targets), loss_fn(outputs, targets[self.partners]), self.share)

        return mixed


def is_mixable(inputs: object) -> bool:
    """Whether inputs have a mean: ids of tokens have none, nor has what is no tensor."""
    return isinstance(inputs, Tensor) and inputs.is_floating_point()


def draw_beta(alpha: float, rng: Generator) -> float:
    """One number from Beta(alpha, alpha)."""
    seed = int(torch.randint(2**62, (), generator=rng))  # torch's own Beta takes no generator
    return float(np.random.default_rng(seed).beta(alpha, alpha))


def draw_partners(num_samples: int, rng: Generator) -> Tensor:
    """A random permutation of the batch, (N,)."""
    return torch.randperm(num_samples, generator=rng)
