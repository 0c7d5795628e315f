"""Residual networks for small images, as He et al. 2015 (1512.03385, section 4.2) train on CIFAR: 6n + 2 layers.

One 3x3 stem, three stages of n blocks with w, 2w and 4w channels, each later stage at half the resolution,
global mean, one linear layer. Any image size goes in.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Generator, Tensor, nn

from expkit.functional.flops import training_flops
from expkit.functional.losses import soft_cross_entropy
from expkit.functional.metrics import Mean, classification


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut; the shortcut is a strided 1x1 convolution where the shape changes."""

    def __init__(self, num_inputs: int, num_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_inputs, num_channels, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(num_channels)
        self.conv2 = nn.Conv2d(num_channels, num_channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(num_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or num_inputs != num_channels:
            projection = nn.Conv2d(num_inputs, num_channels, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(num_channels))

    def forward(self, x_NCHW: Tensor) -> Tensor:
        h_NCHW = F.relu(self.norm1(self.conv1(x_NCHW)), inplace=True)
        return F.relu(self.norm2(self.conv2(h_NCHW)).add_(self.shortcut(x_NCHW)), inplace=True)


class ResNet(nn.Module):
    """A classifier: logits, its loss for ids and probabilities, its metrics."""

    def __init__(self, depth: int, width: int, stem_stride: int, num_classes: int, in_channels: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(in_channels, width, 3, stem_stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.stages = nn.Sequential(*_stages(width, (depth - 2) // 6))
        self.head = nn.Linear(4 * width, num_classes)

    def forward(self, images_NCHW: Tensor) -> Tensor:
        h_NCHW = F.relu(self.norm(self.stem(images_NCHW)), inplace=True)
        features_ND = self.stages(h_NCHW).mean((2, 3))
        return self.head(features_ND)  # type: ignore[no-any-return]

    def loss(self, outputs: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
        """Mean cross-entropy of the batch in nats; `none` gives that of each sample."""
        return soft_cross_entropy(outputs, targets, reduction)

    def flops_per_batch(self, batch: tuple[Tensor, Tensor]) -> float:
        """Floating-point operations of a training step on this batch."""
        return training_flops(self, batch[0])

    def metrics(self) -> dict[str, Mean]:
        """Fresh accuracy and cross-entropy."""
        return classification()


def init_weights(module: nn.Module, rng: Generator | None = None) -> None:
    """He et al. 2015 (1502.01852): normal with variance 2 / fan-out in convolutions; a small uniform head."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu", generator=rng)
        elif isinstance(part, nn.Linear):
            bound = part.in_features**-0.5
            nn.init.uniform_(part.weight, -bound, bound, generator=rng)
            nn.init.zeros_(part.bias)


def _stages(width: int, num_blocks: int) -> list[nn.Module]:
    stages: list[nn.Module] = []
    num_inputs = width
    for stage in range(3):
        num_channels = width * 2**stage
        for block in range(num_blocks):
            stages.append(BasicBlock(num_inputs, num_channels, stride=2 if stage > 0 and block == 0 else 1))
            num_inputs = num_channels
    return stages
