"""Shapley credit from sampled orders, against the full grid's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from expkit.analysis import cube
from expkit.analysis.cells import Cell
from expkit.analysis.intervals import Array, t_quantile
from expkit.analysis.orders import of_orders
from expkit.analysis.shares import Table, shares
from expkit.plan.permutations import along, orders

METHODS = "ABCDE"


def worth(k: int, seed: int = 0) -> Array:
    """A game of k methods with interactions of every order, (2^k,)."""
    return np.random.default_rng(seed).normal(size=2**k)


def sampled(k: int, wanted: int) -> tuple[list[list[str]], list[int]]:
    """Orders by letters, and the sets that stand along them."""
    drawn = orders(k, wanted)
    return [[METHODS[i] for i in order] for order in drawn], sorted({m for order in drawn for m in along(order)})


def cells_of(masks: list[int], k: int) -> list[Cell]:
    return [(frozenset(METHODS[i] for i in range(k) if m >> i & 1), "") for m in masks]


def test_all_orders_give_shapley_exactly() -> None:
    v = worth(4)
    every = list(itertools.permutations("ABCD"))
    found = of_orders(cells_of(list(range(16)), 4), np.tile(v[:, None], 2), every)
    exact = cube.shapley_weights(4) @ v
    assert [found[m].interval.value for m in "ABCD"] == pytest.approx(exact)


def test_sampled_orders_share_out_the_whole_and_say_how_sure_they_are() -> None:
    v = worth(5)
    drawn, masks = sampled(5, 8)
    table = v[masks][:, None] + np.random.default_rng(1).normal(0, 1e-6, size=(len(masks), 3))
    found = of_orders(cells_of(masks, 5), table, drawn)
    assert sum(one.interval.value or 0 for one in found.values()) == pytest.approx(v[31] - v[0], abs=1e-5)
    exact = dict(zip(METHODS, cube.shapley_weights(5) @ v, strict=True))
    for method, one in found.items():  # without noise of seeds, what is left is that of orders
        it = one.interval
        assert it.method == "over seeds and orders"
        assert it.lo is not None
        assert it.hi is not None
        assert it.hi - it.lo > 0.05
        assert it.lo < exact[method] < it.hi


def test_intervals_cover_the_credit_of_all_orders() -> None:
    hits = total = 0
    drawn, masks = sampled(5, 24)
    for seed in range(60):
        v = worth(5, seed)
        table = v[masks][:, None] + np.random.default_rng(seed).normal(0, 0.2, size=(len(masks), 4))
        exact = dict(zip(METHODS, cube.shapley_weights(5) @ v, strict=True))
        for method, one in of_orders(cells_of(masks, 5), table, drawn).items():
            assert one.interval.lo is not None
            assert one.interval.hi is not None
            hits, total = hits + (one.interval.lo < exact[method] < one.interval.hi), total + 1
    assert hits / total > 0.92  # 300 intervals of a nominal 95 %


def test_levels_have_their_own_credit() -> None:
    """A at two levels: half the cells with A have each; each level's credit is that of its own grid."""
    v1, v2 = worth(3, 1), worth(3, 2)
    v2[[m for m in range(8) if not m & 1]] = v1[[m for m in range(8) if not m & 1]]
    every = list(itertools.permutations("ABC"))
    named = {0: "A[x=1]", 1: "A[x=2]"}
    cells, values = [], []
    for mask, level in itertools.product(range(8), (0, 1)):
        if mask & 1 or level == 0:
            on = frozenset(named[level] if m == "A" else m for i, m in enumerate("ABC") if mask >> i & 1)
            cells.append((on, "p"))
            values.append((v1, v2)[level][mask])
    found = of_orders(cells, np.tile(np.array(values)[:, None], 2), every)
    assert found["A[x=2]"].interval.value == pytest.approx((cube.shapley_weights(3) @ v2)[0])
    assert found["B"].interval.value == pytest.approx((cube.shapley_weights(3) @ (v1 + v2) / 2)[1])


def test_without_a_set_along_them_orders_say_nothing_and_least_squares_does() -> None:
    drawn, masks = sampled(4, 6)
    v = worth(4)
    whole = shares(Table.of(cells_of(masks, 4), np.tile(v[masks][:, None], 3), (), 0.95, drawn))
    assert whole.basis == "orders"
    assert set(whole.shapley) == set("ABCD")
    left = [m for m in masks if m not in (masks[2],)]
    holed = shares(Table.of(cells_of(left, 4), np.tile(v[left][:, None], 3), (), 0.95, drawn))
    assert holed.basis != "orders"
    assert of_orders(cells_of(masks, 4), np.tile(v[masks][:, None], 3), [["A", "B", "C"]]) == {}
    assert of_orders(cells_of(masks, 4), np.tile(v[masks][:, None], 3), ()) == {}


def test_one_pair_of_orders_has_no_interval_and_missing_trials_leave_their_seed_out() -> None:
    drawn, masks = sampled(5, 2)
    table = np.tile(worth(5)[masks][:, None], 3)
    assert all(one.interval.lo is None for one in of_orders(cells_of(masks, 5), table, drawn).values())
    drawn, masks = sampled(5, 8)
    table = np.tile(worth(5)[masks][:, None], 3)
    table[1, 2] = np.nan
    assert {one.interval.n for one in of_orders(cells_of(masks, 5), table, drawn).values()} <= {2, 3}
    table[1] = np.nan
    assert min(one.interval.n for one in of_orders(cells_of(masks, 5), table, drawn).values()) == 0


def test_more_orders_come_closer_to_the_exact_credit_as_fast_as_their_errors_say() -> None:
    """Root mean squares over 30 games of five methods: the error of 8, 32 and all 120 orders, and its own estimate."""
    table: dict[int, tuple[float, float]] = {}
    for wanted in (8, 32, 120):
        drawn, masks = sampled(5, wanted)
        missed, stated = [], []
        for seed in range(30):
            v = worth(5, seed)
            noise = np.random.default_rng(seed).normal(0, 1e-9, size=(len(masks), 3))
            exact = dict(zip(METHODS, cube.shapley_weights(5) @ v, strict=True))
            for method, one in of_orders(cells_of(masks, 5), v[masks][:, None] + noise, drawn).items():
                it = one.interval
                assert it.value is not None and it.hi is not None and one.df is not None
                missed.append(it.value - exact[method])
                stated.append((it.hi - it.value) / t_quantile(0.95, one.df))
        table[wanted] = float(np.sqrt(np.mean(np.square(missed)))), float(np.sqrt(np.mean(np.square(stated))))
    assert table[8][0] > 1.8 * table[32][0] > 0.01  # twice at four times the orders
    assert table[120][0] < 1e-8
    for wanted in (8, 32):
        assert table[wanted][1] == pytest.approx(table[wanted][0], rel=0.25)
