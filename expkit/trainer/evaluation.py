"""Evaluation: the quality of the model now, on data it is not trained on; costs training no second and no draw."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from expkit.errors import ExpkitError
from expkit.trainer.batch import to_device
from expkit.trainer.calling import eval_forward, update_metrics
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.default_metrics import agree, fitting
from expkit.trainer.devices import synchronize
from expkit.trainer.diagnosis import explain
from expkit.trainer.engine import Engine
from expkit.trainer.evaluator import Evaluation, values_of
from expkit.trainer.event import Event
from expkit.trainer.loader_failure import end_workers, raise_failure_of
from expkit.trainer.precision import autocast
from expkit.trainer.ranks import add_up, share_buffers
from expkit.trainer.state import State


def evaluate(state: State, engine: Engine, evaluations: Sequence[Evaluation]) -> None:
    """Run the evaluations, log their metrics, leave model and state as they were."""
    synchronize(state.device)
    if state.world_size > 1:
        share_buffers(state.model)
    engine.fire(Event.EVAL_BEFORE_ALL)
    for evaluation in evaluations:
        run(state, engine, evaluation)
        state.evaluated_at[evaluation.label] = state.timestamp.batch
    engine.fire(Event.EVAL_AFTER_ALL)


class set_aside:
    """Lends the state's batch, outputs and loss, and lets the model go into eval mode; afterwards all is as it was."""

    def __init__(self, state: State, data: DataSpec, name: str | None) -> None:
        self.state, self.data, self.name = state, data, name

    def __enter__(self) -> None:
        state = self.state
        self.kept = (state.batch, state.outputs, state.loss, state.data, state.eval_name)
        self.training = [module for module in state.model.modules() if module.training]
        state.data, state.eval_name = self.data, self.name

    def __exit__(self, *_: object) -> None:
        state = self.state
        state.batch, state.outputs, state.loss, state.data, state.eval_name = self.kept
        for module in self.training:
            module.training = True  # each as it was: a frozen BatchNorm stays frozen


def run(state: State, engine: Engine, evaluation: Evaluation) -> dict[str, float]:
    """One evaluation from EVAL_START to EVAL_END; gives its metrics by the names of their series."""
    with set_aside(state, evaluation.data, evaluation.label):
        return _run(state, engine, evaluation)


@contextlib.contextmanager
def batches_of(state: State, subset: int | None) -> Iterator[Iterator[Any]]:
    """The batches of `state.data` on the device, all or the first `subset`; without those that other ranks have.

    An error while they are read ends the loader's workers, for its traceback would keep them.
    """
    loader = state.data.dataloader
    iterator = iter(loader)
    try:
        yield _on_device(state, itertools.islice(iterator, subset))
    except BaseException as e:
        end_workers(iterator, loader)
        raise_failure_of(e, state.timestamp)
        explain(e, state)
        raise


def _on_device(state: State, batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        batch = state.data.transformed(batch)
        if state.data.num_samples(batch):
            yield state.data.transformed_microbatch(to_device(batch, state.device))


def _run(state: State, engine: Engine, evaluation: Evaluation) -> dict[str, float]:
    clocks = engine.clocks
    engine.fire(Event.EVAL_START)
    before = clocks.switch("eval_s")
    state.model.eval()
    metrics, unsettled = evaluation.metrics, evaluation.by_default and not evaluation.metrics
    for metric in metrics.values():
        metric.reset()
    seen = 0
    with torch.no_grad(), batches_of(state, evaluation.subset_num_batches) as batches:
        for batch in batches:
            state.batch = batch
            seen += 1
            engine.fire(Event.EVAL_BATCH_START)
            engine.fire(Event.EVAL_BEFORE_FORWARD)
            with autocast(state.device, state.precision):
                state.outputs = eval_forward(state)
            engine.fire(Event.EVAL_AFTER_FORWARD)
            if unsettled and not metrics:
                metrics.update(fitting(state, f"evaluator {evaluation.label}"))
            update_metrics(state, metrics)
            engine.fire(Event.EVAL_BATCH_END)
    if state.world_size == 1 and not seen:
        raise ExpkitError(f"the data of evaluator {evaluation.label} gave no batch with a sample, so nothing can be "
                          f"measured; a generator gives its batches only once: use a list or a DataLoader")  # fmt: skip
    if state.world_size > 1:
        if unsettled:
            agree(metrics)
        add_up(metrics)
    values = values_of(evaluation)
    clocks.switch("callbacks_s")
    state.metrics.update(values)
    state.train_s, state.cpu_s, state.wall_s = clocks.train_s, clocks.cpu_s, clocks.wall_s
    engine.logger.log_metrics(values)
    clocks.switch(before)
    engine.fire(Event.EVAL_END)
    return values
