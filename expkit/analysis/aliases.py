"""What a partial grid cannot tell apart: its aliases, from the cells alone.

Columns of two sets of methods A and B agree over N cells as far as J(A ^ B) = sum_c prod_{i in A ^ B} s_i(c) goes:
|J| = N means that their effects are one number, 0 that they are clear of each other, and what lies between, that a
part of one is in the other, as in a Plackett-Burman design. speedup-science D; Tang and Deng (1999), Annals of
Statistics 27:1914.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Masks = NDArray[np.int64]

MAX_METHODS = 16
"""65,536 words; beyond, aliases are not looked for."""
_NONE = 5e-3


@dataclass(frozen=True)
class Alias:
    """Another set of methods in the same number: `share` +-1 wholly, between -1 and 1 in part."""

    mask: int
    share: float


def words(masks: Sequence[int], k: int) -> tuple[Alias, ...]:
    """The defining relation: sets whose column is constant over all cells, with its sign; shortest first.

    `masks`: the cells, bit i set where method i is on. D = ABC gives ABCD. Empty for a full grid.
    """
    j, n = characteristics(masks, k), len(masks)
    found = [Alias(int(a), float(np.sign(j[a]))) for a in np.flatnonzero(np.abs(j) == n) if a]
    return tuple(sorted(found, key=lambda one: (one.mask.bit_count(), _letters(one.mask))))


def resolution(masks: Sequence[int], k: int) -> int | None:
    """The fewest methods whose column is not balanced: III, IV, V, ... for a fraction, None for a full grid.

    In a regular fraction the length of its shortest word; in others the whole part of Deng and Tang's generalised one.
    """
    sizes = np.bitwise_count(np.flatnonzero(characteristics(masks, k))[1:].astype(np.int64))
    return int(sizes.min()) if len(sizes) else None


def aliases(masks: Sequence[int], k: int, of: int, most: int = 3) -> tuple[Alias, ...]:
    """Sets of up to `most` methods whose effect is in the same number as that of the set `of`, those of fewest first.

    A set of no methods is the mean: an effect that is aliased with it is that of a method which more cells have than
    lack.
    """
    j = characteristics(masks, k)
    sets = np.array([m for m in _up_to(k, most) if m != of], dtype=np.int64)
    share = j[sets ^ of] / max(len(masks), 1)
    return tuple(Alias(int(m), float(s)) for m, s in zip(sets, share, strict=True) if s)


def fitted_aliases(masks: Sequence[int], k: int, method: int, most: int = 3) -> tuple[Alias, ...]:
    """As `aliases` of one method's main effect where all main effects and the mean are fitted by least squares.

    X^+ Z with the columns of single methods in X and those of two to `most` methods in Z, after Box and Wilson (1951).
    The same where main effects are orthogonal; else a cell too few, say, puts a part of each pair into each of them.
    """
    signs_NK = 2.0 * (np.asarray(masks, dtype=np.int64)[:, None] >> np.arange(k) & 1) - 1
    sets = [m for m in _up_to(k, most) if m.bit_count() > 1]
    columns = np.array([signs_NK[:, _letters(m)].prod(axis=1) for m in sets]).T
    design = np.hstack((np.ones((len(signs_NK), 1)), signs_NK))
    share = np.linalg.lstsq(design, columns, rcond=1e-10)[0][1 + method] if sets else ()
    return tuple(Alias(m, round(float(s), 9)) for m, s in zip(sets, share, strict=True) if abs(s) > _NONE)


def chains(masks: Sequence[int], k: int, order: int = 2) -> list[tuple[int, ...]]:
    """Sets of `order` methods in groups that are one number each; those that stand alone are clear of each other."""
    j, n = characteristics(masks, k), len(masks)
    left, found = [m for m in _up_to(k, order) if m.bit_count() == order], []
    while left:
        chain = tuple(m for m in left if abs(j[m ^ left[0]]) == n)
        found.append(chain)
        left = [m for m in left if m not in chain]
    return found


def is_regular(masks: Sequence[int], k: int) -> bool:
    """Whether columns agree wholly or not at all: then effects of one chain are one contrast and all are orthogonal."""
    j = np.abs(characteristics(masks, k))
    return bool(np.isin(j, (0, len(masks))).all())


def characteristics(masks: Sequence[int], k: int) -> Masks:
    """J(A) of all 2^k sets, (2^k,): the Walsh transform of how often each cell is there."""
    assert k <= MAX_METHODS, f"{k} methods have 2^{k} words"
    j = np.bincount(np.asarray(masks, dtype=np.int64), minlength=2**k).astype(np.int64)
    everything = np.arange(2**k)
    for bit in range(k):
        on = everything[everything >> bit & 1 == 1]
        off = on ^ (1 << bit)
        j[off], j[on] = j[off] + j[on], j[on] - j[off]
    return j


def _up_to(k: int, most: int) -> list[int]:
    """Bitmasks of no to `most` methods, fewest first, in the order of their letters."""
    sizes = range(min(most, k) + 1)
    return [sum(1 << i for i in chosen) for size in sizes for chosen in itertools.combinations(range(k), size)]


def _letters(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
