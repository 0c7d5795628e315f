"""ColOut: images lose random rows and columns, what is left moves together. MosaicML 2021, no paper.

N images, C channels, H rows, W columns.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def num_kept(size: int, share_dropped: float) -> int:
    """Rows or columns that are left of `size`: rounded down, at least one."""
    return max(1, int((1 - share_dropped) * size + 1e-9))  # (1 - 0.9) * 10 is a hair below 1


def draw_kept(size: int, count: int, rng: Generator) -> Tensor:
    """`count` of the places 0..size-1 in their order, (count,); every choice is equally likely."""
    return torch.randperm(size, generator=rng)[:count].sort().values


def draw_kept_each(num_samples: int, size: int, count: int, rng: Generator) -> Tensor:
    """The same for each sample by itself, (num_samples, count)."""
    return torch.rand(num_samples, size, generator=rng, dtype=torch.float64).argsort(1)[:, :count].sort(1).values


def keep(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Images (N, ..., H, W) with only these rows and columns, (count,) for all samples or (N, count) for each."""
    if rows.ndim == 1:
        return images.index_select(-2, rows).index_select(-1, columns)
    between = [1] * (images.ndim - 3)
    kept = torch.take_along_dim(images, rows.view(len(rows), *between, -1, 1), -2)
    return torch.take_along_dim(kept, columns.view(len(columns), *between, 1, -1), -1)
