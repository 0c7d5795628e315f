"""Label smoothing: part of each target's certainty is spread over all classes. Szegedy et al. 2015, 1512.00567."""

from __future__ import annotations

import torch
from torch import Tensor

from expkit.functional.losses import is_soft, one_hot


def smooth(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Targets t -> (1 - s) t + s / C as probabilities of the logits' shape (N, C, ...).

    Targets are class ids (N, ...) or probabilities already; the tensors given stay as they are. Ids outside 0..C-1,
    such as places to ignore, have no distribution to smooth and raise. Half precision cannot hold 0.91: at least
    float32 comes out.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    probabilities = targets.to(dtype) if is_soft(logits, targets) else one_hot(targets, logits.shape[1], dtype)
    return probabilities * (1 - smoothing) + smoothing / logits.shape[1]
