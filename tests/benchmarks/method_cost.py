"""What a step costs with each method over the plain step, as a ratio of CPU times with its 95 % interval.

    OMP_NUM_THREADS=1 python tests/benchmarks/method_cost.py [--pairs 12] [mixup ema ...]

A whole training of 10 batches with the method's defaults, so that each acts for its share of it, against one without;
the two take turns, every other pair the other way round; a t interval on the mean log ratio. ResNet-8 of width 8 on 128
grey images of 28x28, a GPT of two layers on 8 sequences of 128 characters for methods that need sequences. Surgery and
set-up are not counted. About a minute of CPU time in all. Run it with the malloc settings of trials, as workers do:
MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_TOP_PAD_=67108864.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from expkit import plugins
from expkit.trainer.trainer import Trainer

BATCHES = 10
T_95 = {6: 2.571, 12: 2.201, 24: 2.069}


@dataclass(frozen=True)
class Workload:
    """A model and its batches."""

    name: str
    model: tuple[str, dict[str, Any]]
    batches: list[tuple[torch.Tensor, torch.Tensor]]


def images() -> Workload:
    rng = torch.Generator().manual_seed(0)
    batches = [(torch.randn(128, 1, 28, 28, generator=rng), torch.randint(10, (128,), generator=rng))
               for _ in range(BATCHES)]  # fmt: skip
    return Workload("resnet8", ("resnet", {"depth": 8, "width": 8, "stem_stride": 2, "in_channels": 1}), batches)


def characters() -> Workload:
    rng = torch.Generator().manual_seed(0)
    ids = [torch.randint(81, (8, 129), generator=rng) for _ in range(BATCHES)]
    return Workload("gpt2x64", ("gpt", {}), [(i[:, :-1].contiguous(), i[:, 1:].contiguous()) for i in ids])


def training_s(workload: Workload, methods: list[str]) -> float:
    """CPU seconds of one training, from its first batch."""
    torch.manual_seed(0)
    model = plugins.build("models", *workload.model).build()  # type: ignore[attr-defined]
    trainer = Trainer(
        model=model, train_dataloader=workload.batches, optimizers=torch.optim.SGD(model.parameters(), lr=0.01),
        max_duration=f"{BATCHES}ba", algorithms=[plugins.build("algorithms", m, {}) for m in methods], device="cpu",
    )  # fmt: skip
    started_s = process_time()
    trainer.fit()
    return process_time() - started_s


def measure(workload: Workload, method: str, pairs: int) -> tuple[float, float, float, float]:
    """Milliseconds of a plain step; the ratio with its 95 % interval."""
    sides: list[list[str]] = [[], [method]]
    for side in sides:
        training_s(workload, side)
    logs, plain_s = [], []
    for pair in range(pairs):
        seconds = {len(side): training_s(workload, side) for side in (sides[::-1] if pair % 2 else sides)}
        logs.append(math.log(seconds[1] / seconds[0]))
        plain_s.append(seconds[0])
    mean, half = statistics.fmean(logs), T_95[pairs] * statistics.stdev(logs) / math.sqrt(pairs)
    step_ms = 1000 * statistics.median(plain_s) / BATCHES
    return step_ms, math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=plugins.names("algorithms"))
    parser.add_argument("--pairs", type=int, default=12, choices=sorted(T_95))
    given = parser.parse_args()
    torch.set_num_threads(1)
    on = {False: images(), True: characters()}
    print(f"{'method':22} {'workload':9} {'plain':>8} {'ratio':>7}  95 % interval, n={given.pairs} pairs")
    for name in given.names:
        workload = on["sequences" in plugins.load("algorithms", name).requires]  # type: ignore[attr-defined]
        step_ms, ratio, low, high = measure(workload, name, given.pairs)
        print(f"{name:22} {workload.name:9} {step_ms:5.1f} ms {ratio:7.3f}  [{low:.3f}, {high:.3f}]", flush=True)


if __name__ == "__main__":
    main()
