"""Reference workload: the same sums before and after each trial, to see whether the machine has changed meanwhile.

About 0.3 s. Draws no random number, so training is not touched by it.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch

BUDGET_S = 0.25
LEAST_REPEATS = 15


@dataclass(frozen=True)
class Reference:
    """Medians over short repeats, in seconds."""

    wall_s: float
    cpu_s: float
    """Process time over all threads."""


def measure(budget_s: float = BUDGET_S) -> Reference:
    """Time a matrix product, a convolution with its gradient and a pass over memory; the first repeat warms up."""
    work = _Work()
    work()
    walls: list[float] = []
    cpus: list[float] = []
    started_s = time.perf_counter()
    while len(walls) < LEAST_REPEATS or time.perf_counter() - started_s < budget_s:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Reference(statistics.median(walls), statistics.median(cpus))


class _Work:
    """About 4 ms: compute-bound and memory-bound halves, because neighbours disturb them differently."""

    def __init__(self) -> None:
        self.matrix = torch.linspace(-1, 1, 384 * 384).view(384, 384)
        self.images_BCHW = torch.linspace(-1, 1, 32 * 8 * 28 * 28).view(32, 8, 28, 28)
        self.kernel = torch.linspace(-1, 1, 8 * 8 * 3 * 3).view(8, 8, 3, 3).requires_grad_()
        self.memory = torch.zeros(2_000_000)

    def __call__(self) -> None:
        self.matrix @ self.matrix
        torch.nn.functional.conv2d(self.images_BCHW, self.kernel, padding=1).square().mean().backward()  # type: ignore[no-untyped-call]
        self.memory.add_(1.0).mul_(0.5)
