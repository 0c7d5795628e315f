"""Evaluator: data to measure quality on, with metrics of its own and a rhythm of its own.

Trainer(..., eval_dataloader=[Evaluator("test", test_dl), Evaluator("probe", probe_dl, [F1()], eval_interval="10ba")])
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from expkit.duration import Time
from expkit.errors import ExpkitError, UsageError, unknown
from expkit.trainer.algorithm import name_of
from expkit.trainer.arguments import instead
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.default_metrics import Loss, usual
from expkit.trainer.interval import Every
from expkit.trainer.loaders import check_subset, data_of
from expkit.trainer.parts import parse_time
from expkit.trainer.ranks import refuse_what_cannot_add_up
from expkit.trainer.state import State

_MOST_NUMBERS = 4096
"""Of one metric; a confusion matrix of 64 classes has as many."""


@dataclass(frozen=True)
class Evaluator:
    """Give one or a list of them as `eval_dataloader`; the series are called `<label>/<metric>`."""

    label: str
    """A name of its own among the evaluators."""
    dataloader: Any
    """A Dataset plug-in, a torch DataLoader, any iterable of batches, or a DataSpec of one."""
    metrics: Any = None
    """A metric, or several in a list or by name: objects with `reset()`, `update(outputs, targets)` and `compute()`, or
    names among the model's. By default all of the model's; where it has none, those that fit its outputs
    (`trainer/default_metrics.py`), which may be named too: accuracy, cross_entropy, loss."""
    subset_num_batches: int | None = None
    """An evaluation is that many batches; by default what the trainer says."""
    eval_interval: str | Time | None = None
    """How often, such as `100ba`; by default what the trainer says. At the end of training in any case."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluator that is ready: its loader built, its metrics by name and on the device."""

    label: str
    data: DataSpec
    metrics: dict[str, Any]
    """Empty before the first batch, where they are those that fit."""
    by_default: bool
    """Whether nobody said which metrics."""
    subset_num_batches: int | None
    interval: Time


def evaluations_of(given: Any, state: State, subset: int | None, interval: Time) -> list[Evaluation]:
    """Of an evaluator or a list of them, of data by label, or of data, which is then called `eval`."""
    evaluators = _evaluators_of(given)
    for evaluator in evaluators:
        if evaluator.label == "train":
            raise UsageError("an evaluator cannot be called train, as metrics of the training data are")
        if not isinstance(evaluator.label, str) or not evaluator.label or "/" in evaluator.label:
            raise UsageError(f"the label of an evaluator is a name without a slash, but got {evaluator.label!r}")
        if [other.label for other in evaluators].count(evaluator.label) > 1:
            raise UsageError(f"each evaluator needs a label of its own, but several are called {evaluator.label!r}")
    return [_ready(evaluator, state, subset, interval) for evaluator in evaluators]


def intervals_of(evaluations: Sequence[Evaluation], state: State) -> dict[str, Every]:
    """When each is due from now on, by label."""
    return {evaluation.label: Every(evaluation.interval, state) for evaluation in evaluations}


def values_of(evaluation: Evaluation) -> dict[str, float]:
    """What its metrics computed, by the names of their series: `eval/f1`, or `eval/f1.macro` for one of several."""
    return series_of(evaluation.label, evaluation.metrics)


def series_of(label: str, metrics: Mapping[str, Any]) -> dict[str, float]:
    """The same of any metrics."""
    series: dict[str, float] = {}
    for name, metric in metrics.items():
        series.update(_numbers(f"{label}/{name}", metric.compute()))
    return series


def _evaluators_of(given: Any) -> list[Evaluator]:
    if given is None or isinstance(given, Evaluator):
        return [] if given is None else [given]
    if isinstance(given, Mapping):
        return [replace(data, label=label) if isinstance(data, Evaluator) else Evaluator(label, data)
                for label, data in given.items()]  # fmt: skip
    if isinstance(given, (list, tuple)) and any(isinstance(one, Evaluator) for one in given):
        if others := [type(one).__name__ for one in given if not isinstance(one, Evaluator)]:
            raise UsageError(
                f"a list of evaluators holds nothing else, but there is a {others[0]}; make it an Evaluator"
            )
        return list(given)
    return [Evaluator("eval", given)]


def _ready(evaluator: Evaluator, state: State, subset: int | None, interval: Time) -> Evaluation:
    what = f"of evaluator {evaluator.label}"
    given = metrics_of(evaluator.metrics, state.model, what)
    metrics = {name: metric.to(state.device) if hasattr(metric, "to") else metric for name, metric in
               (given or {}).items()}  # fmt: skip
    if state.world_size > 1:
        refuse_what_cannot_add_up(metrics)
    own, every = check_subset(f"subset_num_batches {what}", evaluator.subset_num_batches), evaluator.eval_interval
    place = {"seed": state.seed, "rank": state.rank, "world_size": state.world_size}
    data = data_of(evaluator.dataloader, **place, what=f"dataloader {what}")
    return Evaluation(
        label=evaluator.label,
        data=data,
        metrics=metrics,
        by_default=given is None,
        subset_num_batches=subset if own is None else own,
        interval=interval if every is None else parse_time(f"eval_interval {what}", every),
    )


def metrics_of(given: Any, model: torch.nn.Module, what: str) -> dict[str, Any] | None:
    """Metrics by name, whatever was given; None where neither that nor the model names any. UsageError otherwise."""
    if given is None:
        if of_model := _metrics_of_model(model):
            _refuse_no_metrics(of_model.values(), f"that metrics() of {type(model).__name__} gives")
        return of_model
    if not isinstance(given, Mapping):
        several = given if isinstance(given, (list, tuple)) else [given]
        given = {one if isinstance(one, str) else name_of(one): one for one in several}
        if len(given) < len(several):
            raise UsageError(f"two metrics {what} have one name; give them by name, as a dict")
    named = any(isinstance(metric, str) for metric in given.values())
    of_model = _metrics_of_model(model) if named else {}
    known = {"loss": Loss(), **(usual() if of_model is None else of_model)}
    for metric in given.values():
        if isinstance(metric, str) and metric not in known:
            raise UsageError(unknown(f"metric {what}", metric, list(known)))
    _refuse_no_metrics((metric for metric in given.values() if not isinstance(metric, str)), what)
    return {name: known[metric] if isinstance(metric, str) else metric for name, metric in given.items()}


def _refuse_no_metrics(metrics: Iterable[Any], what: str) -> None:
    for metric in metrics:
        if isinstance(metric, type):
            raise UsageError(f"a metric {what} is an instance, but {metric.__name__} is a class; "
                             f"{instead(metric)}")  # fmt: skip
        if missing := [name for name in ("reset", "update", "compute") if not hasattr(metric, name)]:
            raise UsageError(f"a metric {what} is a {type(metric).__name__}, which has no {missing[0]}()")


def _metrics_of_model(model: torch.nn.Module) -> dict[str, Any] | None:
    own: Any = getattr(model, "metrics", None)
    if not callable(own) or isinstance(own, torch.nn.Module):  # some modules keep theirs under that name
        return None
    metrics = own()
    if not isinstance(metrics, Mapping):
        raise ExpkitError(f"metrics() of a model is a dict by name, but {type(model).__name__} gave {metrics!r}")
    return dict(metrics)


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Each number in what a metric computed, under a dotted name of its own."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(f"{name}.{key}", part)
        return
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", None):
        _refuse_too_many(name, value)
        for place, part in enumerate(value):
            yield from _numbers(f"{name}.{place}", part)
        return
    yield name, _number(name, value)


def _number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value.detach() if isinstance(value, torch.Tensor) else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # torch's word for complex numbers is RuntimeError
        pass
    raise ExpkitError(f"{name} must be a number, or a dict or list of them, but its metric computed a "
                      f"{type(value).__name__}: {value!r:.60}")  # fmt: skip


def _refuse_too_many(name: str, value: Any) -> None:
    count = math.prod(getattr(value, "shape", None) or [len(value)])
    if count > _MOST_NUMBERS:
        raise ExpkitError(f"{name} has {count} numbers, and each would be a series of its own; at most {_MOST_NUMBERS} "
                          f"are recorded: let the metric compute less, or log_table from a callback")  # fmt: skip
