"""MixUp: each input is a weighted mean of two. Zhang et al. 2017, 1710.09412."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from expkit.functional.mixing import Mix, draw_beta, draw_partners


def draw_mix(num_samples: int, alpha: float, rng: Generator) -> Mix:
    """Partners and the share of the partner, Beta(alpha, alpha) folded to at most 1/2: the other half is the same pair
    the other way round. alpha 0 is its limit: a share of 0."""
    share = draw_beta(alpha, rng) if alpha else 0.0
    return Mix(draw_partners(num_samples, rng), min(share, 1 - share))


def mix(inputs: Tensor, by: Mix) -> Tensor:
    """(1 - share) x own + share x partner's, a new tensor."""
    return torch.lerp(inputs, inputs[by.partners], by.share)
