"""Evaluator: the quality of the model now, on data it is not trained on; costs training no second and no draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from expkit.trainer.batch import to_device
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.devices import synchronize
from expkit.trainer.engine import Engine
from expkit.trainer.event import Event
from expkit.trainer.precision import autocast
from expkit.trainer.ranks import add_up, share_buffers
from expkit.trainer.state import State


@dataclass(frozen=True)
class Evaluator:
    """A loader with metrics; the series are called `<name>/<metric>`."""

    name: str
    data: DataSpec
    metrics: dict[str, Any]
    """Metric by name: reset, update(outputs, targets), compute."""


def evaluate(state: State, engine: Engine, evaluators: Sequence[Evaluator]) -> None:
    """Run all evaluators, log their metrics, leave model and state as they were."""
    synchronize(state.device)
    if state.world_size > 1:
        share_buffers(state.model)
    engine.fire(Event.EVAL_BEFORE_ALL)
    for evaluator in evaluators:
        with _set_aside(state, evaluator):
            _run(state, engine, evaluator)
    engine.fire(Event.EVAL_AFTER_ALL)
    state.evaluated_at = state.timestamp.batch


class _set_aside:
    """While inside, the model is in eval mode and the state's batch, outputs and loss are the evaluator's to use."""

    def __init__(self, state: State, evaluator: Evaluator) -> None:
        self.state, self.evaluator = state, evaluator

    def __enter__(self) -> None:
        self.kept = (self.state.batch, self.state.outputs, self.state.loss, self.state.data)
        self.training = [module for module in self.state.model.modules() if module.training]
        self.state.eval_name, self.state.data = self.evaluator.name, self.evaluator.data

    def __exit__(self, *_: object) -> None:
        self.state.batch, self.state.outputs, self.state.loss, self.state.data = self.kept
        self.state.eval_name = None
        for module in self.training:
            module.training = True  # each as it was: a frozen BatchNorm stays frozen


def _run(state: State, engine: Engine, evaluator: Evaluator) -> None:
    clocks, model = engine.clocks, state.model
    engine.fire(Event.EVAL_START)
    before = clocks.switch("eval_s")
    model.eval()
    for metric in evaluator.metrics.values():
        metric.reset()
    with torch.no_grad():
        for batch in state.data.dataloader:
            batch = state.data.transformed(batch)
            if state.data.num_samples(batch) == 0:
                continue  # other ranks have all of it
            state.batch = state.data.transformed_microbatch(to_device(batch, state.device))
            engine.fire(Event.EVAL_BATCH_START)
            engine.fire(Event.EVAL_BEFORE_FORWARD)
            with autocast(state.device, state.precision):
                state.outputs = model(state.inputs)
            engine.fire(Event.EVAL_AFTER_FORWARD)
            for metric in evaluator.metrics.values():
                metric.update(state.outputs, state.targets)
            engine.fire(Event.EVAL_BATCH_END)
    if state.world_size > 1:
        add_up(evaluator.metrics)
    values = {f"{evaluator.name}/{name}": float(metric.compute()) for name, metric in evaluator.metrics.items()}
    clocks.switch("callbacks_s")
    state.metrics.update(values)
    state.train_s, state.cpu_s, state.wall_s = clocks.train_s, clocks.cpu_s, clocks.wall_s
    engine.logger.log_metrics(values)
    clocks.switch(before)
    engine.fire(Event.EVAL_END)
