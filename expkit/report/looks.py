"""How arms look, the same in every chart of a page: a colour, and a dash or a shape that says it once more.

Colours are those of Okabe and Ito without yellow, which vanishes on white. The baseline is a mid-grey that holds on a
white and on a black page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ((1, 0), (6, 3), (2, 2), (10, 3), (8, 3, 2, 3), (4, 4))
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
GREY = "#808080"
PARTS = (*COLOURS, "#999999", "#555555", "#004D73", "#7A3500")
"""For the parts of a stacked bar, which have no second channel but their order."""


@dataclass(frozen=True)
class Style:
    """One arm's look."""

    colour: str
    dash: tuple[int, ...]
    shape: str


def styles(labels: Sequence[str], baseline: str) -> dict[str, Style]:
    """A look for each label in order: grey and solid for the baseline, colour with dash and shape for the others.

    Dash and shape turn one further with each round of colours, so that no two of 36 share all three.
    """
    looks = {baseline: Style(GREY, (1, 0), "circle")}
    for i, label in enumerate(label for label in labels if label != baseline):
        turned = i + i // len(COLOURS)
        looks[label] = Style(
            COLOURS[i % len(COLOURS)], DASHES[turned % len(DASHES)], SHAPES[(turned + 1) % len(SHAPES)]
        )
    return looks
