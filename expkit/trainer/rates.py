"""Rates: the learning rate of the step that comes, set before it: step k trains at f(k)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from expkit.errors import UsageError
from expkit.trainer.arguments import is_number, refuse
from expkit.trainer.contracts import Scheduler
from expkit.trainer.schedule import OPEN_ENDED, Factor, Steps
from expkit.trainer.state import State

if TYPE_CHECKING:
    from expkit.functional.torch_schedules import TorchSchedule
NO_TOKENS = ("they are the parts of integer inputs (B, L), and DataSpec(num_tokens_in_batch=...) counts other ones; "
             "ep, ba, sp and sec need none")  # fmt: skip
"""What to do about it."""
_LOOKED_AT = 64
"""Steps at which schedules are looked at before training."""
_ROUNDING = 1e-9
"""So far below nothing may a schedule come that ends at nothing."""


class Rates:
    """Schedules of one optimizer; several are multiplied."""

    def __init__(
        self,
        factors: Sequence[Factor] = (),
        torchs: Sequence[TorchSchedule] = (),
        *,
        every_batch: bool = False,
        plugins: Sequence[Scheduler] = (),
    ) -> None:
        """`factors` are pure functions of (step, steps); `torchs` count epochs, or batches where `every_batch` is true.

        `plugins` are asked whether they fit the training.
        """
        self._factors, self._torchs = tuple(factors), tuple(torchs)
        self._every_batch = every_batch
        self._doubtful = list(plugins)

    def set(self, state: State) -> None:
        """Give every parameter group the rate of the step that is about to be made."""
        if state.max_duration.unit in OPEN_ENDED:
            state.steps = _estimated(state)
        if self._torchs:
            self._set_each(state.timestamp.batch, state.steps, state.optimizer.param_groups)
        elif self._factors:
            factor = self.at(state.timestamp.batch, state.steps)
            for group in state.optimizer.param_groups:
                group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor

    def at(self, step: int, steps: Steps) -> float:
        """What plug-ins and functions multiply the learning rate with at a step."""
        factor = 1.0
        for f in self._factors:
            factor *= f(step, steps)
        return factor

    def of_group(self, group: int, step: int, steps: Steps) -> float:
        """What the learning rate of a group is multiplied with at a step."""
        factor = self.at(step, steps)
        for schedule in self._torchs:
            factor *= schedule.factor(self._count(step, steps), group)
        return factor

    def check(self, steps: Steps) -> None:
        """Before training: UsageError where a schedule ends before it or gives what is no rate at one of some steps.

        A warning, once, where one hardly fits.
        """
        self.check_at(_spread(steps.total), steps)
        for schedule in self._torchs:
            last = self._count(steps.total - 1, steps)
            if schedule.last is not None and last > schedule.last:
                raise UsageError(
                    f"{schedule.name} ends after {schedule.last} steps of its own, but training takes {last + 1} "
                    f"{'batches' if self._every_batch else 'epochs'}; make it longer, or training shorter"
                )
        while self._doubtful:
            if doubt := self._doubtful.pop().doubt(steps):
                warnings.warn(doubt, stacklevel=5)

    def check_at(self, at: Iterable[int], steps: Steps) -> None:
        """UsageError where a schedule gives what no learning rate can be multiplied with."""
        for step in at:
            for factor in self._factors:
                _check_factor(factor, step, steps)

    def _set_each(self, step: int, steps: Steps, groups: list[dict[str, Any]]) -> None:
        for index, group in enumerate(groups):
            group["lr"] = group["initial_lr"] * self.of_group(index, step, steps)
            for schedule in self._torchs:
                if schedule.momentum is not None:
                    _set_momentum(group, schedule.momentum(self._count(step, steps), index))

    def _count(self, step: int, steps: Steps) -> int:
        """How often a scheduler of torch was stepped before a step."""
        return step if self._every_batch else step // steps.per_epoch


def _spread(total: int) -> list[int]:
    """Steps from the first to the last, so many that a schedule shows what it does."""
    return sorted({i * (total - 1) // (_LOOKED_AT - 1) for i in range(_LOOKED_AT)})


def _check_factor(factor: Factor, step: int, steps: Steps) -> None:
    try:
        value = factor(step, steps)
    except Exception as e:
        e.add_note(f"a schedule was asked for the learning rate of step {step} of {steps.total}")
        raise
    if not is_number(value) or not -_ROUNDING <= value < math.inf:
        refuse("schedulers", f"functions that give a number, finite and not negative, at each step from 0 to "
               f"{steps.total - 1}", value, f"{_called(factor)} gave that at step {step}")  # fmt: skip


def _called(factor: Any) -> str:
    own = getattr(factor, "__self__", None)
    return type(own).__name__ if own is not None else getattr(factor, "__name__", type(factor).__name__)


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _estimated(state: State) -> Steps:
    """A training in seconds or tokens learns on the way how many steps it will have."""
    done, progress = state.timestamp.batch, state.progress
    if progress == 0:
        if done:  # then no number of batches would ever be enough
            raise UsageError(f"training is to last {state.max_duration}, but its batches have no tokens; {NO_TOKENS}")
        return state.steps
    per_batch = state.timestamp.token / done
    return replace(state.steps, total=max(done + 1, round(done / progress)), tokens_per_batch=per_batch)
