"""Orders of switching methods on, for sampled Shapley credit, and the sets that stand along them.

Drawn in pairs of an order and its reverse, whose errors cancel in part: Mitchell, Cooper, Frank and Holmes (2022),
Sampling Permutations for Shapley Value Estimation, JMLR 23. More orders keep the sets of fewer, so a design grows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

Order = tuple[int, ...]


def orders(num: int, wanted: int) -> list[Order]:
    """`wanted` distinct orders of `num` methods, all where there are no more; the same ones every time."""
    found: dict[Order, None] = {}
    most = min(wanted, math.factorial(num)) if num < 9 else wanted  # 9! is beyond what can be asked for
    draw = random.Random(f"shapley/{num}")  # noqa: S311 (a design, no secret)
    while len(found) < most:
        order = tuple(draw.sample(range(num), num))
        found.setdefault(order)
        if len(found) < most:
            found.setdefault(order[::-1])
    return list(found)


def along(order: Sequence[int]) -> Iterator[int]:
    """The sets of an order as masks, from nothing on to everything on."""
    mask = 0
    yield mask
    for method in order:
        mask |= 1 << method
        yield mask
