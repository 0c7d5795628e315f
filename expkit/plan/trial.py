"""What a plan consists of: trials, the runs they ask for, and the arithmetic that led to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from expkit.plan.confounded import Confounded
from expkit.plan.sampled import Sampled
from expkit.spec.recipe import Recipe

Role = Literal["baseline", "arm", "repeat", "pilot", "tune", "confirm"]


@dataclass(frozen=True)
class Trial:
    """An arm at one parameter point with one seed."""

    id: str
    """64 hex digits."""
    recipe: Recipe
    arm: str
    """The set of methods and the parameters: `none`, `colout[p_row=0.1]+ema`, `ema optimizer.sgd.lr=1.0`."""
    algorithms: tuple[str, ...]
    """Labels of the arm's methods with their levels, sorted; methods that are on everywhere are in the recipe only."""
    parameters: Mapping[str, Any]
    seed: int

    @property
    def id12(self) -> str:
        """As shown and as the folder is called."""
        return self.id[:12]


@dataclass(frozen=True)
class Cell:
    """One run to be done."""

    trial: Trial
    replicate: int
    role: Role
    block: int
    position: int
    """Place in the run order of the whole sweep."""


@dataclass(frozen=True)
class Step:
    """One line of the arithmetic: what was multiplied or removed, and how many are left."""

    text: str
    count: int
    because: str = ""


@dataclass(frozen=True)
class Removed:
    """What one rule took away."""

    rule: str
    because: str
    count: int


@dataclass(frozen=True)
class Arithmetic:
    """How many there are and why, before any is enumerated."""

    steps: tuple[Step, ...]
    removed: tuple[Removed, ...]
    sets: int
    trials: int
    repeats: int
    blocks: int
    fractions: tuple[Confounded, ...] = ()
    """What each fraction of the design cannot tell apart, those of several grids once."""
    orders: Sampled | None = None
    """Of switching on, where the design samples them; None also with several grids, whose orders are not kept."""

    @property
    def replicates(self) -> int:
        """Runs in all, A/A repeats included."""
        return self.trials + self.repeats
