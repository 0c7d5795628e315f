"""ResNet for small images, as He et al. train on CIFAR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.contracts import Model


@dataclass
class ResNet(Model):
    """A residual network of three stages for images of any size; width 8 and a strided stem make it quick."""

    depth: int = 20
    """Layers with weights, 6n + 2: 8, 14, 20, 32, 44, 56 and so on."""
    width: Annotated[int, Field(ge=1)] = 16
    """Channels of the first stage; the second has twice, the third four times as many."""
    stem_stride: Annotated[int, Field(ge=1, le=4)] = 1
    """Stride of the first convolution; 2 costs a quarter of the time."""
    num_classes: Annotated[int, Field(ge=2)] = 10
    """Classes to tell apart."""
    in_channels: Annotated[int, Field(ge=1)] = 3
    """Channels of an image: 1 for grey, 3 for colour."""

    provides = frozenset(
        {"convolutions", "strided_convolutions", "batchnorm", "residual_blocks", "images", "soft_targets"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 8 or (self.depth - 2) % 6:
            raise ValueError(f"depth must be 6n + 2 with n at least 1 (8, 14, 20, ...), but got {self.depth}")

    def build(self) -> Any:
        from expkit.functional import resnet

        module = resnet.ResNet(self.depth, self.width, self.stem_stride, self.num_classes, self.in_channels)
        resnet.init_weights(module)
        return module
