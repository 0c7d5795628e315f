"""A sweep as frozen values: which methods, parameters and seeds of one recipe to try, in which order and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.spec.axes import BUDGET, OWN, Axes, Point
from expkit.spec.draft import Draft, Method, Parameter
from expkit.spec.expressions import Expression
from expkit.spec.labels import roman
from expkit.spec.recipe import Natural, Recipe
from expkit.spec.tree import Mark
from expkit.spec.trust import Trust
from expkit.spec.values import MISSING, value_at


@dataclass(frozen=True)
class Level:
    """One way in which a method is on: with these settings."""

    label: str
    """`ema`, or `colout[p_row=0.1]` where a candidate has several levels."""
    method: Method


@dataclass(frozen=True)
class Candidate:
    """A method that a design switches on and off; its levels exclude each other."""

    name: str
    label: str
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class DesignPart:
    """One design by name."""

    kind: str
    number: int = 0
    """What the file gives it: a size, a resolution, a number of permutations."""
    least: int = 0
    """Of a fraction: how many sets it has at least."""

    def __str__(self) -> str:
        sets = f" in at least {self.least:,} sets" if self.least else ""
        said = {"fractional": f"fractional of resolution {roman(self.number)}{sets}",
                "shapley": f"shapley of {self.number:,} permutations"}  # fmt: skip
        return said.get(self.kind, f"{self.kind} {self.number}" if self.number else self.kind)


@dataclass(frozen=True)
class Design:
    """Which sets of the candidates are tried: the union of its parts."""

    parts: tuple[DesignPart, ...]
    mark: Mark = field(compare=False)

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts))


@dataclass(frozen=True)
class Grid:
    """Sets of some candidates at some points; a sweep is the union of its grids."""

    candidates: tuple[Candidate, ...]
    axes: Axes


@dataclass(frozen=True)
class Include:
    """One arm at one point that is run whatever the design and the exclusions say."""

    levels: tuple[Level, ...]
    point: Point
    seeds: tuple[int, ...]
    path: str
    """Where it stands in the file: `include.0`."""
    mark: Mark = field(compare=False)


@dataclass(frozen=True)
class Conflict:
    """Methods of which no two may be on together."""

    methods: tuple[str, ...]
    because: str
    declared: bool = False
    """Whether a method says so itself, and not the file."""


@dataclass(frozen=True)
class Allowance:
    """Two methods that may be on together although one of them declares that they exclude each other."""

    pair: tuple[str, str]
    because: str


@dataclass(frozen=True)
class Requirement:
    """A method that makes no sense without something."""

    method: str
    needs: tuple[str, ...]
    """Capabilities of model and data, or other methods."""
    because: str
    declared: bool = False


@dataclass(frozen=True)
class Exclusion:
    """A condition under which a configuration is not run."""

    when: Expression
    because: str


@dataclass(frozen=True)
class Order:
    """In which order trials run."""

    kind: Literal["blocked_random"] = "blocked_random"
    """Block after block, in random order within a block."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Draws the order; it is in no id."""


@dataclass(frozen=True)
class Budget:
    """What a sweep may cost at most."""

    max_trials: Natural | None = None
    """A plan of more trials is refused."""


@dataclass(frozen=True)
class Run:
    """How trials are run; nothing of it is in a trial's id."""

    executor: str = "local"
    """Name of an executor."""
    jobs: Natural = 1
    """Trials at a time; more than one only under `shared` timing."""
    timing: Literal["exclusive", "shared"] = "exclusive"
    """exclusive: nothing else of expkit runs on the host, times are valid; shared: times are marked."""
    reuse: Literal["same_setting", "any", "never"] = "same_setting"
    """Which trials of other sweeps count as done here."""


@dataclass(frozen=True)
class Report:
    """How results are judged."""

    clock: Literal["train_s", "cpu_s", "wall_s"] = "train_s"
    """The clock of the speedups."""
    ci: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Level of the intervals."""
    non_inferiority: Annotated[float, Field(ge=0)] = 0.005
    """How much worse the primary metric may be and still count as not worse, in its unit."""
    confirmatory: Annotated[tuple[str, ...], Field(max_length=5)] = ()
    """Arms that were the question before the first trial ran."""
    price_per_hour: Annotated[float, Field(ge=0)] = 0.0
    """What an hour of one rank's machine costs; 0 gives no prices."""
    price_per_kwh: Annotated[float, Field(ge=0)] = 0.0
    """What a kilowatt hour costs, in the same currency."""
    watts: Annotated[float, Field(ge=0)] = 0.0
    """What one rank's machine draws, for energy that nobody measured; 0 leaves it unknown."""


@dataclass(frozen=True)
class Sweep:
    """Everything that a plan and a driver need to know."""

    name: str
    path: Path
    text: str = field(repr=False)
    """The file as given."""
    draft: Draft = field(repr=False, compare=False)
    """The recipe with `set` and the overrides in it, and the parameters that vary it."""
    recipe: Recipe
    """The recipe itself at the first value of each parameter, with its own methods."""
    candidates: tuple[Candidate, ...]
    """Those of all grids, each with all its levels."""
    grids: tuple[Grid, ...]
    includes: tuple[Include, ...]
    baseline: tuple[Level, ...]
    """The set that effects are measured against."""
    always: tuple[Level, ...]
    """Methods of every arm of the design that are no candidates."""
    forced: frozenset[str]
    """Names of candidates that `always` keeps on."""
    constant: tuple[Method, ...]
    """Methods of the recipe that are no candidates: on in every arm and in the baseline."""
    design: Design
    conflicts: tuple[Conflict, ...]
    requirements: tuple[Requirement, ...]
    allowances: tuple[Allowance, ...]
    exclusions: tuple[Exclusion, ...]
    seeds: tuple[int, ...]
    order: Order = field(default_factory=Order)
    budget: Budget = field(default_factory=Budget)
    run: Run = field(default_factory=Run)
    report: Report = field(default_factory=Report)
    marks: dict[str, Mark] = field(default_factory=dict, repr=False, compare=False)
    """Where the top-level keys stand, for problems that show when the plan is made."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Paths of the recipe and the values that they take."""
        return self.draft.parameters

    @property
    def trust(self) -> Trust:
        """Packages of the user's own that may be imported."""
        return self.draft.trust

    @property
    def first(self) -> Point:
        """The first point of the first grid."""
        return self.grids[0].axes.first()

    @property
    def longest(self) -> Point:
        """The first point, at the longest of its budgets: a target from a shorter one would be too easy."""
        axes, point = self.grids[0].axes.axes, list(self.first)
        for i, parameter in enumerate(self.parameters):
            rows = [row[0] for axis in axes if axis.parameters == (i,) for row in axis.rows]
            if parameter.path == BUDGET and rows:
                point[i] = max(rows, key=lambda row: float(parameter.values[row]))
        return tuple(point)

    def values(self, point: Point, recipe: Recipe) -> dict[str, Any]:
        """The value of each parameter in a recipe of this point: as the sweep sets it, else the recipe's own.

        A path that the recipe lacks there is left out.
        """
        found = {}
        for parameter, index in zip(self.parameters, point, strict=True):
            value = parameter.values[index] if index != OWN else self._own(parameter.path, recipe)
            if value is not MISSING:
                found[parameter.path] = value
        return found

    def _own(self, path: str, recipe: Recipe) -> Any:
        value = value_at(recipe, path)
        return self.draft.variable(path) if value is MISSING else value
