"""Runtime estimator: how long training will still take, evaluations to come included; a step costs 4 microseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.trainer.callback import Callback

_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}


@dataclass
class RuntimeEstimator(Callback):
    """Records an estimate of the wall-clock time that training will still take.

    time/remaining_estimate: in `time_unit`; the mean time of a batch so far, callbacks and checkpoints included, for
    each batch to come, and the mean time of an evaluation for each that will come if each evaluator goes on as often.
    An evaluator that has not run yet is not in it.
    """

    skip_batches: Annotated[int, Field(ge=0)] = 1
    """Batches at the start that do not count, because they warm up; nothing is recorded before."""
    time_unit: Literal["seconds", "minutes", "hours", "days"] = "hours"
    """Unit of the estimate."""
    _wall_s: Any = field(default=None, init=False, repr=False, compare=False)
    _batches: Any = field(default=0, init=False, repr=False, compare=False)
    _batches_s: Any = field(default=0.0, init=False, repr=False, compare=False)
    _evals: Any = field(default_factory=dict, init=False, repr=False, compare=False)
    _evaluating: Any = field(default=False, init=False, repr=False, compare=False)
    _resumed: Any = field(default=False, init=False, repr=False, compare=False)

    def batch_end(self, state: Any, logger: Any) -> None:
        elapsed_s = self._since_last(state)
        if elapsed_s is None or state.timestamp.batch <= self.skip_batches:
            return
        if not self._is_a_start(elapsed_s):
            self._batches += 1
            self._batches_s += elapsed_s
        batch, total = state.timestamp.batch, state.max_steps
        remaining_s = (total - batch) * self._batches_s / self._batches
        for count, seconds, last in self._evals.values():
            remaining_s += max(0, math.ceil(total * count / last) - count) * seconds / count
        logger.log_metrics({"time/remaining_estimate": remaining_s / _SECONDS[self.time_unit]})

    def eval_before_all(self, state: Any, logger: Any) -> None:
        self._evaluating = True  # in this training, that is; not by a call of trainer.eval()

    def eval_after_all(self, state: Any, logger: Any) -> None:
        self._evaluating = False

    def eval_end(self, state: Any, logger: Any) -> None:
        elapsed_s = self._since_last(state) if self._evaluating else None
        if elapsed_s is not None and state.timestamp.batch:
            count, seconds, _ = self._evals.get(state.eval_name, (0, 0.0, 0))
            self._evals[state.eval_name] = (count + 1, seconds + elapsed_s, state.timestamp.batch)

    def fit_end(self, state: Any, logger: Any) -> None:
        self._wall_s = None  # what lies between two fits is no training

    def state_dict(self) -> dict[str, Any]:
        """Batches and seconds so far, and of each evaluator how often it ran, for how long, and when it last did."""
        evals = {name: list(seen) for name, seen in self._evals.items()}
        return {"wall_s": self._wall_s, "batches": self._batches, "batches_s": self._batches_s, "evals": evals}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._wall_s, self._batches, self._batches_s = state["wall_s"], state["batches"], state["batches_s"]
        self._evals = {name: tuple(seen) for name, seen in state["evals"].items()}
        self._resumed = True

    def _is_a_start(self, elapsed_s: float) -> bool:
        """Whether this is the first batch after a resume and its time that of a new process rather than a batch's."""
        resumed, self._resumed = self._resumed, False
        return bool(resumed and self._batches and elapsed_s > 2 * self._batches_s / self._batches)

    def _since_last(self, state: Any) -> float | None:
        """Seconds of the wall clock since it was last asked; None where it was not, or the clock began anew."""
        before, self._wall_s = self._wall_s, state.wall_s
        return None if before is None or before > state.wall_s else state.wall_s - before
