"""The loop: from the first batch to the last. Read it beside the map in event.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from expkit.errors import ExpkitError, Interruption
from expkit.trainer.batch import empty, to_device
from expkit.trainer.calling import forward
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.engine import Engine
from expkit.trainer.epochs import Epochs
from expkit.trainer.evaluation import evaluate
from expkit.trainer.evaluator import Evaluation
from expkit.trainer.event import Event
from expkit.trainer.interval import Every
from expkit.trainer.losses import loss, refuse_late_targets
from expkit.trainer.microbatch import Search
from expkit.trainer.precision import Scaler, autocast
from expkit.trainer.ranks import Ranks
from expkit.trainer.rates import Rates
from expkit.trainer.schedule import OPEN_ENDED
from expkit.trainer.state import State
from expkit.trainer.streams import DefaultStream, seed_default

_BATCH_BITS = 24  # 2**24 batches of 2**8 microbatches have dropout masks of their own


@dataclass
class Loop:
    """What the loop needs beside state and engine."""

    rates: Rates
    evaluations: Sequence[Evaluation]
    eval_every: Mapping[str, Every]
    """When each evaluation is due, by label."""
    iterations: Every | None
    """Where iterations end; without a length of their own one iteration is a fit."""
    scaler: Scaler | None
    closure: bool
    """Whether an algorithm needs the optimizer to compute gradients again."""
    reads_loss: bool
    """Whether the loss is read at every step: on CPUs, by several ranks, which must agree that it is finite though only
    the first of them logs, and elsewhere where somebody logs it."""
    watched: bool
    """Whether there are callbacks or loggers; without them the CPU clock need not be read at every step."""
    dropout: DefaultStream
    epochs: Epochs
    augmentation: DefaultStream | None = None
    """For transforms of whole batches, which may draw from default generators."""
    late_targets: str | None = None
    """A method that changes targets before the loss, where the model may have computed its loss already."""
    search: Search | None = None
    """Where the size of microbatches is looked for."""
    ranks: Ranks | None = None
    """The others, where there are others."""
    counts: tuple[int, int] = (0, 0)
    """Samples and tokens of the batch under way, on this rank."""
    weight: float | None = None
    """What of the batch counts on this rank, where a DataSpec says so; else its samples do."""
    interruption: Interruption | None = None
    """Raised after the current step; set by whoever is asked to stop."""


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
    """One batch: fetch, train, step, count, record, evaluate."""
    fire, clocks = engine.fire, engine.clocks
    clocks.switch("data_wait_s")
    fire(Event.BEFORE_DATALOADER)
    state.batch = _next_batch(state, loop)
    clocks.switch("loop")
    loop.counts = (
        state.data.num_samples(state.batch),
        state.data.num_tokens(state.batch),
    )  # before algorithms change the batch
    if loop.counts[0]:  # none where other ranks have all there is of a short last batch
        fire(Event.AFTER_DATALOADER)
    fire(Event.BATCH_START)

    loop.rates.set(state)
    if loop.closure:
        state.optimizer.step(lambda: float(_gradients(state, engine, loop)))
    else:
        _gradients(state, engine, loop)
        clocks.switch("optimizer_s")
        _step(state, engine, loop.scaler)
    if loop.reads_loss:
        state.train_loss = state.loss.item()  # waits for the accelerator
        if not math.isfinite(state.train_loss):
            loop.ranks.stop("diverged") if loop.ranks else state.stop("diverged")

    clocks.switch("callbacks_s" if loop.watched else "loop")  # from here on only what algorithms do is billed
    state.previous_timestamp = state.timestamp
    state.timestamp = state.timestamp.to_next_batch(*_counted(loop, clocks.train_s))
    state.train_s, state.cpu_s, state.wall_s = clocks.train_s, clocks.cpu_s, clocks.wall_s
    if engine.logger.destinations:
        engine.logger.hold(_recorded(state))  # the engine releases it when callbacks have logged theirs
    fire(Event.BATCH_END)
    if loop.evaluations:
        ended = _ended(state, loop)
        _evaluate(state, engine, lambda label: loop.eval_every[label].due(state, ended=ended), loop)
    fire(Event.BATCH_CHECKPOINT)
    if loop.ranks and loop.ranks.may_stop:
        loop.ranks.settle()
    _leave_if_asked(loop.ranks.interruption if loop.ranks else loop.interruption)


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


def _gradients(state: State, engine: Engine, loop: Loop) -> torch.Tensor:
    """Forward and backward; the gradient and `state.loss` are those of the whole batch, summed over ranks."""
    engine.fire(Event.BEFORE_TRAIN_BATCH)
    whole = state.batch
    if loop.search is None:
        total = _accumulate(state, engine, loop)
    else:
        total = loop.search.until_it_fits(lambda: _accumulate(state, engine, loop))
    state.batch = whole
    if loop.ranks:
        total = loop.ranks.exchange(total, loop.counts, loop.weight, engine.clocks.train_s, loop.interruption)
    state.loss = total
    if loop.scaler is not None:
        loop.scaler.unscale(state.optimizer)
    engine.fire(Event.AFTER_TRAIN_BATCH)
    return total  # type: ignore[no-any-return]


def _accumulate(state: State, engine: Engine, loop: Loop) -> Any:
    """One microbatch after another; gives the loss of this rank's part, None where it has no samples."""
    fire, clocks = engine.fire, engine.clocks
    _forget_gradients(state.optimizer)
    parts = _microbatches(state, loop)
    state.num_microbatches = len(parts)
    total: Any = None
    named: dict[str, Any] = {}
    for index, (microbatch, weight) in enumerate(parts):
        state.microbatch, state.batch = index, microbatch
        if state.data.microbatch_transforms:
            seed_default(state.device, state.seed, "microbatch", state.rank, _draw(state, index))
            state.batch = state.data.transformed_microbatch(microbatch)
        fire(Event.BEFORE_FORWARD)
        clocks.switch("forward_s")
        loop.dropout.at(_draw(state, index))
        with autocast(state.device, state.precision):
            state.outputs = forward(state)
            if loop.late_targets is not None:
                refuse_late_targets(state.outputs, loop.late_targets)
            fire(Event.AFTER_FORWARD)
            fire(Event.BEFORE_LOSS)
            state.loss = loss(state)
        fire(Event.AFTER_LOSS)
        fire(Event.BEFORE_BACKWARD)
        clocks.switch("backward_s")
        part = state.loss if weight == 1.0 else state.loss * weight
        (part if loop.scaler is None else loop.scaler.scaled(part)).backward()
        fire(Event.AFTER_BACKWARD)
        total = part.detach() if total is None else total + part.detach()
        if state.losses:
            _add(named, state.losses, weight)
    state.losses = named
    return total


def _add(total: dict[str, Any], losses: Mapping[str, Any], weight: float) -> None:
    for name, value in losses.items():
        total[name] = total.get(name, 0.0) + value * weight


def _draw(state: State, index: int) -> int:
    return state.timestamp.batch + (index << _BATCH_BITS)


def _microbatches(state: State, loop: Loop) -> list[tuple[Any, float]]:
    """Each part with its share of what counts in the batch, so that uneven parts add up to the mean over the batch.

    Where several ranks have parts of a batch, samples are a share of a full batch, and one rank may have none.
    """
    data, batch, size = state.data, state.batch, state.microbatch_size
    if size is None and loop.ranks is None:
        return [(batch, 1.0)]
    count = data.num_samples(batch)
    parts = [batch] if size is None or size >= count else data.split(batch, size)
    if loop.ranks is None and len(parts) == 1:
        return [(batch, 1.0)]
    if data.weight_in_batch:
        return _weighed(data, parts if count else [], loop)
    full = loop.ranks.full if loop.ranks else count
    return [(part, data.num_samples(part) / full) for part in parts] if count else []


def _weighed(data: DataSpec, parts: Sequence[Any], loop: Loop) -> list[tuple[Any, float]]:
    """Shares of what counts on this rank; a batch in which nothing counts has a loss that is nan, as in one part."""
    weights = data.weights(parts) if parts else []
    loop.weight = sum(weights)
    if loop.weight == 0 and loop.ranks is None:
        return [(part, math.nan) for part in parts]
    return [(part, weight / loop.weight) for part, weight in zip(parts, weights, strict=True) if weight]


def _forget_gradients(optimizer: torch.optim.Optimizer) -> None:
    for group in optimizer.param_groups:  # what optimizer.zero_grad() does, without its 10 us of bookkeeping
        for parameter in group["params"]:
            parameter.grad = None


def _step(state: State, engine: Engine, scaler: Scaler | None) -> None:
    if scaler is None:
        state.optimizer.step()
    elif not scaler.step(state.optimizer):
        before = engine.clocks.switch("callbacks_s")
        engine.logger.log_event("skipped_step", {"scale": scaler.scale, "skipped": scaler.skipped})
        engine.clocks.switch(before)


def _start_epoch(state: State, engine: Engine, loop: Loop) -> None:
    """From the batch that training is at; the middle of an epoch is no start of it, and finding it is not billed."""
    if state.timestamp.batch_in_epoch == 0:
        engine.clocks.switch("loop")
        state.epoch_began_s = state.wall_s
        engine.fire(Event.EPOCH_START)
        engine.clocks.switch("data_wait_s")
    else:
        engine.clocks.switch("checkpoint_s")
    loop.epochs.start(state, engine.logger, lambda: _leave_if_asked(loop.interruption))


def _leave_if_asked(interruption: Interruption | None) -> None:
    if interruption is not None:
        raise interruption


def _next_batch(state: State, loop: Loop) -> Any:
    """The next batch on the device; an empty one where the other ranks have more batches than this one."""
    assert state.batches is not None
    try:
        batch = next(state.batches)
    except StopIteration:
        if loop.ranks and state.timestamp.batch_in_epoch >= loop.ranks.own_batches:
            if state.batch is None:
                state.batch = to_device(state.data.transformed(loop.epochs.first_batch()), state.device)
            return empty(state.batch)
        raise ExpkitError(
            f"an epoch has {state.steps.per_epoch} batches, but the train loader ended after "
            f"{state.timestamp.batch_in_epoch} in epoch {state.timestamp.epoch}"
        ) from None
    if loop.augmentation:
        loop.augmentation.at(state.timestamp.batch)
    return to_device(state.data.transformed(batch), state.device)


def _counted(loop: Loop, train_s: float) -> tuple[int, int, float]:
    """Samples and tokens of the batch and the train clock, the same on all ranks."""
    if loop.ranks:
        return loop.ranks.samples, loop.ranks.tokens, loop.ranks.train_s
    return *loop.counts, train_s


def _ended(state: State, loop: Loop) -> bool:
    if (loop.ranks.stop_reason if loop.ranks else state.stop_reason) is not None:
        return True
    if state.max_duration.unit in OPEN_ENDED:
        return state.timestamp.get(state.max_duration.unit) >= state.max_duration.value
    return state.timestamp.batch >= state.steps.total
