"""Guards of evidence, evaluation and methods: what triggers each and what does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from expkit.analysis.guards import evaluation, evidence, methods
from expkit.analysis.model import Interval
from expkit.analysis.time_to_target import time_to_target

NAN = math.nan


def test_seeds() -> None:
    found = evidence.seeds({"ema": 5, "mixup": 6}, 0.04 * math.sqrt(2))
    assert found.light == "green"
    assert found.number == pytest.approx(1.10, abs=0.01)
    assert found.sentence == "With n=5 and noise 5.8 % a pair, this sweep could detect x1.10 or more (80 % power)."
    few = evidence.seeds({"ema": 3, "mixup": 5}, 0.04)
    assert (few.light, few.sentence.endswith("fewer than 5 pairs: ema.")) == ("amber", True)
    assert evidence.seeds({"ema": 1}, None).light == "red"
    assert evidence.seeds({"ema": 1, "mixup": 5}, None).light == "amber"
    assert not evidence.seeds({}, None).checked


def test_the_smallest_speedup_that_would_be_found() -> None:
    rng = np.random.default_rng(0)
    sd, n = 0.05, 4
    effect = math.log(evidence.detectable(sd, n) or 0)
    d = rng.normal(effect, sd, (20_000, n))
    t = d.mean(axis=1) / (d.std(axis=1, ddof=1) / math.sqrt(n))
    assert np.mean(np.abs(t) > 3.182446) == pytest.approx(0.8, abs=0.01)
    assert evidence.detectable(0.0, 5) == pytest.approx(1)
    assert evidence.detectable(0.05, 1) is None
    assert evidence.detectable(NAN, 5) is None


def test_the_best_of_many_is_not_confirmed_by_having_won() -> None:
    rng = np.random.default_rng(1)
    arms, table = ["a", "b", "c"], np.array([[0.2], [0.1], [0.0]]) + rng.normal(0, 0.01, (3, 5))
    found = evidence.winner(arms, table, 0.01)
    assert found.light == "amber"
    assert found.sentence.startswith("a is the fastest of 3 arms (x1.22) and not confirmed on fresh seeds")
    assert found.number is not None and 1 < found.number < 1.02
    again = evidence.winner(arms, table, 0.01, {"a": Interval(1.16, 1.1, 1.22, 5)})
    assert (again.light, again.number) == ("green", 1.16)
    assert again.sentence == (
        "Chosen as best of 3 arms; confirmed on 5 unseen seeds: x1.16 [1.10, 1.22] (n=5) (was x1.22)."
    )
    not_so = evidence.winner(arms, table, 0.01, {"a": Interval(1.02, 0.99, 1.05, 5)})
    assert (not_so.light, not_so.number) == ("amber", 1.02)
    assert "which do not bear it out: x1.02" in not_so.sentence
    second = evidence.winner(arms, table, 0.01, {"a": Interval(1.16, 1.1, 1.22, 5)}, {"a": 2})
    assert second.light == "amber"
    assert second.sentence.endswith("the best of several tries is a choice again.")


def test_where_nobody_won_nothing_needs_to_be_confirmed() -> None:
    slow = np.full((2, 3), -0.1)
    assert evidence.winner(["a", "b"], slow, 0.01).light == "green"
    assert evidence.winner(["a"], -slow[:1], 0.01).sentence == "One arm was compared: nothing was chosen."
    assert not evidence.winner(["a"], np.array([[0.1, NAN]]), 0.01).checked
    assert not evidence.winner([], np.empty((0, 0)), None).checked


@pytest.mark.parametrize(("m", "expected"), [(1, 0.0), (8, 1.42), (16, 1.77), (64, 2.34), (256, 2.83)])
def test_what_the_best_of_equals_gains_by_chance(m: int, expected: float) -> None:
    assert evidence.expected_max(m) == pytest.approx(expected, abs=0.006)


def test_hits_of_shorter_budgets_are_told_apart() -> None:
    found = evaluation.hits(5, 5, (1, 10))
    assert found.light == "green"
    assert found.sentence == (
        "All 5 trials at the longest budget reached the target and kept it; 1 of 10 at shorter ones did."
    )


def test_tuning() -> None:
    assert not evidence.tuning({"none": 1, "ema": 1}, "none").checked
    equal = evidence.tuning({"none": 12, "ema": 12}, "none")
    assert (equal.light, equal.number) == ("green", 12)
    assert equal.sentence.startswith("Baseline: 12 settings tried; each set of methods: 12;")
    uneven = evidence.tuning({"none": 1, "ema": 4, "mixup": 12}, "none")
    assert uneven.sentence == (
        "Baseline: 1 settings tried; each set of methods: 4 to 12: whoever is tried more looks better."
    )
    assert uneven.light == "amber"


def test_evaluation_points() -> None:
    first = [time_to_target([1, 2, 3, 4], [0, 1, 1, 1], 0.5, rule="first")] * 2
    kept = [time_to_target([1, 2, 3, 4], [0, 1, 1, 1], 0.5)] * 2
    same = evaluation.evaluation_points({"": [[1, 2, 3, 4]] * 2}, first, kept)
    assert (same.light, same.number) == ("green", 1)
    assert same.sentence == (
        "All runs were evaluated at the same 4 points; crossing confirmed by the next evaluation in 2 of 2 runs."
    )
    more = evaluation.evaluation_points({"": [[2, 4], [1, 2, 3, 4]]}, first, kept)
    assert more.light == "amber"
    assert more.sentence.startswith("Runs were not evaluated at the same points: more looks cross a target sooner;")
    assert not evaluation.evaluation_points({}, [], []).checked


def test_crossings_that_the_next_evaluation_does_not_confirm() -> None:
    lucky = [0, 1, 0, 0, 1, 1]
    first = time_to_target(range(1, 7), lucky, 0.5, rule="first")
    later = time_to_target(range(1, 7), lucky, 0.5)
    found = evaluation.evaluation_points({"": [list(range(1, 7))]}, [first], [later])
    assert (found.light, found.number) == ("amber", 0)
    assert "in 0 of 1 runs" in found.sentence


def test_the_test_split() -> None:
    assert evaluation.selection_split(["test", "validation"]).light == "amber"
    clean = evaluation.selection_split(["validation"])
    assert (clean.light, clean.sentence) == ("green", "Selection on validation; test not opened.")
    once = evaluation.selection_split(["validation"], 20, ["test"])
    assert once.sentence == "Selection on validation; test used once, by 20 confirming trials."
    assert not evaluation.selection_split([]).checked


def test_a_metric_that_the_methods_change() -> None:
    alike = evaluation.metric_unchanged("eval/accuracy", "max", [], ["eval/accuracy", "eval/cross_entropy"])
    assert alike.sentence == "eval/accuracy is evaluated alike in every arm; also recorded: eval/cross_entropy."
    soft = evaluation.metric_unchanged("eval/accuracy", "max", ["label_smoothing"])
    assert (soft.light, soft.number) == ("green", 1)
    assert soft.sentence.startswith("label_smoothing changes the training loss; compared on eval/accuracy")
    assert evaluation.metric_unchanged("eval/cross_entropy", "min", ["label_smoothing"]).light == "amber"
    assert evaluation.metric_unchanged("train/loss", "min", []).light == "amber"


def test_a_method_that_one_metric_calls_better_and_another_worse_is_named_with_both() -> None:
    worse, better, even = Interval(-0.02, -0.03, -0.01, 5), Interval(0.003, 0.001, 0.005, 5), Interval(0, -1, 1, 5)
    by = {"eval/cross_entropy": {"ls": worse, "ema": worse, "both": worse},
          "eval/accuracy": {"ls": better, "ema": even, "both": better}}  # fmt: skip
    found = evaluation.metric_unchanged("eval/cross_entropy", "min", ["ls"], by, by)
    assert (found.light, found.sentence) == ("amber", (
        "ls changes the training loss, and the verdict hangs on the metric: ls is better by eval/accuracy "
        "(+0.0030 [+0.0010, +0.0050] (n=5)) and worse by eval/cross_entropy (-0.020 [-0.030, -0.010] (n=5)); "
        "so is both."
    ))  # fmt: skip
    other = evaluation.metric_unchanged("eval/accuracy", "max", ["ls"], by, by)
    assert (other.light, "ls is better by eval/accuracy" in other.sentence) == ("amber", True)
    assert (
        evaluation.metric_unchanged("eval/accuracy", "max", ["ls"], by, {"eval/accuracy": {"ls": better}}).light
        == "green"
    )


def test_less_work_that_saves_no_time() -> None:
    work, none = Interval(1.33, 1.28, 1.38, 5), Interval(1.0, 0.97, 1.03, 5)
    found = methods.less_work({"selective_backprop": (work, none), "ema": (none, none)})
    assert (found.light, found.number) == ("amber", 1.33)
    assert found.sentence == (
        "Less work, no measurable time saved: selective_backprop 25 % less time in backward passes, "
        "whole run x1.000 [0.970, 1.030]."
    )
    assert methods.less_work({"resizing": (work, Interval(1.2, 1.1, 1.3, 5))}).light == "green"
    assert not methods.less_work({"ema": (Interval(), none)}).checked


def test_methods_that_overlap() -> None:
    apart = [0.20, 0.21, 0.19, 0.20]
    found = methods.overlap(["ema", "resizing"], [0.1, 0.11, 0.1, 0.09], apart, 0.01)
    assert (found.light, found.number) == ("amber", pytest.approx(math.exp(-0.1), rel=1e-3))
    assert found.sentence.startswith("ema and resizing overlap: together x1.11, product of singles x1.22 (ratio x0.905")
    more = methods.overlap(["ema", "resizing"], [0.3, 0.31, 0.3, 0.29], apart, 0.01)
    assert more.sentence.startswith("ema and resizing help each other")
    assert methods.overlap(["ema", "resizing"], [0.21, 0.2, 0.19, 0.2], apart, 0.01).light == "green"
    assert methods.overlap(["ema", "resizing"], [0.1, 0.11, 0.1, 0.09], apart, 0.2).light == "green"  # in the noise
    assert methods.overlap(["ema"], [0.1], [0.1], 0.01).light == "green"
    assert not methods.overlap(["ema", "resizing"], [], [], 0.01).checked
