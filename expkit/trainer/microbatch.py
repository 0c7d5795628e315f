"""Auto microbatching: a batch that runs out of memory is tried again in halves, as if nothing had happened.

What is tried is forward, loss and backward with all that algorithms do there. Before, everything it may leave a trace
in is noted; after a failure it is put back, so that training goes on bit by bit as if it had started at the smaller
size. Neither the optimizer's step nor data nor callbacks are tried again: they would need as much memory the next time.
The notes cost a copy of the batch and of the model's buffers at every step.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from expkit.errors import TrialFailure
from expkit.trainer.batch import tensors
from expkit.trainer.devices import OWN
from expkit.trainer.engine import Engine, Turn
from expkit.trainer.event import Event
from expkit.trainer.out_of_memory import is_out_of_memory
from expkit.trainer.state import State
from expkit.trainer.streams import Kept

T = TypeVar("T")
TRIED = (Event.BEFORE_FORWARD, Event.AFTER_FORWARD, Event.BEFORE_LOSS, Event.AFTER_LOSS, Event.BEFORE_BACKWARD,
         Event.AFTER_BACKWARD)  # fmt: skip
"""Events that come again when a batch is tried again."""


class Search:
    """Looks for the largest microbatch that fits: the whole batch first, half of it after each failure."""

    def __init__(self, state: State, engine: Engine) -> None:
        self._state, self._engine = state, engine
        self._listeners, self._turns = engine.listeners_to(TRIED), engine.turns_at(TRIED)

    def until_it_fits(self, attempt: Callable[[], T]) -> T:
        """What `attempt` gives at the first size that fits; TrialFailure, cause oom, where one sample does not."""
        notes = _Notes(self._state, self._listeners, self._turns)
        while True:
            draft = self._engine.logger.draft()
            try:
                result = attempt()
            except Exception as e:
                size, reason = self._size_of(notes.batch), str(e) or type(e).__name__
                if not self._may_retry(e):
                    draft.release()
                    raise
                if size == 1:
                    draft.release()
                    raise TrialFailure(f"a microbatch of one sample does not fit into memory: {reason}", "oom") from e
                draft.discard()
            else:
                draft.release()
                return result
            self._put_back(notes)  # out here the error is gone, and with its traceback all that its frames held
            self._halve(size, reason)

    def _may_retry(self, error: Exception) -> bool:
        at_a_callback = self._engine.clocks.part == "callbacks_s"  # it takes as much again, whatever the size
        return is_out_of_memory(error) and not at_a_callback

    def _size_of(self, batch: Any) -> int:
        count = self._state.data.num_samples(batch)
        return min(self._state.microbatch_size or count, count)

    def _put_back(self, notes: _Notes) -> None:
        self._engine.clocks.switch("loop")
        notes.put_back()
        gc.collect()  # what hung in cycles
        if self._state.device.type in OWN:
            torch.accelerator.empty_cache()

    def _halve(self, size: int, reason: str) -> None:
        self._state.microbatch_size = size // 2
        self._engine.logger.log_event("microbatch", {"before": size, "after": size // 2, "reason": reason[:200]})


class _Notes:
    """Everything an attempt may leave a trace in, as it was before; parameters are not, nothing steps them."""

    def __init__(self, state: State, listeners: list[Any], turns: list[Turn]) -> None:
        self._state = state
        self.batch = state.batch
        self._generators = Kept(state.device)
        self._tensors = [(tensor, tensor.clone()) for tensor in tensors(state.batch)]  # a layer may write into it
        self._buffers = [(m._buffers, dict(m._buffers)) for m in state.model.modules() if m._buffers]
        self._tensors += [(b, b.clone()) for _, named in self._buffers for b in named.values() if b is not None]
        self._turns = [(turn, turn.times) for turn in turns]
        self._listeners = [(one, dict(vars(one)), copy.deepcopy(one.state_dict())) for one in listeners]

    def put_back(self) -> None:
        """Make it all as it was; may be called again after the next failure."""
        state = self._state
        state.batch, state.outputs, state.loss = self.batch, None, None
        with torch.no_grad():
            for tensor, before in self._tensors:
                tensor.copy_(before)
        for buffers, named in self._buffers:
            buffers.clear()
            buffers.update(named)
        for listener, attributes, content in self._listeners:
            vars(listener).clear()
            vars(listener).update(attributes)
            if content:
                listener.load_state_dict(copy.deepcopy(content))
        for turn, times in self._turns:
            turn.times = times
        self._generators.put_back()
