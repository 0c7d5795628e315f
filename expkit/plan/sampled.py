"""The orders of switching on that a design samples for Shapley credit, as `plan` tells of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from expkit.plan.designs import orders_of, switched
from expkit.plan.permutations import along
from expkit.plan.space import Space


@dataclass(frozen=True)
class Sampled:
    """How many orders of how many candidates, and how many are whole."""

    orders: int
    candidates: int
    whole: int
    """Of which no rule takes a set; where it takes one, their mean is no credit."""

    def __str__(self) -> str:
        of = f"{math.factorial(self.candidates):,}" if self.candidates < 10 else f"{self.candidates}!"
        drawn = f"{self.orders:,} of {of} in which candidates may be switched on"
        if self.whole == self.orders:
            return f"{drawn}; credit is the mean over them"
        return (f"{drawn}; rules take sets out of {self.orders - self.whole:,}, so that credit is by least squares, "
                "assuming no three-way interactions")  # fmt: skip


def sampled(space: Space) -> Sampled | None:
    """None for designs without orders."""
    wanted = max((part.number for part in space.sweep.design.parts if part.kind == "shapley"), default=0)
    if not wanted:
        return None
    orders, broken = orders_of(space.choices, wanted), dict[int, bool]()
    for order in orders if space.rules else ():
        for mask in along(order):
            if mask not in broken:
                broken[mask] = space.broken(_names(space, mask)) is not None
    whole = sum(not any(broken.get(mask, False) for mask in along(order)) for order in orders)
    return Sampled(len(orders), len(switched(space.choices)), whole)


def _names(space: Space, mask: int) -> frozenset[str]:
    """Of the methods that are on in a set; one that cannot be off is on."""
    everyone = range(len(space.choices))
    digits = tuple(len(c) - 1 if None not in c or mask >> i & 1 else 0 for i, c in enumerate(space.choices))
    return space.names(digits, everyone)
