"""The front of speed and quality: against brute force, and what it must be whatever the numbers."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.analysis.pareto import front_probability, on_front, volume

points = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12)


def brute(speed: list[int], quality: list[int]) -> list[bool]:
    return [
        not any(
            g >= speed[j] and q >= quality[j] and (g > speed[j] or q > quality[j])
            for g, q in zip(speed, quality, strict=True)
        )
        for j in range(len(speed))
    ]


@given(points)
def test_it_is_what_comparing_every_pair_gives_ties_and_all(found: list[tuple[int, int]]) -> None:
    speed, quality = (list(side) for side in zip(*found, strict=True))
    assert on_front(speed, quality).tolist() == brute(speed, quality)


@given(points, points)
def test_many_tables_at_once_are_as_each_by_itself(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    n = min(len(one), len(two))
    both = np.array([one[:n], two[:n]], dtype=float)
    together = on_front(both[:, :, 0], both[:, :, 1])
    assert together.tolist() == [on_front(t[:, 0], t[:, 1]).tolist() for t in both]


def test_what_is_not_known_is_on_no_front_and_beats_nobody() -> None:
    assert on_front([np.nan, 1.0, 0.5], [9.0, 0.0, np.nan]).tolist() == [False, True, False]


def test_a_clear_winner_is_sure_a_beaten_arm_is_out_and_a_close_one_in_between() -> None:
    rng = np.random.default_rng(0)
    speed = np.array([[0.0] * 6, [0.5] * 6, [-0.5] * 6, [0.5] * 6]) + rng.normal(0, 0.01, (4, 6)) * [[0], [1], [1], [1]]
    quality = np.array([[0.0] * 6, [0.1] * 6, [-0.1] * 6, [0.1] * 6]) + rng.normal(0, 0.01, (4, 6)) * [
        [0],
        [1],
        [1],
        [1],
    ]
    found = front_probability(speed, quality, np.random.default_rng(0))
    assert found is not None
    assert (found[0], found[2]) == (0, 0)
    assert min(found[1], found[3]) > 0 and max(found[1], found[3]) > 0.5
    assert found == pytest.approx(front_probability(speed, quality, np.random.default_rng(0)))


def test_blocks_are_drawn_whole_so_what_a_seed_does_to_all_arms_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    speed, quality = (
        np.array([[0.0], [0.1]]) + rng.normal(0, 0.01, (2, 5)),
        np.array([[0.0], [0.01]]) + np.zeros((2, 5)),
    )
    shift = rng.normal(0, 10, 5)
    assert front_probability(speed, quality, rng) == pytest.approx([0, 1])
    assert front_probability(speed + shift, quality + shift, rng) == pytest.approx([0, 1])


def test_few_seeds_and_holes() -> None:
    rng = np.random.default_rng(0)
    table = np.array([[0.0, 0.0, 0.0], [0.1, np.nan, 0.2], [np.nan] * 3])
    assert front_probability(table[:, :2], table[:, :2], rng) is None
    found = front_probability(table, np.where(np.isnan(table), 0, table), rng)
    assert found is not None
    assert found[1] == pytest.approx(1)
    assert np.isnan(found[2])
    assert found[0] < 0.1  # alone only where the other's one hole was drawn three times


def test_1024_arms_take_seconds() -> None:
    rng = np.random.default_rng(0)
    speed, quality = rng.normal(size=(1024, 10)), rng.normal(size=(1024, 10))
    begin = time.process_time()
    found = front_probability(speed, quality, rng)
    assert found is not None
    assert found.shape == (1024,)
    assert time.process_time() - begin < 10  # 0.8 s on one core


def test_the_volume_of_known_fronts() -> None:
    speed, quality = np.array([[0.0], [0.2], [0.5], [-1.0]]), np.array([[0.0], [0.02], [0.01], [0.5]])
    assert volume(speed, quality, 0.01).value == pytest.approx(0.2 * 0.03 + 0.3 * 0.02)
    assert volume(speed, quality - 0.03, 0.0).value == 0
    assert volume(speed[:1], quality[:1], 0.01).value == 0
    assert volume(np.zeros((2, 0)), np.zeros((2, 0)), 0.01).value is None
    assert volume(np.full((2, 3), np.nan), np.zeros((2, 3)), 0.01).value is None


def test_the_volume_has_a_t_interval_that_holds_it() -> None:
    rng = np.random.default_rng(2)
    speed, quality = 0.3 + rng.normal(0, 0.02, (1, 5)), 0.02 + rng.normal(0, 0.002, (1, 5))
    found = volume(speed, quality, 0.01)
    assert found.value == pytest.approx(speed.mean() * (quality.mean() + 0.01))
    assert found.lo is not None and found.hi is not None
    assert 0 < found.lo < (found.value or 0) < found.hi
    assert found.method == "jackknife t, approximate"
    assert volume(speed[:, :2], quality[:, :2], 0.01).lo is None


@given(points, st.floats(0, 1))
def test_another_arm_never_makes_the_volume_smaller(found: list[tuple[int, int]], margin: float) -> None:
    speed, quality = (np.array(side, dtype=float)[:, None] for side in zip(*found, strict=True))
    fewer = volume(speed[:-1], quality[:-1], margin).value or 0.0
    assert (volume(speed, quality, margin).value or 0.0) >= fewer - 1e-12
