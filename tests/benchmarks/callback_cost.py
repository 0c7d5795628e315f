"""What a step costs with each callback, in microseconds spent in its methods, with a 95 % interval.

    OMP_NUM_THREADS=1 python tests/benchmarks/callback_cost.py [--runs 6] [speed_monitor ...]

MLP 64-64-10 on batches of 32, a step of about 300 microseconds, callbacks at their defaults, records into memory. The
clock is read around each call inside a real training, so caches are as cold as they are there; to that come a tenth of
a microsecond a number in the logger and half a microsecond an event that nobody else listens to. Told are the median
over steps without a record, over steps with one, and the mean that follows from how often there is one; a t interval
over trainings. A minute of CPU time in all.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import math
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from expkit import plugins
from expkit.loggers.memory import Memory
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from expkit.trainer.logger import Logger
from expkit.trainer.trainer import Trainer
from tests.benchmarks import bare_loop

STEPS = 1000
T_95 = {3: 4.303, 6: 2.571, 12: 2.201}
REQUIRED: dict[str, dict[str, Any]] = {
    "early_stopper": {"monitor": "train/loss", "patience": "1000000ba"},
    "threshold_stopper": {"monitor": "train/loss", "threshold": -1.0, "stop_on_batch": True},
}


class Timed(Callback):
    """Hands events on to a callback and adds up what each step took."""

    def __init__(self, callback: Callback) -> None:
        self.memory = Memory()
        self.silent_us: list[float] = []
        self.recording_us: list[float] = []
        self._step_us, self._records = 0.0, 0
        self._at_the_end = getattr(callback, Event.BATCH_CHECKPOINT.value, None)
        for event in Event:
            if hasattr(callback, event.value) and event is not Event.BATCH_CHECKPOINT:
                setattr(self, event.value, functools.partial(self._hand_on, getattr(callback, event.value)))

    def batch_checkpoint(self, state: Any, logger: Any) -> None:
        if self._at_the_end:
            self._hand_on(self._at_the_end, state, logger)
        records = sum(len(rows) for rows in self.memory.series.values())
        (self.recording_us if records > self._records else self.silent_us).append(self._step_us)
        self._step_us, self._records = 0.0, records

    def _hand_on(self, method: Any, state: Any, logger: Any) -> None:
        facade = Logger([self.memory], state)
        facade.hold({})
        started_s = perf_counter()
        method(state, facade)
        self._step_us += 1e6 * (perf_counter() - started_s)
        facade.release()


def training(name: str) -> tuple[float, float, float]:
    """Microseconds of a silent step, of a recording one, and of the mean step; NaN where there is none of a kind."""
    workload = bare_loop.WORKLOADS["mlp64"]
    model, optimizer = bare_loop.parts(workload)
    callback = plugins.build("callbacks", name, REQUIRED.get(name, {}))
    assert isinstance(callback, Callback)
    timed = Timed(callback)
    with Trainer(
        model=model, train_dataloader=bare_loop.batches(workload), optimizers=optimizer, device="cpu",
        max_duration=f"{STEPS}ba", callbacks=[timed],
    ) as trainer:  # fmt: skip
        trainer.fit()
    kinds = [timed.silent_us[5:], timed.recording_us[5:]]
    silent, recording = (statistics.median(kind) if kind else math.nan for kind in kinds)
    mean = sum(len(kind) * middle for kind, middle in zip(kinds, (silent, recording), strict=True) if kind)
    return silent, recording, mean / sum(map(len, kinds))


def _can_be_made(name: str) -> bool:
    required = [s.name for s in plugins.settings(plugins.load("callbacks", name)) if s.default is dataclasses.MISSING]
    return not required or name in REQUIRED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[n for n in plugins.names("callbacks") if _can_be_made(n)])
    parser.add_argument("--runs", type=int, default=6, choices=sorted(T_95))
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'callback':24} {'silent':>8} {'recording':>10} {'mean':>8} us a step, 95 % interval, n={given.runs}")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some callbacks write files
        for name in given.names:
            silent, recording, mean = zip(*(training(name) for _ in range(given.runs)), strict=True)
            middle, half = statistics.fmean(mean), T_95[given.runs] * statistics.stdev(mean) / math.sqrt(given.runs)
            print(f"{name:24} {statistics.fmean(silent):8.1f} {statistics.fmean(recording):10.1f} {middle:8.1f}"
                  f"  [{middle - half:.1f}, {middle + half:.1f}]", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
