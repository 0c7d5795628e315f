"""Train metrics: metrics that see what training forward passes give; the part of the callback that needs torch."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from expkit.errors import UsageError
from expkit.trainer.batch import mapped
from expkit.trainer.calling import eval_forward, evaluates_itself, update_metrics
from expkit.trainer.default_metrics import agree, fitting
from expkit.trainer.evaluation import set_aside
from expkit.trainer.evaluator import metrics_of, series_of
from expkit.trainer.logger import Logger
from expkit.trainer.precision import autocast
from expkit.trainer.ranks import add_up, adds_up, refuse_what_cannot_add_up
from expkit.trainer.state import State
from expkit.trainer.streams import seed_context


class Watch:
    """Metrics of one training; those that nobody named are settled by its first microbatch."""

    def __init__(self, given: Any, state: State, whose: str) -> None:
        """UsageError for what is no metric, or what cannot go on after a checkpoint or be added up over ranks.

        `whose` they are called in messages.
        """
        self._whose = whose
        found = _named(given, state, whose)
        self._metrics = None if found is None else _own(found, state, whose)
        self._sums: Mapping[str, Any] = {}
        self._agreed = state.world_size == 1
        self.begun = False
        """Whether a batch has come since `values` was asked; the same on all ranks, whichever had samples of it."""

    def update(self, state: State, logger: Logger) -> None:
        """Take in the microbatch that has just had its loss."""
        with _shown(state, self._whose):
            if self._metrics is None:
                self._metrics = _settled(state, logger, self._whose)
                self._take_up()
            if self._metrics:
                update_metrics(state, self._metrics)

    def values(self, state: State) -> dict[str, float]:
        """What they say by the names of their series; afterwards they have seen nothing. A collective."""
        metrics = {} if self._metrics is None else self._metrics
        if not self._agreed:
            agree(metrics)
            self._metrics, self._agreed = metrics, True
        if state.world_size > 1:
            add_up(metrics)
        series = series_of("train", metrics)
        for metric in metrics.values():
            metric.reset()
        self.begun = False
        return series

    def state_dict(self) -> dict[str, Any]:
        """Sums of those that add up, of torchmetrics' their own state."""
        unsettled = self._metrics is None
        sums = self._sums if unsettled else {name: _sums(metric) for name, metric in (self._metrics or {}).items()}
        return {"begun": self.begun, "sums": dict(sums)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.begun, self._sums = saved["begun"], saved["sums"]
        self._take_up()

    def _take_up(self) -> None:
        for name, metric in (self._metrics or {}).items():
            metric.reset()
            if name in self._sums:
                metric.set_totals(self._sums[name]) if adds_up(metric) else metric.load_state_dict(self._sums[name])


def _settled(state: State, logger: Logger, whose: str) -> dict[str, Any]:
    found = {name: metric for name, metric in fitting(state, whose).items() if name != "loss"}
    if not found:
        logger.log_event(whose, {"message": "nothing but the loss fits what the model gives, and that is train/loss "
                                 "already; name metrics that fit"})  # fmt: skip
    return found


def _named(given: Any, state: State, whose: str) -> dict[str, Any] | None:
    found = metrics_of(given, state.model, f"of {whose}")
    if given is None and found is not None:
        found.pop("loss", None)
    if found is not None and "loss" in found:
        raise UsageError(f"{whose} cannot record loss: train/loss is recorded at every batch; give it another name")
    return found


def _own(metrics: Mapping[str, Any], state: State, whose: str) -> dict[str, Any]:
    """Copies: those of the model may be an evaluator's as well, which resets them in the middle of an epoch."""
    if state.world_size > 1:
        refuse_what_cannot_add_up(metrics)
    return {name: _ready(f"{name!r} of {whose}", copy.deepcopy(metric), state) for name, metric in metrics.items()}


def _ready(what: str, metric: Any, state: State) -> Any:
    if not adds_up(metric) and not hasattr(metric, "load_state_dict"):
        raise UsageError(f"metric {what} could not go on after a checkpoint: it has neither totals() and set_totals() "
                         f"nor state_dict() and load_state_dict()")  # fmt: skip
    if hasattr(metric, "persistent"):
        metric.persistent(True)  # torchmetrics leave their sums out of their state otherwise
    metric.reset()
    return metric.to(state.device) if hasattr(metric, "to") else metric


def _sums(metric: Any) -> Any:
    return metric.totals() if adds_up(metric) else dict(metric.state_dict())


@contextlib.contextmanager
def _shown(state: State, whose: str) -> Iterator[None]:
    """Inside, outputs are as metrics see them, without a graph; outside all is as it was."""
    kept = state.outputs
    with torch.no_grad():
        try:
            state.outputs = mapped(_detached, kept)
            if evaluates_itself(state):
                state.outputs = _as_evaluated(state, whose)
            yield
        finally:
            state.outputs = kept


def _as_evaluated(state: State, stream: str) -> Any:
    """What the model's `eval_forward` makes of the outputs, in evaluation mode; it draws from a stream of its own."""
    where = state.device
    with set_aside(state, state.data, None), seed_context(where, state.seed, stream), autocast(where, state.precision):
        state.model.eval()
        return eval_forward(state, state.outputs)


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, Tensor) else leaf
