"""Probe: what a step, an evaluation and the setup of a recipe cost, from its first 20 steps. A process of its own.

The first five steps are warm-up and count as setup; nothing is recorded, and no trial is made.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from expkit.duration import Time, TimeUnit
from expkit.launch.apart import answer
from expkit.launch.compose import compose
from expkit.launch.forecast import Cost
from expkit.spec.files import load_recipe
from expkit.spec.recipe import Recipe
from expkit.trainer.devices import synchronize
from expkit.trainer.logger import LoggerDestination
from expkit.trainer.trainer import Trainer

STEPS = 20
WARM = 5


class _Stopwatch(LoggerDestination):
    """Notes when each batch has ended, and ends training after a few; listens last, as loggers do."""

    def __init__(self) -> None:
        self.ends_s: list[float] = []

    def batch_end(self, state: Any, logger: Any) -> None:
        """The device is waited for, so that a step's time is its own."""
        synchronize(state.device)
        self.ends_s.append(time.perf_counter())
        if len(self.ends_s) >= STEPS:
            state.stop("probed")


def _answer(order: Mapping[str, Any]) -> dict[str, Any]:
    sys.path[:0] = order["path"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "recipe.yaml")
        path.write_text(order["recipe"], encoding="utf-8")
        recipe = load_recipe(path, trust_imports=order["trust"])
    torch.set_num_threads(recipe.runtime.threads)
    return asdict(probe(recipe, order["trust"]))


def probe(recipe: Recipe, trust: Sequence[str]) -> Cost:
    """The cost of a trial by its parts; evaluations are as many as the recipe's intervals make."""
    began_s = time.perf_counter()
    watch, length = _Stopwatch(), recipe.trainer.max_duration
    trainer = compose(replace(recipe, trainer=replace(recipe.trainer, eval_interval=length)), trust=trust,
                      loggers=[watch])  # fmt: skip
    try:
        trainer.fit()
        evaluated_s = time.perf_counter()
        trainer.eval()
        eval_s = time.perf_counter() - evaluated_s
    finally:
        trainer.close()
    ends_s, warm = watch.ends_s, min(WARM, len(watch.ends_s) - 1)
    step_s = (ends_s[-1] - ends_s[warm - 1]) / (len(ends_s) - warm) if warm else ends_s[0] - began_s
    steps = _steps(trainer, length, step_s)
    setup_s = max(0.0, ends_s[warm - 1] - began_s - warm * step_s) if warm else 0.0
    return Cost(steps, step_s, _evaluations(recipe, trainer, length, steps, step_s), eval_s, setup_s)


def _steps(trainer: Trainer, length: Time, step_s: float) -> float:
    """Of a whole trial; of one whose length is in seconds as many as fit."""
    state = trainer.state
    return length.scaled(state.steps.ssr).value / step_s if length.unit is TimeUnit.SECOND else float(state.steps.total)


def _evaluations(recipe: Recipe, trainer: Trainer, length: Time, steps: float, step_s: float) -> float:
    """How often all evaluators run in a whole trial, the end among it; the mean over evaluators."""
    given, labels = recipe.trainer.eval_interval, list(recipe.data.eval)
    intervals = [given.get(label, length) if not isinstance(given, Time) else given for label in labels]
    every = [_steps_of(trainer, interval, step_s) for interval in intervals]
    return sum(max(1.0, steps / each) for each in every) / max(1, len(every))


def _steps_of(trainer: Trainer, interval: Time, step_s: float) -> float:
    if interval.unit is TimeUnit.SECOND:
        return interval.scaled(trainer.state.steps.ssr).value / step_s
    if interval.unit is TimeUnit.ITERATION:  # without a length a fit is one
        return float(trainer.state.steps.total)
    return trainer.state.steps.of(interval)


if __name__ == "__main__":
    answer(_answer)
