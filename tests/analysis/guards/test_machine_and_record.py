"""Guards of machine and record: what triggers each and what does not."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest

from expkit.analysis.guards import evaluation, machine, methods, record, target
from expkit.analysis.model import Interval, TargetInfo
from expkit.analysis.noise import Floor, aa_floor
from expkit.analysis.replicate import Replicate
from expkit.analysis.time_to_target import Crossing, time_to_target

CLEAN = Replicate(
    "a" * 12, 0, "none", "baseline", 0, 0, "complete", device="cpu", setting="s", host="h", code_sha="c" * 12,
    clocks={"train_s": 1.05, "cpu_s": 1.0}, effective={"ema": True},
)  # fmt: skip
TARGET = TargetInfo("eval/accuracy", "max", 0.84, "lowest_final", "pilot", sentence="Fixed.")


def rows(**changes: Any) -> list[Replicate]:
    """Two clean replicates and one that differs."""
    return [CLEAN, dataclasses.replace(CLEAN, id="b" * 12), dataclasses.replace(CLEAN, id="c" * 12, **changes)]


def test_the_target() -> None:
    assert target.target_before_data(TARGET).light == "green"
    late = target.target_before_data(dataclasses.replace(TARGET, exploratory=True))
    assert (late.light, late.sentence) == ("amber", "TARGET SET AFTER DATA: exploratory.")
    assert target.target_before_data(dataclasses.replace(TARGET, value=None)).light == "amber"
    assert target.target_before_data(dataclasses.replace(TARGET, of_another=True)).light == "amber"


def test_the_noise_floor() -> None:
    assert machine.aa_floor(aa_floor([1.0, 1.01, 0.99], [1.0, 0.99, 1.0]), "cpu_s").light == "green"
    differs = machine.aa_floor(aa_floor([1.0, 1.0, 1.0], [1.1, 1.11, 1.09]), "cpu_s")
    assert differs.light == "amber"
    assert differs.number is not None
    assert differs.number > 0.09  # the bias of 10 % itself, not its small spread
    assert "identical code differs" in differs.sentence
    assert machine.aa_floor(Floor(None, Interval(), 1, None), "cpu_s").light == "red"


def test_a_noise_floor_of_125_percent_is_not_green() -> None:
    noisy = machine.aa_floor(Floor(math.log(2.25), Interval(1.0, 0.44, 2.25, 3, 0.95), 3, True), "cpu_s")
    assert noisy.light == "amber"
    assert noisy.sentence.startswith("Too noisy to tell: A/A ratio x1.00 [0.44, 2.25] (n=3) in CPU time")
    assert noisy.sentence.endswith("noise floor 125 %, so no effect on time below 125 % can be seen.")
    for eps, light in ((math.log(1.19), "green"), (math.log(1.21), "amber")):
        assert machine.aa_floor(Floor(eps, Interval(1.0, 0.9, 1.1, 3, 0.95), 3, True), "cpu_s").light == light


def test_contention_is_red_only_on_a_clock_that_suffers_from_it() -> None:
    assert machine.contention(rows(), "train_s").light == "green"
    shared = rows(clocks={"train_s": 1.6, "cpu_s": 1.0})
    assert machine.contention(shared, "train_s").light == "red"
    assert machine.contention(shared, "cpu_s").light == "amber"
    assert "in 1 of 3 replicates" in machine.contention(shared, "cpu_s").sentence
    assert machine.contention(rows(timing_reasons=("contention",)), "train_s").light == "red"


def test_the_clock_switches_to_cpu_time_only_where_it_can_stand_in() -> None:
    assert machine.headline_clock(rows(), "train_s")[0] == "train_s"
    shared = rows(timing_reasons=("contention",))
    clock, sentence = machine.headline_clock(shared, "train_s")
    assert clock == "cpu_s"
    assert "shared during 1 of 3 replicates" in sentence
    assert machine.headline_clock([dataclasses.replace(r, threads=2) for r in shared], "train_s")[0] == "train_s"
    assert machine.headline_clock([dataclasses.replace(r, device="cuda:0") for r in shared], "train_s")[0] == "train_s"
    assert machine.headline_clock([], "train_s")[0] == "train_s"


def test_threads_make_no_contention_of_their_own() -> None:
    busy = [dataclasses.replace(r, threads=2, clocks={"train_s": 1.0, "cpu_s": 0.5}) for r in rows()]
    assert machine.contention(busy, "train_s").light == "green"


def test_drift_is_counted_and_named_but_never_red() -> None:
    assert machine.drift(rows()).light == "green"
    found = machine.drift(rows(timing_reasons=("drift",)))
    assert (found.light, found.number) == ("amber", 1)
    assert "cccccccccccc r0" in found.sentence


@pytest.mark.parametrize("reason", ["resumed", "shared"])
def test_timing_that_is_not_a_trial_s_own(reason: str) -> None:
    assert machine.own_timing(rows()).light == "green"
    assert machine.own_timing(rows(timing_reasons=(reason,))).light == "amber"
    assert machine.own_timing([dataclasses.replace(CLEAN, timing_reasons=(reason,))]).light == "red"


def test_blocks() -> None:
    assert record.blocks_complete(rows(block=1)).light == "green"
    found = record.blocks_complete(rows(block=1, state="running"))
    assert (found.light, found.number, found.sentence) == ("amber", 0.5, "1 of 2 blocks complete.")


@pytest.mark.parametrize("state", ["failed", "diverged"])
def test_failures(state: str) -> None:
    assert record.failures(rows(state="running")).light == "green"
    found = record.failures(rows(state=state, arm="ema"))
    assert (found.light, found.number) == ("amber", 1)
    assert "in ema" in found.sentence
    assert record.failures([dataclasses.replace(CLEAN, state=state)]).light == "red"


def test_a_failed_repeat_of_a_complete_trial_is_no_failed_trial() -> None:
    assert record.failures([CLEAN, dataclasses.replace(CLEAN, replicate=1, state="failed")]).light == "green"


def test_methods_that_did_nothing() -> None:
    assert methods.methods_effective({"ema": frozenset()}).light == "green"
    found = methods.methods_effective({"ema": frozenset(), "blurpool": frozenset({"blurpool"})})
    assert found.light == "amber"
    assert found.sentence == "blurpool did nothing in 1 arm: blurpool. No credit for that."


def test_settings_hosts_and_code() -> None:
    assert record.one_setting(rows()).light == "green"
    assert record.one_setting(rows(setting="other")).light == "amber"
    assert "2 hosts (g and h)" in record.one_setting(rows(host="g")).sentence
    assert record.one_code(rows()).light == "green"
    assert record.one_code(rows(code_sha="d" * 12)).light == "amber"
    assert record.one_code(rows(dirty=True)).light == "amber"


def test_an_arm_with_code_of_its_own_is_no_other_version_of_the_code() -> None:
    with_own = rows(code_sha="d" * 12, sources={"expkit": "c" * 12, "mylab.noise": "a" * 12})
    plain = [dataclasses.replace(r, sources={"expkit": "c" * 12}) for r in with_own[:2]]
    assert record.one_code([*plain, with_own[2]]).light == "green"
    edited = dataclasses.replace(with_own[2], sources={"expkit": "c" * 12, "mylab.noise": "b" * 12})
    found = record.one_code([*plain, with_own[2], edited])
    assert (found.light, found.number) == ("amber", 2)
    assert found.sentence == f"Code versions are mixed: 2 versions of mylab.noise: {'a' * 12} and {'b' * 12}."


def test_resolution_and_hits() -> None:
    fine = time_to_target(range(1, 101), range(1, 101), 90, rule="first")
    coarse = time_to_target([1, 2, 3], [0, 0, 1], 0.5, rule="first")
    miss = Crossing(False, None, None, None, False, 3.0)
    assert evaluation.resolution([fine, miss]).light == "green"
    found = evaluation.resolution([coarse])
    assert (found.light, found.number) == ("amber", 0.4)
    assert evaluation.hits(5, 5).light == "green"
    assert evaluation.hits(3, 5).sentence.startswith("2 of 5 trials never reached")


def test_a_baseline_that_became_slower_over_the_sweep_is_drift() -> None:
    hours = [dataclasses.replace(CLEAN, started_utc=f"2026-01-02T{h:02}:00:00Z") for h in range(6)]
    flat = [dataclasses.replace(r, clocks={"cpu_s": 1 + 0.001 * (i % 2)}) for i, r in enumerate(hours)]
    slower = [dataclasses.replace(r, clocks={"cpu_s": 1 + 0.02 * i}) for i, r in enumerate(hours)]
    trend = machine.baseline_trend(slower, "cpu_s")
    assert trend.value == pytest.approx(math.log(1.1), abs=0.01)
    found = machine.drift(slower, trend)
    assert found.light == "amber"
    assert re.fullmatch(r"The machine drifted: baseline \+1\d % \[.*\] over the sweep\.", found.sentence)
    assert machine.drift(flat, machine.baseline_trend(flat, "cpu_s")).light == "green"
    assert machine.baseline_trend(rows(), "cpu_s").value is None  # nobody knows when they started
    assert machine.baseline_trend([], "cpu_s").n == 0


def test_the_same_seed_gives_the_same_curve_or_not() -> None:
    one, other = np.array([0.1, 0.2, math.nan]), np.array([0.1, 0.25, math.nan])
    found = record.same_seed([(one, one.copy()), (other, other)])
    assert (found.light, found.sentence) == ("green", "The same seed reproduces bit-equal curves (2/2).")
    found = record.same_seed([(one, one), (one, other)])
    assert (found.light, found.number) == ("amber", 0.5)
    assert not record.same_seed([]).checked


def test_one_workload_on_one_machine_is_no_claim_beyond() -> None:
    found = record.scope(["mlp on digits"], ["h"])
    assert (found.light, found.sentence) == ("amber", "One workload, one machine: no claim beyond.")
    found = record.scope(["mlp on digits", "resnet on digits"], ["h", "g"])
    assert (found.light, found.sentence) == ("green", "2 workloads, 2 machines: no claim beyond.")
    assert not record.scope([], []).checked


def test_a_speedup_is_the_inverse_of_the_ratio_the_other_way_round() -> None:
    found = record.direction({"ema": (1.386294, 1 / 1.386294), "slow": (0.5, 2.0)})
    assert (found.light, found.number) == ("green", 1.386294)
    assert found.sentence == "Speedup is baseline time / arm time: x1.39 of ema is 28 % less time."
    mean_of_ratios = record.direction({"ema": (1.45457, 0.721296)})  # of public logs: a mean of ratios, and its inverse
    assert (mean_of_ratios.light, mean_of_ratios.number) == ("red", 1)
    assert "depends on the order of words" in mean_of_ratios.sentence
    assert not record.direction({}).checked
    assert record.direction({"slow": (0.5, 2.0)}).sentence.endswith("x0.500 of slow is 100 % more time.")


def test_outliers_are_named_and_kept() -> None:
    """G7: the largest modified z of these times is 6.216, below 14.826."""
    b = [77.933, 77.446, 77.299, 77.194, 77.401, 77.431, 77.149, 77.247, 77.336, 77.186, 77.318, 77.224, 77.225]
    assert machine.modified_z([t - float(np.median(b)) for t in b]).max() == pytest.approx(6.216, abs=5e-4)
    assert machine.modified_z([0.0, 0.0, 5.0]).tolist() == [0, 0, 0]

    def timed(*seconds: float) -> list[Replicate]:
        return [dataclasses.replace(CLEAN, id=f"{i:012x}", clocks={"train_s": s}, device="cuda", arm="ema")
                for i, s in enumerate(seconds)]  # fmt: skip

    assert machine.outliers(timed(*b), "train_s").sentence == "All 13 times lie near the median of their arm."
    far = machine.outliers(timed(*b, 90.0), "train_s")
    assert (far.light, far.number) == ("amber", 1)
    assert far.sentence == "1 of 14 times lies far off the median of the arm, and is kept: 00000000000d r0 of ema."
    assert not machine.outliers(timed(1.0, 2.0), "train_s").checked
