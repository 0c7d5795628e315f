"""Time to target against the worked example G5 of the definition sheet, and the properties it must have."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.analysis.time_to_target import RULES, Crossing, crossings, stack, time_to_target
from expkit.errors import UsageError

T = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
ACCURACY = [70, 80, 88, 91, 90.5, 92.2, 91.7, 92.4, 92.6, 92.5]


def crossing(target: float, rule: str, **options: object) -> Crossing:
    return time_to_target(T, ACCURACY, target, rule=rule, **options)  # type: ignore[arg-type]


def test_first_of_the_worked_example() -> None:
    found = crossing(92, "first", interpolate=False)
    assert (found.t, found.bracket, found.left_censored) == (60, (50, 60), False)
    assert crossing(92, "first").t == pytest.approx(58.823529, abs=5e-7)


@pytest.mark.parametrize(("r", "known_at"), [(2, 90), (3, 100)])
def test_sustained_of_the_worked_example(r: int, known_at: float) -> None:
    assert crossing(92, "sustained", r=r, interpolate=False).t == 80
    found = crossing(92, "sustained", r=r)
    assert found.t == pytest.approx(74.285714, abs=5e-7)
    assert found.known_at == known_at


def test_to_end_of_the_worked_example() -> None:
    assert crossing(92, "to_end", interpolate=False).t == 80
    found = crossing(92, "to_end")
    assert found.t == pytest.approx(74.285714, abs=5e-7)
    assert found.known_at == 100


def test_median3_of_the_worked_example() -> None:
    assert crossing(92, "median3", interpolate=False).t == 80
    assert crossing(92, "median3").t == pytest.approx(76.0)


@pytest.mark.parametrize("rule", RULES)
def test_a_miss_is_censored_at_the_last_evaluation(rule: str) -> None:
    assert crossing(93, rule) == Crossing(False, None, None, None, False, 100)


def test_the_endpoint_is_one_point_of_a_whole_run() -> None:
    assert crossing(92.5, "endpoint") == Crossing(True, 100, 100, None, False, 100)
    assert crossing(92.6, "endpoint") == Crossing(False, None, None, None, False, 100)  # though it was there at 90
    assert time_to_target([], [], 1, rule="endpoint").horizon is None
    assert time_to_target([1, 2], [5, 3], 4, "min", rule="endpoint").t == 2


def test_there_at_the_first_evaluation_is_left_censored() -> None:
    found = crossing(70, "first")
    assert (found.t, found.left_censored, found.bracket) == (10, True, (0, 10))


def test_a_metric_to_minimise_is_the_mirror_image() -> None:
    losses = [-q for q in ACCURACY]
    for rule in RULES:
        assert time_to_target(T, losses, -92, "min", rule=rule) == crossing(92, rule)  # type: ignore[arg-type]


def test_a_short_streak_counts_when_it_lasts_to_the_end() -> None:
    found = time_to_target([1, 2, 3], [0, 0, 1], 1, rule="sustained", interpolate=False)
    assert (found.t, found.known_at) == (3, 3)
    assert not time_to_target([1, 2, 3], [0, 1, 0], 1, rule="sustained").hit


def test_missing_evaluations_are_dropped_and_infinite_ones_miss() -> None:
    nan, inf = math.nan, math.inf
    assert time_to_target([1, 2, 3, 4], [0, nan, 1, 1], 1, rule="first", interpolate=False).bracket == (1, 3)
    assert time_to_target([1, 2, 3], [inf, 0, 0], 1).hit is False
    assert time_to_target([1, 2], [-inf, 1], 1, rule="first").t == 2
    assert time_to_target([1, 2], [nan, nan], 1) == Crossing(False, None, None, None, False, None)
    assert time_to_target([], [], 1) == Crossing(False, None, None, None, False, None)


def test_equality_hits_and_ties_of_the_clock_do_no_harm() -> None:
    assert time_to_target([1, 2], [0.5, 0.9], 0.9, rule="first").t == 2
    assert time_to_target([2, 2], [0, 1], 0.5, rule="first").t == 2


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [(math.nan, {}, "finite"), (1, {"rule": "sustaind"}, "did you mean 'sustained'"), (1, {"r": 0}, "r=0")],
)
def test_what_cannot_be_asked_says_so(target: float, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        time_to_target(T, ACCURACY, target, **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="one length"):
        time_to_target([1], [1, 2], 1)


values = st.floats(-100, 100, allow_nan=False)
series = st.lists(values, min_size=1, max_size=30)


@given(series, values, values, st.sampled_from(RULES), st.integers(1, 4), st.booleans())
def test_a_harder_target_never_comes_sooner(
    quality: list[float], a: float, b: float, rule: str, r: int, interpolate: bool
) -> None:
    clock = list(range(1, len(quality) + 1))
    times = [
        time_to_target(clock, quality, g, rule=rule, r=r, interpolate=interpolate)  # type: ignore[arg-type]
        for g in (min(a, b), max(a, b))
    ]
    easy, hard = (math.inf if t.t is None else t.t for t in times)
    assert easy <= hard * (1 + 1e-12)


@given(series, st.lists(st.tuples(st.floats(0.1, 40), values), max_size=5), values)
def test_more_evaluations_never_make_first_later(
    quality: list[float], added: list[tuple[float, float]], target: float
) -> None:
    few = [(float(j), q) for j, q in enumerate(quality, 1)]
    times = [
        time_to_target(*zip(*points, strict=True), target, rule="first", interpolate=False).t  # type: ignore[misc]
        for points in (few, few + added)
    ]
    before, after = (math.inf if t is None else t for t in times)
    assert after <= before


@given(st.lists(series, max_size=5), values, st.sampled_from(RULES), st.booleans())
def test_many_trials_of_unequal_length_are_answered_as_each_by_itself(
    many: list[list[float]], target: float, rule: str, interpolate: bool
) -> None:
    pairs = [(list(range(1, len(q) + 1)), q) for q in many]
    together = crossings(stack(pairs), target, rule=rule, interpolate=interpolate)  # type: ignore[arg-type]
    assert together == [
        time_to_target(u, q, target, rule=rule, interpolate=interpolate)  # type: ignore[arg-type]
        for u, q in pairs
    ]


@given(series, values, st.sampled_from(RULES))
def test_the_time_lies_in_its_bracket(quality: list[float], target: float, rule: str) -> None:
    found = time_to_target(range(1, len(quality) + 1), quality, target, rule=rule)  # type: ignore[arg-type]
    if found.bracket is not None and found.t is not None and found.known_at is not None:
        assert found.bracket[0] <= found.t <= found.bracket[1] <= found.known_at
