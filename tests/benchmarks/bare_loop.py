"""The plain torch loop that the trainer is measured against; loss read at every step, nothing else.

Fixed: change it and every ratio measured so far loses its meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Workload:
    """A model and batches of one shape. Costs on one core, roughly: 0.3 ms, 0.5 ms and 100 ms a step."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    steps: int
    """Of one chunk: some 60 ms at least, so that a clock tick does not show."""


def mlp(width_in: int, width: int) -> nn.Module:
    """Two layers, 10 classes."""
    return nn.Sequential(nn.Linear(width_in, width), nn.ReLU(), nn.Linear(width, 10))


def conv() -> nn.Module:
    """Three convolutions on 3 x 32 x 32, 10 classes."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


WORKLOADS = {
    "mlp64": Workload(lambda: mlp(64, 64), (32, 64), 200),
    "mlp784": Workload(lambda: mlp(784, 128), (32, 784), 100),
    "conv32": Workload(conv, (128, 3, 32, 32), 2),
}


def batches(workload: Workload, count: int = 20) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Made before the clock starts, the same for everybody."""
    draw = torch.Generator().manual_seed(0)
    return [
        (torch.randn(workload.shape, generator=draw), torch.randint(0, 10, workload.shape[:1], generator=draw))
        for _ in range(count)
    ]


def parts(workload: Workload) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A fresh model with SGD and momentum; the same weights every time."""
    torch.manual_seed(0)
    model = workload.make()
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, data: list[tuple[torch.Tensor, torch.Tensor]],
          steps: int) -> float:  # fmt: skip
    """`steps` steps over the batches in turn; the loss of the last one."""
    loss_f = 0.0
    model.train()
    step = 0
    while step < steps:
        for inputs, targets in data:
            if step == steps:
                break
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            loss_f = loss.item()
            step += 1
    return loss_f
