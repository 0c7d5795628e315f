"""What a step of the trainer costs over the plain loop, as a ratio of CPU times with its 95 % interval.

    OMP_NUM_THREADS=1 python tests/benchmarks/trainer_step.py [--pairs 20] [mlp64 mlp784 conv32]

In a pair, chunks of both take turns; pairs alternate who goes first; a t interval on the mean log ratio. mlp64 runs
with logging off; the others log loss, learning rate and seven throughput series at every step, into parquet files.
About 2 minutes in all.
Run it with the malloc settings of trials, as workers do: MALLOC_MMAP_THRESHOLD_=1073741824
MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_TOP_PAD_=67108864.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from expkit.callbacks.lr_monitor import LRMonitor
from expkit.callbacks.speed_monitor import SpeedMonitor
from expkit.loggers.parquet import Parquet
from expkit.trainer.callback import Callback
from expkit.trainer.trainer import Trainer
from tests.benchmarks import bare_loop

BARS = {"mlp64": 1.08, "mlp784": 1.15, "conv32": 1.03}
CHUNKS = 7  # of each side in a pair; neighbours on the machine disturb both alike
T_95 = {5: 2.776, 10: 2.262, 20: 2.093, 40: 2.023}


@dataclass
class ThreeMore(Callback):
    """Four throughput series come from the speed monitor, these make it seven."""

    def batch_end(self, state: Any, logger: Any) -> None:
        logger.log_metrics({f"throughput/more_{i}": state.train_s for i in range(3)})


def make_trainer(workload: bare_loop.Workload, folder: Path, logging: bool) -> Trainer:
    model, optimizer = bare_loop.parts(workload)
    return Trainer(
        model=model, train_dataloader=bare_loop.batches(workload), optimizers=optimizer, device="cpu",
        max_duration="5ba", callbacks=[SpeedMonitor(), LRMonitor(), ThreeMore()] if logging else [],
        loggers=[Parquet(folder, "0" * 12)] if logging else [],
    )  # fmt: skip


def pair_ratio(workload: bare_loop.Workload, logging: bool, trainer_first: bool) -> float:
    """Trainer over plain loop: medians of the CPU time of chunks that take turns, both warmed up."""
    model, optimizer = bare_loop.parts(workload)
    data = bare_loop.batches(workload)
    with tempfile.TemporaryDirectory() as folder, make_trainer(workload, Path(folder), logging) as trainer:
        sides: list[tuple[str, Any]] = [
            ("bare", lambda: bare_loop.train(model, optimizer, data, workload.steps)),
            ("trainer", lambda: trainer.fit(f"{workload.steps}ba")),
        ]
        trainer.fit()
        bare_loop.train(model, optimizer, data, 5)
        seconds: dict[str, list[float]] = {"bare": [], "trainer": []}
        for _ in range(CHUNKS):
            for side, run in sides[::-1] if trainer_first else sides:
                started_s = process_time()
                run()
                seconds[side].append(process_time() - started_s)
    return statistics.median(seconds["trainer"]) / statistics.median(seconds["bare"])


def measure(name: str, pairs: int) -> tuple[float, float, float]:
    """Ratio with its 95 % interval."""
    workload = bare_loop.WORKLOADS[name]
    logs = [math.log(pair_ratio(workload, name != "mlp64", bool(pair % 2))) for pair in range(pairs)]
    mean, half = statistics.fmean(logs), T_95[pairs] * statistics.stdev(logs) / math.sqrt(pairs)
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(bare_loop.WORKLOADS))
    parser.add_argument("--pairs", type=int, default=20, choices=sorted(T_95))
    given = parser.parse_args()
    torch.set_num_threads(1)
    missed = False
    for name in given.names:
        ratio, low, high = measure(name, given.pairs)
        verdict = "holds" if high <= BARS[name] else "MISSED"
        print(f"{name:8} {ratio:.3f} [{low:.3f}, {high:.3f}] n={given.pairs} pairs; bar {BARS[name]}: {verdict}")
        missed |= verdict == "MISSED"
    sys.exit(missed)


if __name__ == "__main__":
    main()
