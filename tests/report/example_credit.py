"""Credit made by hand for the example summary: parts, interactions, orders, levels, margins of one seed."""

from __future__ import annotations

import itertools
import math

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
