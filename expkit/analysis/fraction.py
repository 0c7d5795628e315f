"""Effects of a regular fraction: each is one contrast of all cells, and the sets that share it are named with it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from expkit.analysis import aliases
from expkit.analysis.cells import Cell, Grid, mask_of, part_of_grid, switched
from expkit.analysis.intervals import Array
from expkit.analysis.replicate import level_of

MOST_NAMED = 6


@dataclass(frozen=True)
class Partial:
    """Cells that are not all that there could be: certain sets of methods, at every level and parameter point."""

    grid: Grid
    """Of the rows alone."""
    masks: tuple[int, ...]
    rows: tuple[int, ...]
    """Indices of these cells among all."""
    num_cells: int

    @classmethod
    def of(cls, cells: Sequence[Cell], values_CS: Array | None = None) -> Partial | None:
        """None for cells that are all combinations, of more than 16 methods, or neither regular nor plain.

        With values, of the cells that have one: an arm that failed with every seed leaves a fraction of another kind.

        A baseline or an arm with everything on that was added to a regular fraction is left out of it. Plain are cells
        at one point without levels: their aliases may be partial.
        """
        known = range(len(cells)) if values_CS is None else np.flatnonzero(np.isfinite(values_CS).any(axis=1)).tolist()
        factors = switched([cells[i] for i in known])
        if not 0 < len(factors) <= aliases.MAX_METHODS:
            return None
        masks = {i: mask_of(cells[i][0], factors) for i in known}
        if len(set(masks.values())) == 2 ** len(factors):
            return None
        for extra in _extras(sorted(set(masks.values())), len(factors)):
            part = cls._without(cells, [i for i, mask in masks.items() if mask not in extra])
            if part is not None and part.regular:
                return part
        part = cls._without(cells, known)
        return part if part is not None and len(part.grid.cubes) == 1 else None

    @classmethod
    def _without(cls, cells: Sequence[Cell], rows: Sequence[int]) -> Partial | None:
        found = part_of_grid([cells[i] for i in rows], aliases.MAX_METHODS)
        return None if found is None else cls(*found, tuple(rows), len(cells))

    @property
    def methods(self) -> tuple[str, ...]:
        """Bit by bit; one with levels is called by its name."""
        return tuple(levels[0] if len(levels) == 1 else level_of(levels[0]) for levels in self.grid.factors)

    @property
    def regular(self) -> bool:
        """Whether it has defining words, none of two methods, and columns agree wholly or not at all."""
        k, n = self.grid.k, len(self.masks)
        size = n & (n - 1) == 0 and n > k  # a power of two with room for every main effect
        found = aliases.words(self.masks, k) if size else ()
        return bool(found) and found[0].mask.bit_count() > 2 and aliases.is_regular(self.masks, k)

    def has(self, method: str) -> bool:
        """Whether some of its cells have the method and some lack it."""
        return any(method in levels for levels in self.grid.factors)

    def words(self) -> tuple[str, ...]:
        """The defining relation by names."""
        return tuple(self._told(one) for one in aliases.words(self.masks, self.grid.k))

    def aliases_of(self, methods: Sequence[str], idle: Collection[str] = ()) -> tuple[str, ...]:
        """What else is in the effect of these methods: the sets of fewest methods, none of more than three.

        `b * c`, `- a` with its sign turned, `0.33 b * c` in part. Where the cells are not regular, of one method.
        Sets with a method that is `idle`, did nothing anywhere, have no effect and are left out.
        """
        mask = mask_of(frozenset(methods), self.grid.factors)
        found = (
            aliases.aliases(self.masks, self.grid.k, mask)
            if self.regular
            else aliases.fitted_aliases(self.masks, self.grid.k, mask.bit_length() - 1)
        )
        nothing = mask_of(frozenset(idle), self.grid.factors)
        found = tuple(one for one in found if not one.mask & nothing)
        fewest = min((one.mask.bit_count() for one in found), default=0)
        named = [self._told(one) for one in found if one.mask.bit_count() == fewest]
        more = (f"{len(named) - MOST_NAMED} more",) if len(named) > MOST_NAMED else ()
        return (*named[:MOST_NAMED], *more)

    def effects(self) -> dict[tuple[str, ...], Array]:
        """One contrast (C,) for each group of sets that are one number, named by its set of fewest methods.

        (2 / N) prod_{i in A} s_i(c): a main effect or an interaction plus those of its aliases. Of N sets N - 1. Each
        choice of levels has one, the mean over the other methods' levels and over points.
        """
        named = self._representatives()
        masks = np.array(self.masks, dtype=np.int64)
        off = np.bitwise_count((masks[None, :] & named[:, None]) ^ named[:, None]).astype(np.int64)
        weights = (1 - 2 * (off & 1)) * 2 / len(masks)
        about = [tuple(i for i in range(self.grid.k) if int(mask) >> i & 1) for mask in named]
        found: dict[tuple[str, ...], Array] = {}
        for name, own in self.grid.spread(weights, about).items():
            found[name] = np.zeros(self.num_cells)
            found[name][list(self.rows)] = own
        return found

    def _representatives(self) -> aliases.Masks:
        """The set of fewest methods of each group but the mean's."""
        k = self.grid.k
        words = np.array([0, *(one.mask for one in aliases.words(self.masks, k))], dtype=np.int64)
        every = np.array(sorted(range(1, 2**k), key=lambda m: (m.bit_count(), m)), dtype=np.int64)
        group = (every[:, None] ^ words[None, :]).min(axis=1)
        _, first = np.unique(group, return_index=True)
        return every[[i for i in sorted(first) if group[i]]]

    def _told(self, one: aliases.Alias) -> str:
        name = " * ".join(m for i, m in enumerate(self.methods) if one.mask >> i & 1) or "the mean"
        size = "" if abs(one.share) == 1 else f"{abs(one.share):.2g} "
        return f"{'- ' if one.share < 0 else ''}{size}{name}"


def _extras(masks: Sequence[int], k: int) -> Iterator[frozenset[int]]:
    """What may have been added to a fraction, likeliest first: nothing, the ends, any set, that and everything on."""
    full = 2**k - 1
    single = [frozenset({mask}) for mask in (0, full, *(m for m in masks if 0 < m < full)) if mask in masks]
    pairs = [one | {full} for one in single if full in masks and full not in one]
    for extra in itertools.chain([frozenset[int]()], single, pairs):
        left = len(masks) - len(extra)
        if left > 1 and left & (left - 1) == 0:
            yield extra
