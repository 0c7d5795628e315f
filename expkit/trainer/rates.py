"""Rates: the learning rate of the step that comes, set before it: step k trains at f(k)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from expkit.trainer.schedule import OPEN_ENDED, Factor, Steps
from expkit.trainer.state import State


class Rates:
    """Schedules of one optimizer; several are multiplied."""

    def __init__(self, factors: Sequence[Factor]) -> None:
        """`factors` are pure functions of (step, steps)."""
        self._factors = tuple(factors)

    def set(self, state: State) -> None:
        """Give every parameter group the rate of the step that is about to be made."""
        if state.max_duration.unit in OPEN_ENDED:
            state.steps = _estimated(state)
        if not self._factors:
            return
        factor = self.at(state.timestamp.batch, state.steps)
        for group in state.optimizer.param_groups:
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor

    def at(self, step: int, steps: Steps) -> float:
        """What the learning rate is multiplied with at a step."""
        factor = 1.0
        for f in self._factors:
            factor *= f(step, steps)
        return factor


def _estimated(state: State) -> Steps:
    """A training in seconds or tokens learns on the way how many steps it will have."""
    done, progress = state.timestamp.batch, state.progress
    if progress == 0:
        return state.steps
    per_batch = state.timestamp.token / done
    return replace(state.steps, total=max(done + 1, round(done / progress)), tokens_per_batch=per_batch)
