"""Reference workload: the same sums before and after each trial, to see whether the machine has changed meanwhile.

0.1 s where the machine is quiet, 0.3 s at most. Draws no random number, so training is not touched by it.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch

BUDGET_S = 0.25
LEAST_REPEATS = 15
STEADY = 0.04
"""Spread of the middle half of the repeats, over their median, at which more of them would tell nothing new."""


@dataclass(frozen=True)
class Reference:
    """Medians over short repeats, in seconds."""

    wall_s: float
    cpu_s: float
    """Process time over all threads."""


def measure(budget_s: float = BUDGET_S, least_repeats: int = LEAST_REPEATS) -> Reference:
    """Time a matrix product, a convolution with its gradient and a pass over memory; the first repeat warms up.

    Ends early where the CPU times are steady: then the median of 15 is within about 1 % of that of 60.
    """
    work = _Work()
    work()
    walls: list[float] = []
    cpus: list[float] = []
    started_s = time.perf_counter()
    while len(walls) < least_repeats or (time.perf_counter() - started_s < budget_s and not steady(cpus)):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Reference(statistics.median(walls), statistics.median(cpus))


def steady(times_s: list[float]) -> bool:
    """Whether the middle half of them lies close together."""
    low, middle, high = statistics.quantiles(times_s, n=4)
    return high - low < STEADY * middle


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
