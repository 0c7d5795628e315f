"""Compare: whether two replicates of a trial recorded the same series, bit by bit, and what differs first."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from expkit.duration import TimeUnit
from expkit.spec.recipe import Recipe

Series = Mapping[tuple[int, str], float]
"""(batch, name) -> value."""
_OF_TIME = ("throughput/", "time/")


@dataclass(frozen=True)
class Difference:
    """The first moment at which two replicates do not agree; None where one has no such record."""

    batch: int
    name: str
    first: float | None
    second: float | None

    def __str__(self) -> str:
        if self.first is None or self.second is None:
            return f"{self.name} at batch {self.batch} was recorded by only one of them"
        return f"{self.name} at batch {self.batch} is {self.first!r} in one and {self.second!r} in the other"


def series(rows: Iterable[Mapping[str, Any]]) -> Series:
    """What is to agree among rows of the metrics view: all but clocks and throughput."""
    return {(r["batch"], r["name"]): r["value"] for r in rows if not r["name"].startswith(_OF_TIME)}


def first_difference(one: Series, other: Series) -> Difference | None:
    """The earliest record that differs in one bit; None where all are the same. NaN equals the same NaN."""
    for batch, name in sorted(one.keys() | other.keys()):
        a, b = one.get((batch, name)), other.get((batch, name))
        if a is None or b is None or struct.pack("<d", a) != struct.pack("<d", b):
            return Difference(batch, name, a, b)
    return None


def why_incomparable(recipe: Recipe) -> str | None:
    """Why two runs of this recipe need not give the same bits, None where they must."""
    if recipe.trainer.max_duration.unit is TimeUnit.SECOND:
        return f"its length is {recipe.trainer.max_duration}, so the number of steps depends on the machine"
    every = recipe.trainer.eval_interval
    for interval in every.values() if isinstance(every, Mapping) else (every,):
        if interval.unit is TimeUnit.SECOND:
            return f"it is evaluated every {interval}, so the moments depend on the machine"
    return None
