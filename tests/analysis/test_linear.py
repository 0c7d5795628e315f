"""Contrasts on whole and holed tables, the pure error, and Lenth's margins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expkit.analysis.cube import interactions, main_weights
from expkit.analysis.intervals import pooled_error
from expkit.analysis.linear import contrasts, lenth, pure_error
from tests.analysis.test_cube import FILTRATION


def test_lenth_on_the_filtration_experiment() -> None:
    """Montgomery, section 6.5 and JMP: PSE 2.625, margin 6.748, simultaneous 13.699; A, C, D, AC, AD stand out."""
    found = lenth(interactions(FILTRATION)[1:])
    assert found is not None
    assert (found.m, found.pse) == (15, 2.625)
    assert (found.margin, found.simultaneous) == pytest.approx((6.748, 13.699), abs=5e-4)
    active = [i for i, c in enumerate(interactions(FILTRATION)) if i and abs(c) > found.margin]
    assert active == [1, 4, 5, 8, 9]
    assert found.of(9.875).p == pytest.approx(0.0131, abs=5e-5)
    assert found.of(9.875).interval.lo == pytest.approx(9.875 - 6.748, abs=5e-4)


def test_lenth_needs_seven_effects() -> None:
    assert lenth([1.0, 2.0, 3.0]) is None
    equal = lenth(np.zeros(7))
    assert equal is not None
    assert (equal.margin, equal.of(0.0).p) == (0.0, 1.0)


tables = st.tuples(st.integers(2, 6), st.integers(2, 5), st.integers(0, 2**32 - 1))


@given(tables)
@settings(max_examples=30)
def test_the_pure_error_of_a_holed_table_is_that_of_least_squares(shape: tuple[int, int, int]) -> None:
    num_cells, num_seeds, seed = shape
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(num_cells, num_seeds))
    table[rng.random(table.shape) < 0.25] = math.nan
    rows, columns = np.nonzero(np.isfinite(table))
    found = pure_error(table)
    if not len(rows):
        assert found is None
        return
    design = np.hstack((np.eye(num_cells)[rows], np.eye(num_seeds)[columns]))
    y = table[rows, columns]
    residuals = y - design @ np.linalg.pinv(design) @ y
    df = len(rows) - np.linalg.matrix_rank(design)
    assert (found is None) == (df == 0)
    if found is not None:
        assert found.df == df
        assert found.sd**2 * df == pytest.approx(residuals @ residuals, abs=1e-9)


def test_the_pure_error_of_a_whole_table_is_the_pooled_one() -> None:
    table = np.random.default_rng(3).normal(size=(6, 4))
    pooled, pure = pooled_error(table), pure_error(table)
    assert pooled is not None
    assert pure is not None
    assert (pure.sd, pure.df) == pytest.approx((pooled.sd, pooled.df))
    two = pure_error(table, ["lr=1"] * 3 + ["lr=2"] * 3)
    assert two is not None
    assert two.df == (6 - 2) * 3


def test_seeds_that_lack_a_cell_of_a_contrast_are_left_out_of_it_and_of_no_other() -> None:
    table = np.arange(8.0)[:, None] + np.array([0.0, 1.0, 5.0])
    table[7, 2] = math.nan
    weights = np.vstack((main_weights(3)[0], [1.0, -1.0, 0, 0, 0, 0, 0, 0]))
    whole, simple = (found.interval for found in contrasts(weights, table))
    assert (whole.n, simple.n) == (2, 3)
    assert (whole.value, simple.value) == (1.0, -1.0)


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_interval_leaves_out_nothing_exactly_where_p_is_below_a_twentieth(n: int, seed: int) -> None:
    per_seed = np.random.default_rng(seed).normal(0.8, 1.0, size=(1, n))
    found = contrasts([[1.0]], per_seed)[0]
    assert found.interval.lo is not None and found.interval.hi is not None and found.p is not None
    assert (not found.interval.lo <= 0 <= found.interval.hi) == (found.p < 0.05)


def test_one_seed_has_a_value_and_none_has_nothing() -> None:
    assert contrasts([[1.0]], [[2.0]])[0].interval.lo is None
    assert contrasts([[1.0]], [[math.nan, math.nan]])[0].interval.value is None
