"""The verdict grammar: sixteen combinations, the early exits and their order."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest

from expkit.analysis.model import Guard, Interval
from expkit.analysis.verdict import TABLE, Counts, Evidence, Verdict, quality_class, time_class, verdict

EPS = 0.02
TIMES = {
    "FASTER": Interval(1.10, 1.05, 1.15, 5),
    "SAME": Interval(1.0, 0.99, 1.01, 5),
    "SLOWER": Interval(0.9, 0.85, 0.95, 5),
    "UNRESOLVED": Interval(1.02, 0.99, 1.05, 5),
}
QUALITIES = {
    "better": Interval(0.02, 0.01, 0.03, 5, 0.9),
    "equal or not worse": Interval(0.001, -0.002, 0.004, 5, 0.9),
    "undecided": Interval(0.0, -0.02, 0.02, 5, 0.9),
    "worse": Interval(-0.02, -0.03, -0.01, 5, 0.9),
}
EXPECTED = {
    ("FASTER", "better"): "FASTER AND BETTER",
    ("FASTER", "equal or not worse"): "FASTER at equal quality",
    ("FASTER", "undecided"): "FASTER, quality not established",
    ("FASTER", "worse"): "TRADE: faster, worse",
    ("SAME", "better"): "BETTER at equal time",
    ("SAME", "equal or not worse"): "NO EFFECT (bounded by 2.0 %)",
    ("SAME", "undecided"): "NO TIME EFFECT, quality not established",
    ("SAME", "worse"): "WORSE at equal time",
    ("SLOWER", "better"): "TRADE: slower, better",
    ("SLOWER", "equal or not worse"): "SLOWER",
    ("SLOWER", "undecided"): "SLOWER, quality not established",
    ("SLOWER", "worse"): "SLOWER AND WORSE",
    ("UNRESOLVED", "better"): "BETTER, time unresolved",
    ("UNRESOLVED", "equal or not worse"): "INCONCLUSIVE",
    ("UNRESOLVED", "undecided"): "INCONCLUSIVE",
    ("UNRESOLVED", "worse"): "WORSE, time unresolved",
}
DONE = Counts(5, 5, 0, 0)
RED = Guard("contention", "red", 1.5, "The machine was shared.")
GOOD = Evidence(
    DONE, DONE, TIMES["FASTER"], QUALITIES["better"], EPS, aa_pairs=5, delta=0.005, clock="cpu_s",
    metric="eval/accuracy",
)  # fmt: skip


def ask(**changes: object) -> Verdict:
    return verdict(dataclasses.replace(GOOD, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(("speed", "worth"), list(itertools.product(TIMES, QUALITIES)))
def test_the_sixteen_combinations(speed: str, worth: str) -> None:
    found = ask(speedup=TIMES[speed], quality=QUALITIES[worth])
    assert (found.label, found.time_class, found.quality_class) == (EXPECTED[speed, worth], speed, worth)
    assert TABLE[speed][worth] == found.label.removesuffix(" (bounded by 2.0 %)")
    assert "n=5" in found.sentence
    assert "nan" not in found.sentence


def test_a_sentence_has_the_numbers() -> None:
    assert ask().sentence == (
        "x1.10 [1.05, 1.15] (n=5) in CPU time: faster beyond the noise floor of 2.0 %; "
        "eval/accuracy +0.020 [+0.010, +0.030] (n=5): better."
    )


def test_no_complete_trial_is_failed_whatever_else_holds() -> None:
    found = ask(counts=Counts(5, 0, 2, 3), equals_baseline=True, red=(RED,), speedup=Interval())
    assert found == Verdict("FAILED", "No trial is complete: 3 of 5 diverged and 2 of 5 failed.")


def test_an_arm_that_has_not_ended_yet_has_no_pairs() -> None:
    found = ask(counts=Counts(5, 0, 0, 0), speedup=Interval(), quality=Interval())
    assert found == Verdict("NO PAIRS", "No trial has ended yet: 0 of 5 complete.")


def test_an_arm_whose_methods_all_did_nothing_is_a_second_baseline() -> None:
    assert ask(equals_baseline=True, equals="none", red=(RED,)).label == "NO EFFECT BY CONSTRUCTION"


def test_an_arm_some_of_whose_methods_did_nothing_is_judged_and_names_what_it_equals() -> None:
    found = ask(equals="ema")
    assert found.label == "FASTER AND BETTER"
    assert found.sentence.endswith("it equals ema.")


@pytest.mark.parametrize("side", ["speedup", "quality"])
def test_fewer_than_two_pairs_on_either_axis_is_no_pairs(side: str) -> None:
    found = ask(red=(RED,), time_missing="2 pairs resumed", **{side: Interval(1.1, None, None, 1)})
    assert found.label == "NO PAIRS"
    assert found.sentence == (
        "1 pair with the baseline where at least 2 are needed (5 of 5 trials complete; 2 pairs resumed)."
    )


def test_a_red_guard_withholds_with_its_sentence() -> None:
    assert ask(red=(RED,), eps=None) == Verdict("WITHHELD", "The machine was shared.")


@pytest.mark.parametrize(("eps", "pairs"), [(None, 0), (None, 1), (0.02, 1)])
def test_without_two_aa_pairs_there_is_no_floor_to_judge_by(eps: float | None, pairs: int) -> None:
    found = ask(eps=eps, aa_pairs=pairs)
    assert found.label == "WITHHELD"
    assert "No noise floor" in found.sentence


def test_a_lost_trial_on_either_side_withholds_with_its_count() -> None:
    found = ask(counts=Counts(5, 4, 0, 1))
    assert found.label == "WITHHELD"
    assert "1 of 5 diverged" in found.sentence
    assert "the baseline's trials 2 of 5 failed" in ask(baseline_counts=Counts(5, 3, 2, 0)).sentence


def test_classes_at_their_edges() -> None:
    up = math.exp(EPS)
    assert time_class(Interval(1.1, up, 1.2, 5), EPS) == "UNRESOLVED"
    assert time_class(Interval(1.0, 1 / up, up, 5), EPS) == "SAME"
    assert time_class(Interval(1.0, None, None, 1), EPS) == "UNRESOLVED"
    assert quality_class(Interval(0.0, -0.005, 0.1, 5), 0.005) == "undecided"
    assert quality_class(Interval(-0.002, -0.004, -0.001, 5), 0.005) == "equal or not worse"
    assert quality_class(Interval(), 0.005) == "undecided"
