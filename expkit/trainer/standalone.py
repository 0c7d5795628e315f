"""Standalone: evaluation and prediction outside of fit. Model, state and random numbers are left as they were."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from expkit.trainer.batch import to_device
from expkit.trainer.calling import forward
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.engine import Engine
from expkit.trainer.evaluation import batches_of, run, set_aside
from expkit.trainer.evaluator import Evaluation
from expkit.trainer.event import Event
from expkit.trainer.precision import autocast
from expkit.trainer.ranks import share_buffers
from expkit.trainer.state import State
from expkit.trainer.streams import seed_context

_HOST = torch.device("cpu")


def evaluate_alone(state: State, engine: Engine, evaluations: Sequence[Evaluation]) -> dict[str, float]:
    """Run the evaluations and log their metrics, which come back by the names of their series."""
    if state.world_size > 1:
        share_buffers(state.model)
    values: dict[str, float] = {}
    with _aside(state, engine, "eval"):
        engine.fire(Event.EVAL_STANDALONE_START)
        for evaluation in evaluations:
            values |= run(state, engine, evaluation)
        engine.fire(Event.EVAL_STANDALONE_END)
    return values


def predict(
    state: State, engine: Engine, data: DataSpec, subset: int | None = None, *, return_outputs: bool = True
) -> list[Any]:
    """The model's outputs for each batch, on the CPU; an empty list where only listeners want them."""
    outputs: list[Any] = []
    with (
        _aside(state, engine, "predict"),
        set_aside(state, data, None),
        torch.no_grad(),
        batches_of(state, subset) as batches,
    ):
        engine.fire(Event.PREDICT_START)
        state.model.eval()
        engine.clocks.switch("eval_s")
        for batch in batches:
            state.batch = batch
            engine.fire(Event.PREDICT_BATCH_START)
            engine.fire(Event.PREDICT_BEFORE_FORWARD)
            with autocast(state.device, state.precision):
                state.outputs = forward(state)
            engine.fire(Event.PREDICT_AFTER_FORWARD)
            engine.fire(Event.PREDICT_BATCH_END)
            if return_outputs:
                outputs.append(to_device(state.outputs, _HOST))
        engine.fire(Event.PREDICT_END)
    return outputs


@contextlib.contextmanager
def _aside(state: State, engine: Engine, purpose: str) -> Iterator[None]:
    """Draws inside come from a stream of their own, the same every time; the clock goes on as before afterwards."""
    before = engine.clocks.part
    try:
        with seed_context(state.device, state.seed, purpose):
            yield
    finally:
        engine.clocks.switch(before)
