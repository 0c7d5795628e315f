"""Who earned it, as a report has it, frozen: interactions, orders of switching on, levels, and what it rests on.

Times are ratios (exp of a contrast of log-times): above one is faster, and parts multiply. Quality is in the metric's
unit with the sign that makes more better, and parts add. A number that does not exist is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from expkit.analysis.estimates import Interval


@dataclass(frozen=True)
class Part:
    """One method's part of what all do together, by every reading of `part`; A8."""

    shapley: Interval = field(default_factory=Interval)
    """Its mean contribution over all orders of switching on; these parts make up the whole exactly."""
    add_one_in: Interval = field(default_factory=Interval)
    """Alone, on the bare baseline."""
    leave_one_out: Interval = field(default_factory=Interval)
    """Last, on top of all others."""
    variance_share: float | None = None
    """Share of the variance over the cells of a full grid that its main effect explains; what moves the outcome."""
    p: float | None = None
    """Of no main effect."""
    q: float | None = None
    """Benjamini and Hochberg's, over all effects and interactions of this axis."""


@dataclass(frozen=True)
class Joint:
    """What two or more methods do beyond what they do by themselves, on one axis."""

    interaction: Interval = field(default_factory=Interval)
    """I_A, the textbook's: half the difference of differences for a pair, averaged over the other methods."""
    dividend: Interval = field(default_factory=Interval)
    """Together on the bare baseline, beyond all smaller sets (Harsanyi)."""
    shapley_interaction: Interval = field(default_factory=Interval)
    """Of a pair: its difference of differences with Shapley's weights on the contexts."""
    variance_share: float | None = None
    p: float | None = None
    q: float | None = None


@dataclass(frozen=True)
class Interaction:
    """A set of two or more methods that are tried with and without each other."""

    methods: tuple[str, ...]
    time: Joint = field(default_factory=Joint)
    quality: Joint = field(default_factory=Joint)
    contexts: int = 0
    """Squares of cells per seed that it is from; cells of the contrast in a fraction."""
    aliases: tuple[str, ...] = ()
    """Sets of methods whose effect is in the same number."""
    sentence: str = ""


@dataclass(frozen=True)
class Waterfall:
    """Methods switched on one after the other, each with what it adds to those before it; depends on the order."""

    order: tuple[str, ...]
    time: tuple[Interval, ...]
    quality: tuple[Interval, ...]


@dataclass(frozen=True)
class Levels:
    """A method with several levels: what any of them does, and how they differ; levels are nested in the method."""

    method: str
    levels: tuple[str, ...]
    time: Interval
    """Mean effect over its levels, against off."""
    quality: Interval
    time_apart: tuple[Interval, ...]
    """Each level against the mean of the levels."""
    quality_apart: tuple[Interval, ...]
    p_time: float | None = None
    """Of the F test that the levels do not differ, levels by seeds."""
    p_quality: float | None = None


@dataclass(frozen=True)
class Unreplicated:
    """Lenth's margins of a grid with one seed: the only yardstick is that most effects are none."""

    axis: str
    effects: int
    pse: float
    margin: float
    simultaneous: float


@dataclass(frozen=True)
class Credit:
    """What the credit rests on, and all of it that is not one method's."""

    basis: str = "none"
    """`full grid`, `orders` (sampled), `least squares` (assuming no three-way interactions), `pairs` or `none`."""
    sentence: str = ""
    words: tuple[str, ...] = ()
    """Of a regular fraction, the sets whose column is constant; A * B * C means that A is aliased with B * C."""
    lack_of_fit_p_time: float | None = None
    """Of the model without three-way interactions; small where they are there."""
    lack_of_fit_p_quality: float | None = None
    interactions: tuple[Interaction, ...] = ()
    interactions_left_out: int = 0
    """Of three and more methods, the weaker ones."""
    waterfalls: tuple[Waterfall, ...] = ()
    levels: tuple[Levels, ...] = ()
    unreplicated: tuple[Unreplicated, ...] = ()
