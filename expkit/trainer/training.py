"""Training: what stands around the loop: its start, one fit after another, and how each of them may end.

The Trainer makes the parts; here they go to work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from expkit import dist
from expkit.duration import Time
from expkit.errors import Interruption, UsageError
from expkit.trainer.activation_checkpointing import checkpoint_activations
from expkit.trainer.assembly import iterations_of
from expkit.trainer.compilation import compile_calls, compile_time
from expkit.trainer.deterministic import deterministic
from expkit.trainer.engine import Engine
from expkit.trainer.evaluator import intervals_of
from expkit.trainer.event import Event
from expkit.trainer.fits import Fits
from expkit.trainer.loaders import Sizes
from expkit.trainer.loop import Loop, fit
from expkit.trainer.parts import rates_of, steps_of
from expkit.trainer.precision import refuse_autocast_around, refuse_no_gradients
from expkit.trainer.schedule import OPEN_ENDED
from expkit.trainer.state import State
from expkit.trainer.turns import Turns, finishing_the_step


class Training:
    """One training whose parts have been put together."""

    def __init__(
        self,
        state: State,
        engine: Engine,
        loop: Loop,
        sizes: Sizes,
        *,
        compiled: dict[str, Any] | None,
        recomputed: bool | Sequence[str],
        deterministic_mode: bool,
    ) -> None:
        """`compiled`: what torch.compile is given, if anything; `recomputed`: parts that checkpoint activations."""
        self._state, self._engine, self._loop, self._sizes = state, engine, loop, sizes
        self._compiled, self._recomputed, self._deterministic = compiled, recomputed, deterministic_mode
        self._shaped: torch.nn.Module | None = None
        self.turns = Turns()
        self._fits: Fits | None = None

    def begin(self, take_up: Callable[[], None], *, every_batch: bool, replayed: bool) -> None:
        """From INIT to AFTER_LOAD; `take_up` loads what it goes on from, if anything. Closes where any of it fails.

        `every_batch`: whether schedulers of torch count batches; `replayed`: whether fits of before are called again.
        """
        state, fire = self._state, self._engine.fire
        try:
            with deterministic(self._deterministic):
                fire(Event.INIT)
                state.steps = steps_of(state.max_duration, self._sizes, state.steps.ssr)  # methods may have scaled it
                fire(Event.BEFORE_LOAD)
                take_up()
                fire(Event.AFTER_LOAD)
            self._loop.rates = rates_of(state, every_batch=every_batch)  # methods may have added some
            self._shape()
        except BaseException as e:
            self.close_after(e)  # nobody else could
            raise
        self._fits = Fits(state, self._sizes, replayed=replayed)

    def fit(self, duration: str | Time | None, until: str | Time | None) -> None:
        """The next fit; an error goes to FIT_ERROR and on to the caller."""
        assert self._fits is not None
        self.refuse_if_closed("train")
        refuse_no_gradients()
        with self.turns.fit():
            if not self._fits.begin(duration, until):
                return
            self._make_ready()
            with finishing_the_step(self._ask, self._is_whole):
                self._fit()

    def _fit(self) -> None:
        try:
            with self.at_work():
                fit(self._state, self._engine, self._loop)
                self._check_rates_that_diverged()
        except BaseException as e:
            self._fail(e)
            raise
        self._engine.log_traces()

    def _ask(self, interruption: Interruption) -> None:
        self._loop.step.interruption = interruption

    def _is_whole(self) -> bool:
        """Whether training waits for data, from a loader that does not note itself where it is."""
        return self._engine.clocks.part == "data_wait_s" and not self._loop.ranks and not self._loop.epochs.is_stateful

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Around everything that calls the model."""
        refuse_autocast_around()
        self._shape()
        with compile_time(self._engine.clocks), deterministic(self._deterministic):
            yield

    def refuse_if_closed(self, what: str) -> None:
        """UsageError, where it is closed or trains in another thread, for whoever wants to do something with it."""
        if self._engine.closed:
            raise UsageError(f"the trainer is closed; make a new one to {what}")
        self.turns.refuse_other_threads(what)

    def close(self) -> None:
        """Close the loader's workers, then callbacks and loggers, each exactly once."""
        self.turns.refuse_during_fit("close")
        try:
            self._loop.epochs.close(self._state)
        finally:
            self._engine.close()

    def close_after(self, error: BaseException) -> None:
        """Close because of an error, which stays the first one."""
        try:
            self.close()
        except Exception as e:
            error.add_note(f"and closing raised {type(e).__name__}: {e}")

    def _make_ready(self) -> None:
        """Nothing of the fit before is left, and what is due every so often is counted from here."""
        state, loop = self._state, self._loop
        if state.max_duration.unit in OPEN_ENDED:  # only the step that comes is known
            loop.rates.check_at([state.timestamp.batch], state.steps)
        else:
            loop.rates.check(state.steps)
        state.error = loop.step.interruption = None
        if loop.ranks:
            loop.ranks.stop_reason, loop.ranks.interruption = None, None
        loop.eval_every, loop.iterations = intervals_of(loop.evaluations, state), iterations_of(state)

    def _check_rates_that_diverged(self) -> None:
        """A loss that is not finite is a result, unless a schedule gave what is no rate."""
        state = self._state
        if state.stop_reason == "diverged":
            last = state.timestamp.batch
            self._loop.rates.check_at(range(max(0, last - 2), last), state.steps)

    def _fail(self, error: BaseException) -> None:
        self._engine.clocks.stop()
        self._state.error = error
        ranks = self._loop.ranks
        if ranks and error is not ranks.interruption:  # nobody else knows yet
            dist.shutdown()
        self._engine.fail(error)

    def _shape(self) -> None:
        """What is done to the model once methods have had their turn at INIT; again where one has replaced it."""
        if self._shaped is not self._state.model:
            self._shaped = self._state.model
            checkpoint_activations(self._shaped, self._recomputed)
            compile_calls(self._shaped, self._compiled)
