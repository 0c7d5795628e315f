"""Calling: how a model is called with a batch. All that a module may define beside `forward` is optional.

    forward(inputs)                             of a mapping it gets the keys that it takes by name
    forward(batch)                              with a `loss(outputs, batch)`, or where batches are mappings: all of it
    eval_forward(batch, outputs=None)           outputs for an evaluation; with those of a training forward pass it
                                                need not make them again
    update_metric(batch, outputs, metric)       else metric.update(logits, targets); a metric with an
                                                update_from(state) gets that instead

What a signature says is read once a model.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from inspect import Parameter
from typing import TYPE_CHECKING, Any

import torch

from expkit.errors import ExpkitError
from expkit.trainer.layout import Layout

if TYPE_CHECKING:
    from expkit.trainer.state import State


def forward(state: State) -> Any:
    """Outputs of the model for the state's batch."""
    calls = state.calls
    if calls is None or calls.model is not state.model:
        calls = _calls(state)
    batch, layout = state.batch, state.data.layout
    if type(batch) is tuple and layout.inputs_at is None and calls.takes_inputs:  # as most do: the short way
        return calls.model(batch[0])
    return calls(batch, layout)


def eval_forward(state: State, outputs: Any = None) -> Any:
    """Outputs for an evaluation, by the model's own `eval_forward` where it has one.

    `outputs`: those of a forward pass that was made already, which then need not be made again if it takes them.
    """
    calls = _calls(state)
    if calls.eval_forward is None:
        return forward(state) if outputs is None else outputs
    if outputs is None or not calls.reuses_outputs:
        return calls.eval_forward(state.batch)
    return calls.eval_forward(state.batch, outputs=outputs)


def evaluates_itself(state: State) -> bool:
    """Whether the model has an `eval_forward` of its own."""
    return _calls(state).eval_forward is not None


def update_metrics(state: State, metrics: Mapping[str, Any]) -> None:
    """Show the state's outputs to metrics, by the model's own `update_metric` where it has one."""
    own = _calls(state).update_metric
    for metric in metrics.values():
        if hasattr(metric, "update_from"):
            metric.update_from(state)
        elif own is None:
            metric.update(state.logits, state.targets)
        else:
            own(state.batch, state.outputs, metric)


def updates_metrics(state: State) -> bool:
    """Whether the model shows its outputs to metrics itself."""
    return _calls(state).update_metric is not None


def takes_batch(function: Any) -> bool:
    """Whether a function, such as a loss, asks for the whole batch."""
    return "batch" in parameters(function)


def parameters(function: Any) -> Mapping[str, Parameter]:
    """Parameters of a function or module by name; none where it does not say."""
    function = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        return {} if function is None else inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions written in C
        return {}


def takes(function: Any, count: int) -> bool:
    """Whether it can be called with so many arguments by place; true where it does not say."""
    function = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


class Calls:
    """One model and how it wants to be called."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self.eval_forward = getattr(model, "eval_forward", None)
        self.reuses_outputs = "outputs" in parameters(self.eval_forward)
        self.update_metric = getattr(model, "update_metric", None)
        taken = parameters(getattr(model, "_orig_mod", model)).values()  # a compiled module hides what it takes
        by_place = [p.name for p in taken if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
        by_name = {p.name for p in taken if p.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)}
        open_ended = {p.name for p in taken if p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)}
        self._first = by_place[0] if by_place else None
        self._names = by_name
        self._needed = {p.name for p in taken if p.default is Parameter.empty} - open_ended
        self._takes_all = not by_name and any(p.kind is Parameter.VAR_KEYWORD for p in taken)
        self.takes_inputs = self._first != "batch" or not takes_batch(getattr(model, "loss", None))
        """Whether a tuple's inputs are what it is called with, and not the batch."""

    def __call__(self, batch: Any, layout: Layout) -> Any:
        """Outputs for a batch."""
        if not self.takes_inputs:
            return self.model(batch)
        if isinstance(batch, Mapping):
            return self._with_keys(batch, layout)
        return self.model(layout.inputs(batch))

    def _with_keys(self, batch: Mapping[str, Any], layout: Layout) -> Any:
        given = {name: value for name, value in batch.items() if self._takes_all or name in self._names}
        missing = self._needed - given.keys()
        if given and not missing:
            return self.model(**given)
        if self._first is None or missing - {self._first}:
            takes = ", ".join(sorted(missing)) or "nothing"
            raise ExpkitError(f"forward of {type(self.model).__name__} takes {takes}, but the batch has "
                              f"{', '.join(map(str, batch))}")  # fmt: skip
        return self.model(batch if self._first == "batch" else layout.inputs(batch), **given)


def _calls(state: State) -> Calls:
    calls = state.calls
    if calls is None or calls.model is not state.model:
        calls = state.calls = Calls(state.model)
    return calls
