"""The loop: from the first batch to the last. Read it beside the map in event.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from expkit.errors import ExpkitError, Interruption, UsageError
from expkit.trainer.batch import empty
from expkit.trainer.engine import Engine
from expkit.trainer.epochs import Epochs
from expkit.trainer.evaluation import evaluate
from expkit.trainer.evaluator import Evaluation
from expkit.trainer.event import Event
from expkit.trainer.interval import Every
from expkit.trainer.ranks import Ranks
from expkit.trainer.rates import NO_TOKENS, Rates
from expkit.trainer.schedule import OPEN_ENDED
from expkit.trainer.state import State
from expkit.trainer.step import Step
from expkit.trainer.streams import DefaultStream

BEFORE_DATALOADER, AFTER_DATALOADER = Event.BEFORE_DATALOADER, Event.AFTER_DATALOADER  # `Event.X` costs 0.1 us
BATCH_START, BATCH_END, BATCH_CHECKPOINT = Event.BATCH_START, Event.BATCH_END, Event.BATCH_CHECKPOINT


@dataclass
class Loop:
    """What the loop needs beside state and engine."""

    rates: Rates
    evaluations: Sequence[Evaluation]
    eval_every: Mapping[str, Every]
    """When each evaluation is due, by label."""
    iterations: Every | None
    """Where iterations end; without a length of their own one iteration is a fit."""
    in_tokens: str
    """An argument that is given in tokens; empty where there is none."""
    watched: bool
    """Whether there are callbacks or loggers; without them the CPU clock need not be read at every step."""
    epochs: Epochs
    step: Step
    augmentation: DefaultStream | None = None
    """For transforms of whole batches, which may draw from default generators."""
    ranks: Ranks | None = None
    """The others, where there are others."""


def fit(state: State, engine: Engine, loop: Loop) -> None:
    """Train until the duration is reached or somebody asks to stop; evaluate at the end; fire every event."""
    with loop.epochs.reading(state):
        _fit(state, engine, loop)


def _fit(state: State, engine: Engine, loop: Loop) -> None:
    state.fit_open = True
    engine.fire(Event.FIT_START)
    state.model.train()
    if loop.ranks:
        loop.ranks.meet(share=not state.resuming)
    if state.resuming:
        _go_on(state, loop)
    engine.clocks.start()
    _end(state, engine, loop)  # where training was left between the last batch of an epoch or iteration and its end
    while not _ended(state, loop):
        _begin(state, engine, loop)
        _batch(state, engine, loop)
        _end(state, engine, loop)
    if loop.evaluations:  # whoever stopped training did so between evaluations
        _evaluate(state, engine, lambda label: state.evaluated_at.get(label) != state.timestamp.batch, loop)
    engine.clocks.stop()
    if loop.ranks:
        loop.ranks.part()
    if loop.iterations is None and state.timestamp.batch_in_iteration:
        _end_iteration(state, engine)
    state.fit_open = False
    engine.fire(Event.FIT_END)


def _go_on(state: State, loop: Loop) -> None:
    """A checkpoint was taken up: draw as if nothing had happened since, and end where one of the ranks had asked to."""
    state.resuming = False
    state.stateful["rng"].take_up()
    if loop.ranks and loop.ranks.may_stop:
        loop.ranks.settle()


def _begin(state: State, engine: Engine, loop: Loop) -> None:
    """Begin an iteration and an epoch where the next batch is their first."""
    if state.timestamp.batch_in_iteration == 0:
        engine.clocks.switch("loop")
        engine.fire(Event.ITERATION_START)
    if state.batches is None:
        _start_epoch(state, engine, loop)


def _end(state: State, engine: Engine, loop: Loop) -> None:
    """End an epoch and an iteration where the batch just done was their last; neither moves the other."""
    crossed = loop.iterations is not None and loop.iterations.due(state) and state.timestamp.batch_in_iteration > 0
    complete = state.timestamp.batch_in_epoch >= state.steps.per_epoch
    if complete:
        engine.clocks.switch("loop")
        if loop.in_tokens and not state.timestamp.token:
            raise UsageError(f"{loop.in_tokens} counts tokens, but a whole epoch of batches had none; {NO_TOKENS}")
        state.batches = None
        state.timestamp = state.timestamp.to_next_epoch()
        engine.fire(Event.EPOCH_END)
        engine.fire(Event.EPOCH_CHECKPOINT)
    if crossed:
        engine.clocks.switch("loop")
        _end_iteration(state, engine)
    if (complete or crossed) and loop.ranks and loop.ranks.may_stop:
        loop.ranks.settle()


def _end_iteration(state: State, engine: Engine) -> None:
    state.timestamp = state.timestamp.to_next_iteration()
    engine.fire(Event.ITERATION_END)
    engine.fire(Event.ITERATION_CHECKPOINT)


def _batch(state: State, engine: Engine, loop: Loop) -> None:
    """One batch: fetch, train, count, record, evaluate."""
    fire, clocks, ranks = engine.fire, engine.clocks, loop.ranks
    clocks.switch("data_wait_s")
    fire(BEFORE_DATALOADER)
    state.batch, samples, tokens = _next_batch(state, loop)
    clocks.switch("loop")
    if samples:  # none where other ranks have all there is of a short last batch
        fire(AFTER_DATALOADER)
    elif not ranks:
        raise ExpkitError(f"batch {state.timestamp.batch_in_epoch} of epoch {state.timestamp.epoch} has no samples, so "
                          f"there is nothing to train on; leave it out of the train loader")  # fmt: skip
    fire(BATCH_START)
    loop.rates.set(state)
    loop.step.make(samples, tokens)

    clocks.switch("callbacks_s" if loop.watched else "loop")  # from here on only what algorithms do is billed
    state.previous_timestamp = now = state.timestamp
    if ranks:
        state.timestamp = now.to_next_batch(ranks.samples, ranks.tokens, ranks.train_s)
    else:
        state.timestamp = now.to_next_batch(samples, tokens, clocks.train_s)
    state.train_s, state.cpu_s, state.wall_s = clocks.train_s, clocks.cpu_s, clocks.wall_s
    if engine.logger.destinations:
        engine.logger.hold(_recorded(state))  # the engine releases it when callbacks have logged theirs
    fire(BATCH_END)
    if loop.evaluations:
        ended = _ended(state, loop)
        _evaluate(state, engine, lambda label: loop.eval_every[label].due(state, ended=ended), loop)
    fire(BATCH_CHECKPOINT)
    if ranks and ranks.may_stop:
        ranks.settle()
    if asked := ranks.interruption if ranks else loop.step.interruption:
        raise asked


def _evaluate(state: State, engine: Engine, due: Callable[[str], bool], loop: Loop) -> None:
    """Run those that are due by their labels; a model that has diverged is not worth it."""
    if state.stop_reason == "diverged":
        return
    if evaluations := [evaluation for evaluation in loop.evaluations if due(evaluation.label)]:
        engine.clocks.switch("callbacks_s")
        evaluate(state, engine, evaluations)


def _recorded(state: State) -> dict[str, float]:
    record = {"train/loss": state.train_loss}
    if state.losses:
        values = torch.stack([value.double() for value in state.losses.values()]).tolist()
        record |= {f"train/loss/{name}": value for name, value in zip(state.losses, values, strict=True)}
    return record


def _start_epoch(state: State, engine: Engine, loop: Loop) -> None:
    """From the batch that training is at; the middle of an epoch is no start of it, and finding it is not billed."""
    if state.timestamp.batch_in_epoch == 0:
        engine.clocks.switch("loop")
        state.epoch_began_s = state.wall_s
        engine.fire(Event.EPOCH_START)
        engine.clocks.switch("data_wait_s")
    else:
        engine.clocks.switch("checkpoint_s")
    loop.epochs.start(state, engine.logger, lambda: _leave_if_asked(loop.step.interruption))


def _leave_if_asked(interruption: Interruption | None) -> None:
    if interruption is not None:
        raise interruption


def _next_batch(state: State, loop: Loop) -> tuple[Any, int, int]:
    """The next batch on the device with its samples and tokens, none of either where only other ranks have more."""
    assert state.batches is not None
    try:
        batch = next(state.batches)
    except StopIteration:
        if loop.ranks and state.timestamp.batch_in_epoch >= loop.ranks.own_batches:
            known = state.batch
            if known is None:
                known, *_ = state.data.received(loop.epochs.first_batch(), state.device)
            return empty(known), 0, 0
        raise ExpkitError(
            f"an epoch has {state.steps.per_epoch} batches, but the train loader ended after "
            f"{state.timestamp.batch_in_epoch} in epoch {state.timestamp.epoch}"
        ) from None
    if loop.augmentation:
        loop.augmentation.at(state.timestamp.batch)
    return state.data.received(batch, state.device)


def _ended(state: State, loop: Loop) -> bool:
    if (loop.ranks.stop_reason if loop.ranks else state.stop_reason) is not None:
        return True
    if state.max_duration.unit in OPEN_ENDED:
        return state.timestamp.get(state.max_duration.unit) >= state.max_duration.value
    return state.timestamp.batch >= state.steps.total
