"""Time to target over the trials of an arm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from expkit.analysis.attainment import attained, median_time, target_times
from expkit.analysis.load import Evaluations, Key
from expkit.analysis.replicate import Replicate


def series(values: list[float], scale: float = 1.0) -> Evaluations:
    batch = np.arange(1, len(values) + 1, dtype=float)
    clock = batch * scale
    return Evaluations(batch, batch, {"train_s": clock, "cpu_s": clock}, np.array(values))


def trial(id: str, state: str = "complete", reasons: tuple[str, ...] = (), number: int = 0) -> Replicate:
    return Replicate(id, number, "none", "baseline", 0, 0, state, timing_reasons=reasons)


RISING = [0.0, 0.5, 1.0, 1.0]
FLAT = [0.0, 0.1, 0.2, 0.3]


def test_the_median_counts_misses_as_infinite() -> None:
    assert median_time([3.0, 1.0, math.inf]) == 3
    assert median_time([1.0, math.inf]) is None
    assert median_time([math.inf, math.inf, 1.0]) is None
    assert median_time([]) is None


def test_a_budget_with_a_ladder_of_its_own_is_timed_to_that_and_not_to_another_s() -> None:
    known: dict[Key, Evaluations] = {("a", 0): series(RISING), ("b", 0): series(FLAT)}
    found = attained(known, 0.75, [(0.9, 0.9)], "max", "train_s", {("b", 0): ((0.9, 0.25),)})
    longest, shorter = ({t.share: (t.target, t.hits) for t in target_times([trial(i)], found)} for i in "ab")
    assert longest == {None: (0.75, 1), 0.9: (0.9, 1)}
    assert shorter == {None: (0.75, 0), 0.9: (0.25, 1)}


def test_hits_are_counted_over_all_that_ended_and_misses_name_their_horizon() -> None:
    known: dict[Key, Evaluations] = {("a", 0): series(RISING), ("b", 0): series(RISING, 2), ("c", 0): series(FLAT)}
    trials = [trial("a"), trial("b"), trial("c"), trial("d", "diverged"), trial("e", "running"), trial("a", number=1)]
    found = {
        (t.rule, t.share): t
        for t in target_times(trials, attained(known, 0.75, [(0.9, 0.25), (0.99, 0.35)], "max", "train_s"))
    }
    primary = found["interpolated", None]
    assert (primary.hits, primary.n, primary.median_s, primary.censored_at_s) == (2, 4, None, 4)
    assert primary.text == "> 4.00 s (2/4)"
    assert [found["interpolated", share].text for share in (0.9, 0.99)] == ["3.25 s (3/4)", "> 4.00 s (2/4)"]
    assert set(found) == {
        (r, None) for r in ("first", "sustained", "interpolated", "to_end", "median3", "endpoint")
    } | {
        ("interpolated", 0.9),
        ("interpolated", 0.99),
    }


def test_rules_that_do_not_interpolate_take_the_evaluation_s_own_time() -> None:
    times = {
        t.rule: t for t in target_times([trial("a")], attained({("a", 0): series(RISING)}, 0.75, [], "max", "cpu_s"))
    }
    assert (times["first"].median_s, times["sustained"].median_s) == (3, 3)
    assert times["interpolated"].median_s == pytest.approx(2.5)
    assert times["interpolated"].text == "2.50 s (1/1)"


def test_a_resumed_trial_counts_as_a_hit_but_its_time_does_not() -> None:
    known: dict[Key, Evaluations] = {("a", 0): series(RISING), ("b", 0): series(RISING, 9)}
    trials = [trial("a"), trial("b", reasons=("resumed",))]
    found = target_times(trials, attained(known, 0.75, [], "max", "train_s"))[2]
    assert (found.hits, found.n, found.median_s) == (2, 2, 2.5)


def test_without_a_target_or_trials_there_is_nothing_to_say() -> None:
    assert target_times([trial("a")], attained({}, None, [], "max", "train_s")) == ()
    assert target_times([], attained({}, 0.5, [], "max", "train_s"))[0].text == "not known (0/0)"
