"""Step: gradients of one batch, in one pass or in several, and what the optimizer makes of them. Read beside loop.py.

A step of a small model takes a third of a millisecond, so what can be known before the first one is asked only once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from expkit.errors import Interruption
from expkit.trainer.calling import forward
from expkit.trainer.engine import Engine
from expkit.trainer.event import Event
from expkit.trainer.losses import loss, refuse_late_targets
from expkit.trainer.microbatch import Search
from expkit.trainer.optimizer_calls import forget_gradients, step
from expkit.trainer.precision import Scaler, autocast
from expkit.trainer.ranks import Ranks
from expkit.trainer.state import State
from expkit.trainer.streams import DefaultStream, seed_default

BEFORE_TRAIN_BATCH, AFTER_TRAIN_BATCH = Event.BEFORE_TRAIN_BATCH, Event.AFTER_TRAIN_BATCH
BEFORE_FORWARD, AFTER_FORWARD = Event.BEFORE_FORWARD, Event.AFTER_FORWARD
BEFORE_LOSS, AFTER_LOSS = Event.BEFORE_LOSS, Event.AFTER_LOSS
BEFORE_BACKWARD, AFTER_BACKWARD = Event.BEFORE_BACKWARD, Event.AFTER_BACKWARD
_BATCH_BITS = 24  # 2**24 batches of 2**8 microbatches have dropout masks of their own


class Step:
    """Forward, loss, backward and optimizer for the batch in `state.batch`; everything in between is announced."""

    def __init__(
        self,
        state: State,
        engine: Engine,
        *,
        dropout: DefaultStream,
        scaler: Scaler | None,
        closure: bool,
        reads_loss: bool,
        late_targets: str | None,
        search: Search | None,
        ranks: Ranks | None,
    ) -> None:
        """`closure`: whether the optimizer gets a function that computes gradients again; the loss is then that of the
        last time. `reads_loss`: whether the loss is read at every step. `search`: where the size of
        microbatches is looked for. `late_targets`: a method that changes targets before the loss, where the model may
        have computed it already.
        """
        self._state, self._engine, self._clocks = state, engine, engine.clocks
        self._dropout, self._late_targets = dropout, late_targets
        self.scaler, self.search, self._ranks = scaler, search, ranks
        self._reads_loss = reads_loss
        self._closure = closure
        self._casts, self._transforms = state.precision != "fp32", bool(state.data.microbatch_transforms)
        self._weight: float | None = None  # what of the batch counts on this rank, where a DataSpec says so
        self.interruption: Interruption | None = None
        """To be raised after the step under way; set by whoever is asked to stop, and told to the other ranks."""

    def make(self, samples: int, tokens: int) -> None:
        """One step; the batch has so many samples and tokens on this rank, as the loader gave it."""
        state = self._state
        if self._closure:
            state.optimizer.step(lambda: float(self._gradients(samples, tokens)))
        else:
            self._gradients(samples, tokens)
            self._clocks.switch("optimizer_s")
            if self.scaler is None:
                step(state.optimizer)
            else:
                self._step_scaled(self.scaler)
        if self._reads_loss:
            state.train_loss = state.loss.item()  # waits for the accelerator
            if not math.isfinite(state.train_loss):
                self._ranks.stop("diverged") if self._ranks else state.stop("diverged")

    def _gradients(self, samples: int, tokens: int) -> torch.Tensor:
        """Forward and backward; the gradient and `state.loss` are those of the whole batch, summed over ranks."""
        state = self._state
        self._engine.fire(BEFORE_TRAIN_BATCH)
        whole = state.batch
        total = self._accumulated() if self.search is None else self.search.until_it_fits(self._accumulated)
        state.batch = whole
        if self._ranks:
            train_s = self._clocks.train_s
            total = self._ranks.exchange(total, (samples, tokens), self._weight, train_s, self.interruption)
        state.loss = total
        if self.scaler is not None:
            self.scaler.unscale(state.optimizer)
        self._engine.fire(AFTER_TRAIN_BATCH)
        return total  # type: ignore[no-any-return]

    def _accumulated(self) -> Any:
        """One microbatch after another; gives the loss of this rank's part, None where it has no samples."""
        state, fire, switch = self._state, self._engine.fire, self._clocks.switch
        forget_gradients(state.optimizer)
        parts = self._parts()
        state.num_microbatches = len(parts)
        total: Any = None
        named: dict[str, Any] = {}
        for index, (microbatch, weight) in enumerate(parts):
            state.microbatch, state.batch = index, microbatch
            draw = state.timestamp.batch + (index << _BATCH_BITS)
            if self._transforms:
                seed_default(state.device, state.seed, "microbatch", state.rank, draw)
                state.batch = state.data.transformed_microbatch(microbatch)
            fire(BEFORE_FORWARD)
            switch("forward_s")
            self._dropout.at(draw)
            if self._casts:
                with autocast(state.device, state.precision):
                    self._forward()
            else:
                self._forward()
            fire(AFTER_LOSS)
            fire(BEFORE_BACKWARD)
            switch("backward_s")
            part = state.loss if weight == 1.0 else state.loss * weight
            (part if self.scaler is None else self.scaler.scaled(part)).backward()
            fire(AFTER_BACKWARD)
            total = part.detach() if total is None else total + part.detach()
            if state.losses:
                _add(named, state.losses, weight)
        state.losses = named
        return total

    def _forward(self) -> None:
        state, fire = self._state, self._engine.fire
        state.outputs = forward(state)
        if self._late_targets is not None:
            refuse_late_targets(state.outputs, self._late_targets)
        fire(AFTER_FORWARD)
        fire(BEFORE_LOSS)
        state.loss = loss(state)

    def _parts(self) -> Sequence[tuple[Any, float]]:
        """Each part with its share of what counts in the batch, so that uneven parts add up to the mean over the batch.

        Where several ranks have parts of a batch, samples are a share of a full batch, and one rank may have none.
        """
        state, ranks = self._state, self._ranks
        data, batch, size = state.data, state.batch, state.microbatch_size
        if size is None and ranks is None:
            return ((batch, 1.0),)
        count = data.num_samples(batch)
        parts = [batch] if size is None or size >= count else data.split(batch, size)
        if ranks is None and len(parts) == 1:
            return ((batch, 1.0),)
        if data.weight_in_batch:
            return self._weighed(parts if count else [])
        full = ranks.full if ranks else count
        return [(part, data.num_samples(part) / full) for part in parts] if count else []

    def _weighed(self, parts: Sequence[Any]) -> list[tuple[Any, float]]:
        """Shares of what counts on this rank; a batch in which nothing counts has a loss of nan, as in one part."""
        weights = self._state.data.weights(parts) if parts else []
        self._weight = sum(weights)
        if self._weight == 0 and self._ranks is None:
            return [(part, math.nan) for part in parts]
        return [(part, weight / self._weight) for part, weight in zip(parts, weights, strict=True) if weight]

    def _step_scaled(self, scaler: Scaler) -> None:
        engine = self._engine
        if not scaler.step(self._state.optimizer):
            before = engine.clocks.switch("callbacks_s")
            engine.logger.log_event("skipped_step", {"scale": scaler.scale, "skipped": scaler.skipped})
            engine.clocks.switch(before)


def _add(total: dict[str, Any], losses: Mapping[str, Any], weight: float) -> None:
    for name, value in losses.items():
        total[name] = total.get(name, 0.0) + value * weight
