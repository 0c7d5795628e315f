"""Phases: how long the steps of each arm take on this machine, by what they do.

Each arm trains a short copy of its schedule again and again, in turn with the others and in another order each time, so
that what else goes on here meets all of them alike. At least 200 steps of each phase, in at most 40 turns; a phase of
less than 1 % of an arm's steps gets as many as it happens to. speedup-science A16.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from expkit.analysis.reference_time import Phase
from expkit.launch.compose import compose
from expkit.launch.tally import Tally
from expkit.spec.files import load_recipe
from expkit.spec.recipe import Checkpoint, Recipe
from expkit.trainer.logger import LoggerDestination

TURNS = 40
PER_TURN = 40
"""Steps of an arm's rarest phase in one turn, where a whole training has as many."""
RARE = 0.01
"""A share of an arm's steps."""


@dataclass(frozen=True)
class Course:
    """One arm: a trial's recipe, and how many steps of that trial did what."""

    arm: str
    recipe: Path
    steps: Mapping[str, int]

    @property
    def common(self) -> dict[str, int]:
        """Steps by phase, without the rare ones."""
        whole = sum(self.steps.values())
        return {phase: number for phase, number in self.steps.items() if number >= RARE * whole}

    @property
    def part(self) -> float:
        """The share of a whole training that is one turn."""
        return min(1.0, PER_TURN / min(self.common.values()))


def time_phases(courses: Sequence[Course], trust: Sequence[str] = (), least: int = 200) -> list[Phase]:
    """Median and median absolute deviation of the billed seconds of each arm's steps, by phase.

    The first step of each turn warms up and is left out. Accelerators are waited for at every step.
    """
    found: dict[tuple[str, str], list[float]] = {}
    recipes = {course.arm: load_recipe(course.recipe, trust_imports=trust) for course in courses}
    draw = random.Random(0)  # noqa: S311 (an order, no secret)
    for _ in range(TURNS):
        due = [c for c in courses if any(len(found.get((c.arm, phase), ())) < least for phase in c.common)]
        for course in draw.sample(due, len(due)):
            for phase, seconds in _turn(recipes[course.arm], course.part, trust):
                found.setdefault((course.arm, phase), []).append(seconds)
    return [_timed(arm, phase, np.array(seconds)) for (arm, phase), seconds in sorted(found.items())]


def _timed(arm: str, phase: str, seconds: Any) -> Phase:
    median = float(np.median(seconds))
    return Phase(arm, phase, len(seconds), median, float(np.median(np.abs(seconds - median))))


def _turn(recipe: Recipe, part: float, trust: Sequence[str]) -> list[tuple[str, float]]:
    """(phase, seconds) of the steps of one short training."""
    settings = dataclasses.replace(
        recipe.trainer, ssr=recipe.trainer.ssr * part, eval_subset_num_batches=1, checkpoint=Checkpoint()
    )
    torch.set_num_threads(recipe.runtime.threads)
    watch = Stopwatch()
    short = dataclasses.replace(recipe, trainer=settings, callbacks={})
    with compose(short, trust=trust, loggers=[watch]) as trainer:
        watch.tally.watch(trainer)
        trainer.fit()
    return list(watch.steps[1:])


@dataclass
class Stopwatch(LoggerDestination):
    """Reads the train clock at the end of each step."""

    tally: Any = field(default_factory=Tally, init=False, repr=False, compare=False)
    steps: Any = field(default_factory=list, init=False, repr=False, compare=False)
    _before_s: Any = field(default=0.0, init=False, repr=False, compare=False)

    def batch_end(self, state: Any, logger: Any) -> None:
        self.steps.append((self.tally.last(), state.train_s - self._before_s))
        self._before_s = state.train_s
