"""Arms' labels, and which time may be compared with which."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from expkit.analysis.pairs import aa_pairs, dropped_sentence, quality_pairs, time_pairs
from expkit.analysis.replicate import Replicate, counts, label_of, methods_of, parameters_of, sister_levels, split_arm
from expkit.analysis.verdict import Counts


def replicate(id: str, block: int, seconds: float, number: int = 0, **more: Any) -> Replicate:
    clocks = {"train_s": seconds, "cpu_s": seconds / 2}
    made = Replicate(id, number, "none", "arm", block, 0, "complete", setting="s", driver="d", threads=2, clocks=clocks)
    return dataclasses.replace(made, **more)


BASE = [replicate("b0", 0, 4.0), replicate("b0", 0, 1.0, 1), replicate("b1", 1, 3.0)]


def test_labels_of_arms() -> None:
    label = "colout[p_row=0.1, p_col=0.1]+ema optimizer.sgd.lr=1.0 optimizer=adamw[lr=0.1, b=2]"
    assert methods_of(label) == {"colout[p_row=0.1, p_col=0.1]", "ema"}
    assert parameters_of('none optimizer={"adamw": {"lr": 1.0}} seed=1') == {
        "optimizer": '{"adamw": {"lr": 1.0}}', "seed": "1",
    }  # fmt: skip
    assert parameters_of(label) == {"optimizer.sgd.lr": "1.0", "optimizer": "adamw[lr=0.1, b=2]"}
    assert (methods_of("none"), split_arm("none lr=1")) == (frozenset(), ("none", "lr=1"))
    assert label_of(methods_of("b+a"), "lr=1") == "a+b lr=1"
    assert label_of(()) == "none"
    assert sister_levels(["colout[p=0.1]", "ema", "colout[p=0.2]"]) == [frozenset({"colout[p=0.1]", "colout[p=0.2]"})]


def test_the_baseline_s_time_is_the_geometric_mean_of_its_replicates() -> None:
    pairs = time_pairs([replicate("a0", 0, 1.0), replicate("a1", 1, 1.5)], BASE, "train_s")
    assert pairs.base == pytest.approx((2, 3))
    assert pairs.arm == pytest.approx((1, 1.5))
    assert pairs.log_speedups() == pytest.approx({0: math.log(2), 1: math.log(2)})


@pytest.mark.parametrize(
    ("changes", "clock", "why"),
    [
        ({"timing_reasons": ("resumed",)}, "cpu_s", "resumed"),
        ({"timing_reasons": ("shared",)}, "cpu_s", "shared"),
        ({"timing_reasons": ("contention",)}, "train_s", "contention"),
        ({"setting": "other"}, "train_s", "without a baseline of the same setting and driver run"),
        ({"driver": "later"}, "train_s", "without a baseline of the same setting and driver run"),
        ({"clocks": {}}, "train_s", "without a time"),
    ],
)
def test_what_is_not_compared_is_counted(changes: dict[str, Any], clock: str, why: str) -> None:
    pairs = time_pairs([replicate("a0", 0, 1.0, **changes), replicate("a1", 1, 1.0)], BASE, clock)
    assert (pairs.blocks, pairs.dropped) == ((1,), {why: 1})
    assert dropped_sentence(pairs.dropped) == f"1 block {why}"


@pytest.mark.parametrize(("reason", "clock"), [("contention", "cpu_s"), ("drift", "train_s")])
def test_contention_keeps_cpu_time_and_drift_keeps_all(reason: str, clock: str) -> None:
    assert len(time_pairs([replicate("a0", 0, 1.0, timing_reasons=(reason,))], BASE, clock).blocks) == 1


def test_an_arm_that_ran_again_in_a_later_driver_run_is_compared_with_that_run_s_baseline() -> None:
    later = {"driver": "later"}
    base = [*BASE, replicate("b0", 0, 9.0, 2, **later)]
    pairs = time_pairs([replicate("a0", 0, 4.5, 1, **later)], base, "train_s")
    assert (pairs.base, pairs.arm) == (pytest.approx((9,)), pytest.approx((4.5,)))


def test_unfinished_replicates_pair_with_nothing() -> None:
    assert time_pairs([replicate("a0", 0, 1.0, state="running")], BASE, "train_s").blocks == ()
    assert time_pairs([], [], "train_s").dropped == {}


def test_aa_pairs_are_two_replicates_of_one_trial_in_one_session() -> None:
    assert aa_pairs(BASE, "train_s") == ([4.0], [1.0])
    apart = [BASE[0], dataclasses.replace(BASE[1], driver="later")]
    assert aa_pairs(apart, "train_s") == ([], [])
    contended = [BASE[0], dataclasses.replace(BASE[1], timing_reasons=("contention",))]
    assert aa_pairs(contended, "train_s") == ([], [])
    assert aa_pairs(contended, "cpu_s") == ([2.0], [0.5])


def test_quality_takes_one_value_a_trial() -> None:
    base = [dataclasses.replace(b, quality=0.8 + b.replicate) for b in BASE]
    arm = [replicate("a0", 0, 1.0, quality=0.9), replicate("a1", 1, 1.0, quality=math.nan)]
    q0, qc = quality_pairs(arm, base)
    assert (q0.tolist(), qc.tolist()) == ([0.8], [0.9])


def test_trials_are_counted_not_replicates() -> None:
    rows = [*BASE, replicate("c", 0, 1, state="failed"), replicate("c", 0, 1, 1, state="diverged"),
            replicate("d", 0, 1, state="lost")]  # fmt: skip
    assert counts(rows) == Counts(4, 2, 0, 1)
