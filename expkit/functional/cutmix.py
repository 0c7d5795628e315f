"""CutMix: a box of each image is replaced by its partner's. Yun et al. 2019, 1905.04899.

N images, C channels, H rows, W columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from expkit.functional.mixing import Mix, draw_beta, draw_partners


class Box(NamedTuple):
    """Rows top to bottom - 1, columns left to right - 1; inside the image."""

    top: int
    left: int
    bottom: int
    right: int

    def share_of(self, height: int, width: int) -> float:
        """The part of the image that it covers: the weight of the partner's target."""
        return (self.bottom - self.top) * (self.right - self.left) / (height * width)


def draw_mix(images: Tensor, alpha: float, uniform: bool, rng: Generator) -> tuple[Mix, Box]:
    """Partners, and a box whose area is a share from Beta(alpha, alpha) before the border cuts it off.

    The share in the mix is that of the pixels really cut, never that drawn. alpha 0 disables: an empty box.
    """
    height, width = images.shape[-2:]
    wanted = draw_beta(alpha, rng) if alpha else 0.0
    box = draw_box(height, width, wanted, uniform, rng)
    return Mix(draw_partners(len(images), rng), box.share_of(height, width)), box


def draw_box(height: int, width: int, share: float, uniform: bool, rng: Generator) -> Box:
    """A box of the image's proportions, sides rounded down; its centre is any pixel, so that borders are cut less
    often, or where `uniform`, it lies so that every pixel is equally likely to be cut."""
    top, bottom = _place(height, int(height * math.sqrt(share)), uniform, rng)
    left, right = _place(width, int(width * math.sqrt(share)), uniform, rng)
    return Box(top, left, bottom, right)


def paste(images: Tensor, partners: Tensor, box: Box) -> Tensor:
    """Images (N, ..., H, W) with the box taken from each one's partner, a new tensor."""
    pasted = images.clone()
    rows, columns = slice(box.top, box.bottom), slice(box.left, box.right)
    pasted[..., rows, columns] = images[..., rows, columns][partners]
    return pasted


def _place(size: int, side: int, uniform: bool, rng: Generator) -> tuple[int, int]:
    """Start and stop of a side on an axis, cut off at both ends."""
    num_places = size + side - 1 if uniform and side else size
    first = side - 1 if uniform and side else side // 2
    start = int(torch.randint(num_places, (), generator=rng)) - first
    return max(0, start), max(0, min(size, start + side))
