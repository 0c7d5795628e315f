"""Credit and comparisons made by hand for the example summary."""

from __future__ import annotations

import itertools
import math

from expkit.analysis.comparisons import Best, Comparison, Cost, Many, Sensitivity, Steadiness, Tuning
from expkit.analysis.contributions import Credit, Interaction, Joint, Levels, Part, Unreplicated, Waterfall
from expkit.analysis.estimates import Interval

METHODS = ("ema", "label_smoothing", "progressive_resizing")


def around(value: float, half: float) -> Interval:
    return Interval(value, value - half, value + half, 5, 0.95, "pooled t")


def factor(log: float, half: float = 0.015) -> Interval:
    return Interval(math.exp(log), math.exp(log - half), math.exp(log + half), 5, 0.95, "pooled t")


def part_time(log_speed: float) -> Part:
    alone, last = factor(log_speed - 0.01), factor(log_speed + 0.01)
    return Part(factor(log_speed), alone, last, 0.31, 0.004, 0.012)


def part_quality(points: float) -> Part:
    return Part(around(points, 0.0015), around(points, 0.002), around(points, 0.002), 0.28, 0.0001, 0.0007)


def credit() -> Credit:
    pairs = tuple(_interaction(pair) for pair in itertools.combinations(METHODS, 2))
    order = METHODS[::-1]
    steps = tuple(factor(0.01 * i) for i in range(3)), tuple(around(0.001 * i, 0.002) for i in range(3))
    return Credit(
        basis="full grid",
        sentence="Exact, from all 8 arms of a full grid over 5 seeds.",
        interactions=(*pairs, Interaction(METHODS, Joint(factor(0.002), q=0.8, p=0.7), Joint(), 1)),
        interactions_left_out=3,
        waterfalls=(Waterfall(order, *steps), Waterfall(order[::-1], *steps)),
        levels=(
            Levels(
                "colout", ("colout[p=0.1]", "colout[p=0.2]"), factor(0.1), around(-0.01, 0.004),
                (factor(-0.02), factor(0.02)), (around(-0.002, 0.001), around(0.002, 0.001)), 0.03, 0.2,
            ),
        ),
        unreplicated=(Unreplicated("time", 7, 0.011, 0.041, 0.098),),
    )  # fmt: skip


def _interaction(pair: tuple[str, str]) -> Interaction:
    together = Joint(factor(-0.021), factor(-0.04), factor(-0.041), 0.02, 0.01, 0.03)
    said = f"{pair[0]} and {pair[1]} overlap: together x1.20, the product of the two alone would be x1.25."
    return Interaction(pair, together, Joint(around(0.001, 0.002), p=0.3, q=0.5), 2, ("a * b", "- c"), said)


def many(arms: tuple[str, ...]) -> Many:
    compared = tuple(
        Comparison(a, factor(0.1 * i, 0.05), 0.01 * i, 0.02 if i == 1 else None, Interval(0.8, 0.28, 0.99, 5), 0.7, 0.2,
                   0.001, 0.4) for i, a in enumerate(arms)
    )  # fmt: skip
    said = "Fastest: progressive_resizing, of 8 arms, told from all others."
    return Many(
        family="Dunnett",
        arms=compared,
        best=(Best("time", "", "progressive_resizing", ("progressive_resizing", "ema"), 1.23, 1.22, 1.01, 8, 5, "Hsu",
                   said),
              Best("quality", "", "ema", ("ema",), 0.85, None, None, 8, 5, "Hsu", said)),
        sensitivity=Sensitivity(0.021, 28, 5, arm=1.04, effect=1.02, seeds=((1.02, 19), (1.0001, None)),
                                sentence="With n=5 and noise of 2.1 % this sweep could show an arm of x1.040."),
        tuning=(Tuning("none", 2, (0.84, 0.85)), Tuning("ema", 3, (0.83, 0.85, 0.86))),
        steadiness=Steadiness(5, 4, 0.3, 0.02, "4 of 5 baseline trials come to a steady state, after 0.3 s."),
        cost=Cost(45, 400.0, 390.0, 500.0, 0.02, "modelled", 1.2, (("none", 0.02), ("ema", 0.03)),
                  "This claim cost 45 runs: 8 min of wall clock."),
    )  # fmt: skip
