"""Tally: how many steps of a training did what, told by the shapes of their forward passes.

`128x1x28x28` is a step on whole images, `128x1x14x14` one on small ones, `128x1x28x28 forward + 64x1x28x28` one that
scored a batch before it trained on half of it. Costs 5 us a forward pass.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from expkit.trainer.clock import UNBILLED

MOST = 64
"""Phases; a training whose batches have more shapes than that has none to speak of."""
Pass = tuple[tuple[int, ...], bool]
"""(shape of the first input, whether a gradient is wanted)."""


class Tally:
    """Counts the steps of one trainer by their phases; what is not on the train clock is none of them."""

    def __init__(self) -> None:
        self._steps: Counter[tuple[Pass, ...]] = Counter()
        self._passes: list[Pass] = []
        self._trainer: Any = None
        self._clocks: Any = None
        self._batch = 0

    def watch(self, trainer: Any) -> None:
        """From now on the forward passes of this trainer's model count."""
        self._trainer, self._clocks = trainer, trainer.engine.clocks
        self._batch = trainer.state.timestamp.batch
        trainer.state.model.register_forward_pre_hook(self._see, with_kwargs=True)

    def phases(self) -> dict[str, int]:
        """Steps by phase; empty where there are more than 64, and where nothing was watched."""
        self._close()
        return {name_of(passes): steps for passes, steps in self._steps.items()} if len(self._steps) <= MOST else {}

    def last(self) -> str:
        """The phase of the step that has just been made."""
        return name_of(self._passes)

    def __deepcopy__(self, memo: object) -> Tally:
        return self  # whoever copies a model copies its hooks

    def _see(self, _: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if self._clocks.part in UNBILLED:  # evaluations, and callbacks that count operations
            return
        batch = self._trainer.state.timestamp.batch
        if batch != self._batch:
            self._close()
            self._batch = batch
        self._passes.append((_shape((args, kwargs)), torch.is_grad_enabled()))

    def _close(self) -> None:
        if self._passes and len(self._steps) <= MOST:
            self._steps[tuple(self._passes)] += 1
        self._passes = []


def name_of(passes: Sequence[Pass]) -> str:
    """`2 * 64x1x28x28` for two microbatches; passes without a gradient are called forward."""
    told = []
    for (shape, gradient), alike in itertools.groupby(passes):
        number = len(list(alike))
        text = f"{'x'.join(map(str, shape)) or '?'}{'' if gradient else ' forward'}"
        told.append(f"{number} * {text}" if number > 1 else text)
    return " + ".join(told)


def _shape(found: Any) -> tuple[int, ...]:
    """Of the first tensor; nothing where there is none."""
    if isinstance(found, torch.Tensor):
        return tuple(found.shape)
    leaves = found.values() if isinstance(found, Mapping) else found if isinstance(found, list | tuple) else ()
    return next(filter(None, map(_shape, leaves)), ())
