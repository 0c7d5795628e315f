"""Parts: what the trainer was given, plug-in or plain torch, turned into what the loop works with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from torch.optim.lr_scheduler import LRScheduler

from expkit.duration import Time, TimeUnit
from expkit.errors import UsageError
from expkit.functional.torch_schedules import torch_schedule
from expkit.plugins import Plugin
from expkit.trainer.algorithm import Algorithm, name_of
from expkit.trainer.arguments import instead, is_positive, is_whole, refuse
from expkit.trainer.callback import Callback
from expkit.trainer.calling import takes
from expkit.trainer.contracts import Scheduler
from expkit.trainer.engine import Engine
from expkit.trainer.loaders import Sizes
from expkit.trainer.logger import LoggerDestination
from expkit.trainer.losses import cross_entropy
from expkit.trainer.microbatch import Search
from expkit.trainer.modules import who_needs_closure
from expkit.trainer.rates import Rates
from expkit.trainer.schedule import Factor, Steps, total_steps
from expkit.trainer.state import State

_INTERVALS = ("interval", "save_interval", "patience")
"""Fields of callbacks that say how often, or how long."""
P = TypeVar("P", Algorithm, Callback, LoggerDestination)


def parse_time(what: str, given: object) -> Time:
    """A Time from what an argument was given; UsageError names the argument."""
    if isinstance(given, Time):
        return given
    if not isinstance(given, str):
        hint = f"write {given}ep or {given}ba" if is_whole(given) else "see expkit.Time"
        refuse(what, "a duration with its unit, such as 2ep, 500ba, 0.1dur or 90m", given, hint)
    try:
        return Time.parse(given)
    except ValueError as e:
        raise UsageError(f"{what}: {e}") from None


def duration_of(given: str | Time, ssr: float, what: str = "max_duration") -> Time:
    """How long to train, under the ssr; UsageError for what is no length of a training."""
    duration = parse_time(what, given)
    if duration.unit in (TimeUnit.DURATION, TimeUnit.ITERATION) or duration.value == 0:
        raise UsageError(f"{what} must be positive, in ep, ba, sp, tok or sec, but got {duration}")
    return duration.scaled(ssr)


def iteration_length_of(given: str | Time | None) -> Time | None:
    """How long an iteration is; UsageError for what is none."""
    if given is None:
        return None
    length = parse_time("iteration_length", given)
    if length.unit in (TimeUnit.DURATION, TimeUnit.ITERATION, TimeUnit.SECOND) or length.value == 0:
        raise UsageError(f"iteration_length must be positive, in ep, ba, sp or tok, but got {length}")
    return length


def seconds_of(what: str, given: float | str) -> float:
    """Seconds from a number of them or from text such as `5m`."""
    wanted = "positive, in seconds or as 90s, 5m or 1h30m"
    if not isinstance(given, str):
        return float(given) if is_positive(given) else refuse(what, wanted, given)
    time = parse_time(what, given)
    return time.value if time.unit is TimeUnit.SECOND and time.value else refuse(what, wanted, given)


def steps_of(duration: Time, sizes: Sizes, ssr: float) -> Steps:
    """What `duration`, scaled already, means in steps of a loader with these sizes."""
    if duration.unit is TimeUnit.SAMPLE and not (sizes.batch_size and sizes.samples):
        raise UsageError(
            f"max_duration is {duration}, but the loader does not say how many samples it has; use ep or ba"
        )
    total = total_steps(duration, sizes.batches, sizes.batch_size, sizes.samples)
    return Steps(
        total=1_000_000 if total is None else total,  # nothing measured yet; Rates corrects it at each step
        per_epoch=sizes.batches,
        batch_size=max(1, sizes.batch_size),
        tokens_per_batch=sizes.tokens / sizes.batches,
        ssr=ssr,
    )


def in_tokens(state: State, evaluations: Sequence[Any]) -> str:
    """The first argument that is given in tokens, with its value; empty where none is."""
    times = {"iteration_length": state.iteration_length}
    times |= {f"eval_interval of evaluator {one.label}": one.interval for one in evaluations}
    for label, callback in state.callbacks.items():
        times |= {f"{name} of {label}": getattr(callback, name, None) for name in _INTERVALS}
    found = [f"{name}={time}" for name, time in times.items() if isinstance(time, Time) and time.unit is TimeUnit.TOKEN]
    return found[0] if found else ""


def microbatch_size(size: int | str | None) -> int | None:
    """Samples of a microbatch, None for the whole batch, which is where `auto` starts."""
    if size is None or size == "auto":
        return None
    if not is_whole(size) or int(size) < 1:
        refuse("device_train_microbatch_size", "None, auto or a number of samples, at least 1", size)
    return int(size)


def search_of(state: State, engine: Engine) -> Search:
    """The search for a microbatch size; UsageError where it could not keep its promise."""
    if closures := who_needs_closure(
        state.algorithms, state.optimizer
    ):  # what fails in the second pass cannot undo the first
        raise UsageError(
            f"device_train_microbatch_size cannot be auto with {closures[0]}, which needs gradients more than once a "
            f"step; give a number"
        )
    if state.world_size > 1:
        raise UsageError(
            f"device_train_microbatch_size is auto on one rank only, but there are {state.world_size}; give a number"
        )
    return Search(state, engine)


def late_targets(state: State) -> str | None:
    """The label of a method that changes targets, where a loss that outputs bring along would never see them."""
    changing = [label for label, algorithm in state.algorithms.items() if algorithm.changes_targets]
    return changing[0] if changing and state.loss_fn is cross_entropy else None


def schedulers_of(given: Any) -> list[Any]:
    """One scheduler, several, or none, as a list."""
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    for scheduler in several:
        _refuse_no_scheduler(scheduler)
    return [scheduler for scheduler in several if scheduler is not None]


def _refuse_no_scheduler(given: Any) -> None:
    if given is None or isinstance(given, (Scheduler, LRScheduler)):
        return
    if isinstance(given, type) or not callable(given):
        refuse("schedulers", "schedulers of expkit or of torch, or functions of the step", given, instead(given))
    if not any(takes(given, count) for count in (1, 2)):
        refuse("schedulers", "functions of (step) or of (step, steps)", given)


def rates_of(state: State, *, every_batch: bool) -> Rates:
    """The rates of all the state's schedulers; those of torch become functions of the step, under the ssr."""
    torchs = [s for s in state.schedulers if isinstance(s, LRScheduler)]
    for scheduler in torchs:
        if scheduler.optimizer is not state.optimizer:
            raise UsageError(f"{type(scheduler).__name__} was made for another optimizer than the trainer's")
    return Rates(
        [_factor(s, state.steps.ssr) for s in state.schedulers if not isinstance(s, LRScheduler)],
        [torch_schedule(s, state.steps.ssr) for s in torchs],
        every_batch=every_batch,
        plugins=[s for s in state.schedulers if isinstance(s, Scheduler)],
    )


def _factor(scheduler: Any, ssr: float) -> Factor:
    if isinstance(scheduler, Scheduler):
        return scheduler.factor
    if _num_arguments(scheduler) > 1:
        return scheduler  # type: ignore[no-any-return]
    if ssr != 1:
        raise UsageError(
            f"ssr={ssr} cannot scale a schedule that is a function of the step alone; give one of (step, steps), "
            f"which finds its length in steps.total and steps.of(time)"
        )
    return functools.wraps(scheduler)(lambda step, steps: scheduler(step))


def _num_arguments(function: Callable[..., Any]) -> int:
    """Arguments that must be given by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C do not say
        return 1
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def labelled(what: str, kind: type[P], given: Any, more: Sequence[P] = ()) -> dict[str, P]:
    """By label: the keys of a mapping, else the plug-ins' names, numbered where one comes twice; then `more`.

    One alone is a list of one. UsageError for what is no plug-in of the kind, and for one that is there twice.
    """
    labelled: dict[str, P] = {}
    if isinstance(given, Mapping):
        labelled.update(given)
        given = ()
    alone = isinstance(given, (Plugin, type, str)) or not isinstance(given, Iterable)
    several: list[Any] = [] if given is None else [given] if alone else list(given)
    for plugin in (*several, *more):
        name = label = name_of(plugin)
        count = 1
        while label in labelled:
            count += 1
            label = f"{name}_{count}"
        labelled[label] = plugin
    for label, plugin in labelled.items():
        if not isinstance(label, str) or not label:
            refuse(what, "a dict by names", label)
        _refuse_other_than(kind, plugin, what)
        if again := [other for other, one in labelled.items() if one is plugin and other != label]:
            raise UsageError(f"{what} have one {type(plugin).__name__} twice, as {label} and {again[0]}; it would be "
                             f"called twice at each event: give it once, or make two of them")  # fmt: skip
    return labelled


def _refuse_other_than(kind: type[Any], plugin: Any, what: str) -> None:
    if isinstance(plugin, kind):
        return
    if isinstance(plugin, type) and issubclass(plugin, kind):
        raise UsageError(f"{what} are instances, but {plugin.__name__} is a class; write {plugin.__name__}(...)")
    got = plugin.__name__ if isinstance(plugin, type) else f"{plugin!r:.60} ({type(plugin).__name__})"
    raise UsageError(f"{what} are instances of expkit.{kind.__name__}, but there is {got}")
