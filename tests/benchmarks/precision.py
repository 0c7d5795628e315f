"""What bf16, channels_last and compilation buy over fp32 on this CPU: ratios of CPU times with 95 % intervals.

    OMP_NUM_THREADS=1 python tests/benchmarks/precision.py [--pairs 10] [conv32 mlp784]

The trainer trains both sides; in a pair, chunks of both take turns, and pairs alternate who goes first; a t interval on
the mean log ratio. More than 1 is faster than fp32. Compilation is outside the ratio and stands beside it, as the clock
`compile_s` has it at the first pair: how many steps it takes to earn that back is for the reader to see.
About 5 minutes in all, 15 where the processor has no instructions for bf16, which is then many times slower than fp32.
Run it with the malloc settings of trials, as workers do: MALLOC_MMAP_THRESHOLD_=1073741824
MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_TOP_PAD_=67108864.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from pathlib import Path
from time import process_time
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from expkit.algorithms.channels_last import ChannelsLast
from expkit.trainer.trainer import Trainer
from tests.benchmarks import bare_loop

WORKLOADS = ("conv32", "mlp784")
VARIANTS: dict[str, dict[str, Any]] = {
    "bf16": {"precision": "amp_bf16"},
    "channels_last": {"channels_last": True},
    "channels_last + bf16": {"channels_last": True, "precision": "amp_bf16"},
    "compile": {"compile": True},
    "compile + bf16": {"compile": True, "precision": "amp_bf16"},
}
CHUNKS = 7  # of each side in a pair; neighbours on the machine disturb both alike
ENOUGH_S = 4.0
"""A pair that has taken so long ends after three chunks."""
WARM_UP = "3ba"
T_95 = {2: 12.706, 5: 2.776, 10: 2.262, 20: 2.093, 40: 2.023}


def make_trainer(workload: bare_loop.Workload, channels_last: bool = False, **settings: Any) -> Trainer:
    model, optimizer = bare_loop.parts(workload)
    return Trainer(
        model=model, train_dataloader=bare_loop.batches(workload), optimizers=optimizer, device="cpu",
        max_duration=WARM_UP, algorithms=[ChannelsLast()] if channels_last else [], **settings,
    )  # fmt: skip


def pair_ratio(workload: bare_loop.Workload, variant: dict[str, Any], fp32_first: bool) -> tuple[float, float]:
    """fp32 over the variant, medians of the CPU time of chunks that take turns, both warmed up; and `compile_s`."""
    sides = {"fp32": make_trainer(workload), "variant": make_trainer(workload, **variant)}
    for trainer in sides.values():
        trainer.fit()
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    steps = max(1, workload.steps // 2)
    for chunk in range(CHUNKS):
        if chunk >= 3 and sum(map(sum, seconds.values())) > ENOUGH_S:
            break
        for side in sides if fp32_first else reversed(sides):
            started_s = process_time()
            sides[side].fit(f"{steps}ba")
            seconds[side].append(process_time() - started_s)
    return statistics.median(seconds["fp32"]) / statistics.median(seconds["variant"]), sides["variant"].clocks[
        "compile_s"
    ]


def row(workload_name: str, variant_name: str, pairs: int) -> str:
    """One line of the table."""
    workload, variant = bare_loop.WORKLOADS[workload_name], VARIANTS[variant_name]
    measured = [pair_ratio(workload, variant, bool(pair % 2)) for pair in range(pairs)]
    logs = [math.log(ratio) for ratio, _ in measured]
    mean, half = statistics.fmean(logs), T_95[pairs] * statistics.stdev(logs) / math.sqrt(pairs)
    ratio, low, high = (math.exp(log) for log in (mean, mean - half, mean + half))
    compiled = f"; compiled in {measured[0][1]:.1f} s" if variant.get("compile") else ""
    return f"{workload_name:8} {variant_name:21} {ratio:.2f} [{low:.2f}, {high:.2f}] n={pairs} pairs{compiled}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--pairs", type=int, default=10, choices=sorted(T_95))
    given = parser.parse_args()
    torch.set_num_threads(1)
    bf16 = "with" if torch.ops.mkldnn._is_mkldnn_bf16_supported() else "WITHOUT"
    print(f"speed over fp32, 1 thread, torch {torch.__version__}, {processor()}, {bf16} instructions for bf16")
    for name in given.names:
        for variant in VARIANTS:
            if name == "conv32" or not VARIANTS[variant].get("channels_last"):
                print(row(name, variant, given.pairs), flush=True)


def processor() -> str:
    """What the machine calls its processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "processor unknown")


if __name__ == "__main__":
    main()
