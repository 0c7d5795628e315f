"""Credit on a full grid of k methods as weights on its 2^k cells: everything here is linear in the cells' values.

Cell c is a bitmask: bit i set means method i on. Values are -ln T for time or quality, so that more is better and
credits add; so each number is taken per seed by one product with the table, and gets a t interval over seeds. Nothing
is sampled. speedup-science A8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expkit.analysis.intervals import Array

Masks = NDArray[np.int64]


def main_weights(k: int) -> Array:
    """(k, 2^k): mean over cells with i on minus mean over cells with i off. The Banzhaf value; A8, Yates (1937)."""
    return np.asarray(np.where(_on(k), 1.0, -1.0) / 2 ** max(k - 1, 0), dtype=float)


def shapley_weights(k: int) -> Array:
    """(k, 2^k): phi_i = sum_S |S|! (k-1-|S|)! / k! [v(S+i) - v(S)]; they sum to v(all) - v(none). Shapley (1953)."""
    on, size = _on(k), _on(k).sum(axis=0)
    share = [math.factorial(s) * math.factorial(k - 1 - s) / math.factorial(k) for s in range(k)]
    gains = np.array([share[s - 1] if s else 0.0 for s in range(k + 1)])
    losses = np.array([share[s] if s < k else 0.0 for s in range(k + 1)])
    return np.asarray(np.where(on, gains[size], -losses[size]), dtype=float)


def add_one_in_weights(k: int) -> Array:
    """(k, 2^k): v({i}) - v(none), the effect on the bare baseline."""
    weights = np.zeros((k, 2**k))
    weights[np.arange(k), 1 << np.arange(k)] = 1
    weights[:, 0] = -1
    return weights


def leave_one_out_weights(k: int) -> Array:
    """(k, 2^k): v(all) - v(all but i), the effect on the full stack."""
    weights = np.zeros((k, 2**k))
    full = 2**k - 1
    weights[np.arange(k), full ^ (1 << np.arange(k))] = -1
    weights[:, full] += 1
    return weights


def waterfall_weights(order: Sequence[int]) -> Array:
    """(k, 2^k): v after minus v before, methods switched on one after the other in this order; they sum to the total.

    A permutation of 0 .. k-1. Row j is the j-th method of the order. The airbench ladder is such a waterfall.
    """
    k = len(order)
    assert sorted(order) == list(range(k)), f"an order names each of {k} methods once, not {order}"
    weights, mask = np.zeros((k, 2**k)), 0
    for row, method in enumerate(order):
        weights[row, mask] = -1
        mask |= 1 << method
        weights[row, mask] = 1
    return weights


def interaction_weights(k: int, sets: Sequence[int]) -> Array:
    """(sets, 2^k): I_A = 2^-(k-1) sum_c v(c) prod_{i in A} s_i(c), s = +-1, for each bitmask A. A8, Yates (1937).

    The difference of differences of a pair, averaged over the rest, is 2 I_A.
    """
    masks = np.arange(2**k)
    signs = np.array([1 - 2 * (_size_of(masks & a ^ a) & 1) for a in sets], dtype=float).reshape(len(sets), 2**k)
    return np.asarray(signs / 2 ** max(k - 1, 0), dtype=float)


def dividend_weights(k: int, sets: Sequence[int]) -> Array:
    """(sets, 2^k): d(A) = sum_{B in A} (-1)^{|A|-|B|} v(B), what A does beyond all smaller sets. Harsanyi (1963)."""
    masks = np.arange(2**k)
    rows = [np.where(masks & ~a == 0, 1 - 2 * (_size_of(a ^ masks) & 1), 0) for a in sets]
    return np.asarray(rows, dtype=float).reshape(len(sets), 2**k)


def shapley_interaction_weights(k: int, pairs: Sequence[tuple[int, int]]) -> Array:
    """(pairs, 2^k): sum_S |S|! (k-2-|S|)! / (k-1)! [v(S+ij) - v(S+i) - v(S+j) + v(S)], S without i and j; A8.

    By dividends it is sum over A with i and j of d(A) / (|A| - 1). Grabisch and Roubens (1999).
    """
    masks = np.arange(2**k)
    share = np.array([math.factorial(s) * math.factorial(k - 2 - s) / math.factorial(k - 1) for s in range(k - 1)])
    weights = np.zeros((len(pairs), 2**k))
    for row, (i, j) in zip(weights, pairs, strict=True):
        rest = masks & ~(1 << i | 1 << j)
        sign = 1 - 2 * ((masks >> i & 1) ^ (masks >> j & 1))
        row[:] = sign * share[_size_of(rest)]
    return weights


def interactions(values: ArrayLike) -> Array:
    """I_A of `interaction_weights` for all 2^k bitmasks A along the first axis; entry 0 is twice the mean.

    By the fast Walsh transform: k 2^k additions instead of 4^k.
    """
    v = np.array(values, dtype=float)
    for bit in range(_log2(len(v))):
        off, on = _halves(len(v), bit)
        v[off], v[on] = v[off] + v[on], v[on] - v[off]
    return np.asarray(v / 2 ** max(_log2(len(v)) - 1, 0), dtype=float)


def dividends(values: ArrayLike) -> Array:
    """d(A) of `dividend_weights` for all 2^k bitmasks A along the first axis; Moebius transform."""
    v = np.array(values, dtype=float)
    for bit in range(_log2(len(v))):
        off, on = _halves(len(v), bit)
        v[on] = v[on] - v[off]
    return v


def variance_shares(values: ArrayLike) -> Array:
    """I_A^2 / sum_B I_B^2 over all sets but the empty one, (2^k,); 0 everywhere where the values do not vary.

    The functional analysis of variance of a balanced 2^k grid: what moves the outcome, not who earned it. Of means
    over n seeds each share has noise of about (2 s)^2 / (2^k n) in its numerator. A8; Hutter et al. (2014).
    """
    squares = np.square(interactions(values))
    squares[0] = 0.0
    total = float(squares.sum())
    return np.asarray(squares / total if total > 0 else squares, dtype=float)


def _on(k: int) -> NDArray[np.bool_]:
    """(k, 2^k): whether method i is on in cell c."""
    return (np.arange(2**k)[None, :] >> np.arange(k)[:, None] & 1).astype(bool)


def _size_of(masks: Masks) -> Masks:
    return np.bitwise_count(masks).astype(np.int64)


def _log2(num_cells: int) -> int:
    k = num_cells.bit_length() - 1
    assert num_cells == 2**k, f"a full grid has 2^k cells, not {num_cells}"
    return k


def _halves(num_cells: int, bit: int) -> tuple[Masks, Masks]:
    masks = np.arange(num_cells)
    on = masks[masks >> bit & 1 == 1]
    return on ^ (1 << bit), on
