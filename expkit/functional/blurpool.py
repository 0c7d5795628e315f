"""BlurPool: a low-pass filter before every subsampling, so that a shift of the image shifts the features.

Zhang 2019, 1904.11486. The filter is binomial, [1 2 1] x [1 2 1] / 16, with reflected borders.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from expkit.functional.surgery import recast, replace_modules

_BINOMIAL = torch.tensor([1.0, 2.0, 1.0])


def blur(images: Tensor, stride: int | tuple[int, int] = 1) -> Tensor:
    """Filter each channel of (N, C, H, W), keep every `stride`-th pixel: (N, C, ceil(H / stride), ceil(W / stride)).

    A constant image stays constant, at the border too. A side of one pixel has nothing to mirror and is repeated.
    """
    channels = images.shape[1]
    kernel = torch.outer(_BINOMIAL, _BINOMIAL).div(16).to(images.device, images.dtype)
    mode = "reflect" if min(images.shape[-2:]) > 1 else "replicate"
    padded = F.pad(images, (1, 1, 1, 1), mode=mode)
    return F.conv2d(padded, kernel.expand(channels, 1, 3, 3), stride=stride, groups=channels)


class BlurConv2d(nn.Conv2d):
    """A strided convolution whose input is blurred first, or whose full output is blurred while subsampling."""

    blur_stride: tuple[int, int] | None = None
    """Stride of a blur after the convolution; None where the blur comes before it."""

    def forward(self, input: Tensor) -> Tensor:
        if self.blur_stride is None:
            return super().forward(blur(input))
        return blur(super().forward(input), self.blur_stride)


class BlurMaxPool2d(nn.MaxPool2d):
    """The maximum at every pixel, then a blur that subsamples."""

    blur_stride: tuple[int, int]

    def forward(self, input: Tensor) -> Tensor:
        return blur(super().forward(input), self.blur_stride)


def apply_blurpool(
    model: nn.Module,
    replace_convs: bool = True,
    replace_maxpools: bool = True,
    blur_first: bool = True,
    min_channels: int = 16,
) -> tuple[int, int]:
    """Blur before subsampling in all of `model`; how many convolutions and pools it replaced, none the second time.

    Strided convolutions of at least `min_channels` inputs and strided max-pools; subclasses have a forward of their own
    and stay, and so do pools that return indices or round their size up. Shapes, weights and state-dict keys stay.
    """

    def blurred(module: nn.Module) -> nn.Module | None:
        if replace_convs and type(module) is nn.Conv2d and _is_strided(module.stride):
            return _blur_conv(module, blur_first) if module.in_channels >= min_channels else None
        if replace_maxpools and type(module) is nn.MaxPool2d and _is_strided(module.stride):
            return None if module.return_indices or module.ceil_mode else _blur_maxpool(module)
        return None

    new = [new for _, new in replace_modules(model, blurred)]
    num_convs = sum(isinstance(module, BlurConv2d) for module in new)
    return num_convs, len(new) - num_convs


def _blur_conv(conv: nn.Conv2d, blur_first: bool) -> BlurConv2d:
    blurred = recast(conv, BlurConv2d)
    if not blur_first:
        blurred.blur_stride, blurred.stride = _pair(conv.stride), (1, 1)
    return blurred


def _blur_maxpool(pool: nn.MaxPool2d) -> BlurMaxPool2d:
    blurred = recast(pool, BlurMaxPool2d)
    blurred.blur_stride, blurred.stride = _pair(pool.stride), 1
    return blurred


def _is_strided(stride: int | tuple[int, ...]) -> bool:
    return max(_pair(stride)) > 1


def _pair(stride: int | tuple[int, ...]) -> tuple[int, int]:
    return (stride, stride) if isinstance(stride, int) else (stride[0], stride[1])
