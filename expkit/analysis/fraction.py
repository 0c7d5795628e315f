"""Effects of a regular fraction: each is one contrast of all cells, and the sets that share it are named with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from expkit.analysis import aliases
from expkit.analysis.cells import Cell, switched
from expkit.analysis.intervals import Array

MOST_NAMED = 6


@dataclass(frozen=True)
class Partial:
    """Cells of methods without levels at one parameter point, not all that there could be."""

    methods: tuple[str, ...]
    masks: tuple[int, ...]
    rows: tuple[int, ...]
    """Indices of these cells among all."""
    num_cells: int

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> Partial | None:
        """None for cells at several points, with levels, of more than 16 methods, or with all combinations.

        A baseline or an arm with everything on that was added to a regular fraction is left out of it.
        """
        factors = switched(cells)
        plain = all(len(levels) == 1 for levels in factors) and len({point for _, point in cells}) == 1
        if not plain or not 0 < len(factors) <= aliases.MAX_METHODS or len(cells) >= 2 ** len(factors):
            return None
        methods = tuple(label for (label,) in factors)
        masks = [sum(1 << i for i, m in enumerate(methods) if m in on) for on, _ in cells]
        ends = 0, 2 ** len(methods) - 1
        for extra in ((), ends[:1], ends[1:], ends):
            rows = tuple(i for i, mask in enumerate(masks) if mask not in extra)
            part = cls(methods, tuple(masks[i] for i in rows), rows, len(cells))
            if part.regular:
                return part
        return cls(methods, tuple(masks), tuple(range(len(cells))), len(cells))

    @property
    def regular(self) -> bool:
        """Whether it has defining words and columns agree wholly or not at all."""
        k, n = len(self.methods), len(self.masks)
        size = n & (n - 1) == 0 and n > len(self.methods)  # a power of two with room for every main effect
        return size and bool(aliases.words(self.masks, k)) and aliases.is_regular(self.masks, k)

    def words(self) -> tuple[str, ...]:
        """The defining relation by names."""
        return tuple(self._told(one) for one in aliases.words(self.masks, len(self.methods)))

    def aliases_of(self, methods: Sequence[str]) -> tuple[str, ...]:
        """What else is in the effect of these methods: the sets of fewest methods, none of more than three.

        `b * c`, `- a` with its sign turned, `0.33 b * c` in part.
        """
        of = sum(1 << self.methods.index(m) for m in methods)
        found = aliases.aliases(self.masks, len(self.methods), of)
        fewest = min((one.mask.bit_count() for one in found), default=0)
        named = [self._told(one) for one in found if one.mask.bit_count() == fewest]
        more = (f"{len(named) - MOST_NAMED} more",) if len(named) > MOST_NAMED else ()
        return (*named[:MOST_NAMED], *more)

    def effects(self) -> dict[tuple[str, ...], Array]:
        """One contrast (C,) for each group of sets that are one number, named by its set of fewest methods.

        (2 / N) prod_{i in A} s_i(c): a main effect or an interaction plus those of its aliases. Of N cells N - 1.
        """
        k = len(self.methods)
        words = np.array([0, *(one.mask for one in aliases.words(self.masks, k))], dtype=np.int64)
        every = np.array(sorted(range(1, 2**k), key=lambda m: (m.bit_count(), m)), dtype=np.int64)
        group = (every[:, None] ^ words[None, :]).min(axis=1)
        _, first = np.unique(group, return_index=True)
        named = [int(every[i]) for i in sorted(first) if group[i]]
        masks = np.array(self.masks, dtype=np.int64)
        found: dict[tuple[str, ...], Array] = {}
        for mask in named:
            off = np.bitwise_count((masks & mask) ^ mask).astype(np.int64)
            weights = found[self._names(mask)] = np.zeros(self.num_cells)
            weights[list(self.rows)] = (1 - 2 * (off & 1)) * 2 / len(masks)
        return found

    def _names(self, mask: int) -> tuple[str, ...]:
        return tuple(m for i, m in enumerate(self.methods) if mask >> i & 1)

    def _told(self, one: aliases.Alias) -> str:
        name = " * ".join(self._names(one.mask)) or "the mean"
        size = "" if abs(one.share) == 1 else f"{abs(one.share):.2g} "
        return f"{'- ' if one.share < 0 else ''}{size}{name}"
