"""Each guard: what triggers it and what does not, and that an empty table never breaks it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from expkit.analysis import guards
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
    assert guards.target_before_data(TARGET).light == "green"
    late = guards.target_before_data(dataclasses.replace(TARGET, exploratory=True))
    assert (late.light, late.sentence) == ("amber", "TARGET SET AFTER DATA: exploratory.")
    assert guards.target_before_data(dataclasses.replace(TARGET, value=None)).light == "amber"


def test_the_noise_floor() -> None:
    assert guards.aa_floor(aa_floor([1.0, 1.01, 0.99], [1.0, 0.99, 1.0]), "cpu_s").light == "green"
    differs = guards.aa_floor(aa_floor([1.0, 1.0, 1.0], [1.1, 1.11, 1.09]), "cpu_s")
    assert differs.light == "amber"
    assert differs.number is not None
    assert differs.number > 0.09  # the bias of 10 % itself, not its small spread
    assert "identical code differs" in differs.sentence
    assert guards.aa_floor(Floor(None, Interval(), 1, None), "cpu_s").light == "red"


def test_a_noise_floor_of_125_percent_is_not_green() -> None:
    noisy = guards.aa_floor(Floor(math.log(2.25), Interval(1.0, 0.44, 2.25, 3, 0.95), 3, True), "cpu_s")
    assert noisy.light == "amber"
    assert noisy.sentence.startswith("Too noisy to tell: A/A ratio x1.00 [0.44, 2.25] (n=3) in CPU time")
    assert noisy.sentence.endswith("noise floor 125 %, so no effect on time below 125 % can be seen.")
    for eps, light in ((math.log(1.19), "green"), (math.log(1.21), "amber")):
        assert guards.aa_floor(Floor(eps, Interval(1.0, 0.9, 1.1, 3, 0.95), 3, True), "cpu_s").light == light


def test_contention_is_red_only_on_a_clock_that_suffers_from_it() -> None:
    assert guards.contention(rows(), "train_s").light == "green"
    shared = rows(clocks={"train_s": 1.6, "cpu_s": 1.0})
    assert guards.contention(shared, "train_s").light == "red"
    assert guards.contention(shared, "cpu_s").light == "amber"
    assert "in 1 of 3 replicates" in guards.contention(shared, "cpu_s").sentence
    assert guards.contention(rows(timing_reasons=("contention",)), "train_s").light == "red"


def test_the_clock_switches_to_cpu_time_only_where_it_can_stand_in() -> None:
    assert guards.headline_clock(rows(), "train_s")[0] == "train_s"
    shared = rows(timing_reasons=("contention",))
    clock, sentence = guards.headline_clock(shared, "train_s")
    assert clock == "cpu_s"
    assert "shared during 1 of 3 replicates" in sentence
    assert guards.headline_clock([dataclasses.replace(r, threads=2) for r in shared], "train_s")[0] == "train_s"
    assert guards.headline_clock([dataclasses.replace(r, device="cuda:0") for r in shared], "train_s")[0] == "train_s"
    assert guards.headline_clock([], "train_s")[0] == "train_s"


def test_threads_make_no_contention_of_their_own() -> None:
    busy = [dataclasses.replace(r, threads=2, clocks={"train_s": 1.0, "cpu_s": 0.5}) for r in rows()]
    assert guards.contention(busy, "train_s").light == "green"


def test_drift_is_counted_and_named_but_never_red() -> None:
    assert guards.drift(rows()).light == "green"
    found = guards.drift(rows(timing_reasons=("drift",)))
    assert (found.light, found.number) == ("amber", 1)
    assert "cccccccccccc r0" in found.sentence


@pytest.mark.parametrize("reason", ["resumed", "shared"])
def test_timing_that_is_not_a_trial_s_own(reason: str) -> None:
    assert guards.own_timing(rows()).light == "green"
    assert guards.own_timing(rows(timing_reasons=(reason,))).light == "amber"
    assert guards.own_timing([dataclasses.replace(CLEAN, timing_reasons=(reason,))]).light == "red"


def test_blocks() -> None:
    assert guards.blocks_complete(rows(block=1)).light == "green"
    found = guards.blocks_complete(rows(block=1, state="running"))
    assert (found.light, found.number, found.sentence) == ("amber", 0.5, "1 of 2 blocks complete.")


@pytest.mark.parametrize("state", ["failed", "diverged"])
def test_failures(state: str) -> None:
    assert guards.failures(rows(state="running")).light == "green"
    found = guards.failures(rows(state=state, arm="ema"))
    assert (found.light, found.number) == ("amber", 1)
    assert "in ema" in found.sentence
    assert guards.failures([dataclasses.replace(CLEAN, state=state)]).light == "red"


def test_a_failed_repeat_of_a_complete_trial_is_no_failed_trial() -> None:
    assert guards.failures([CLEAN, dataclasses.replace(CLEAN, replicate=1, state="failed")]).light == "green"


def test_methods_that_did_nothing() -> None:
    assert guards.methods_effective({"ema": frozenset()}).light == "green"
    found = guards.methods_effective({"ema": frozenset(), "blurpool": frozenset({"blurpool"})})
    assert found.light == "amber"
    assert found.sentence == "blurpool did nothing in 1 arm: blurpool. No credit for that."


def test_settings_hosts_and_code() -> None:
    assert guards.one_setting(rows()).light == "green"
    assert guards.one_setting(rows(setting="other")).light == "amber"
    assert "2 hosts (g and h)" in guards.one_setting(rows(host="g")).sentence
    assert guards.one_code(rows()).light == "green"
    assert guards.one_code(rows(code_sha="d" * 12)).light == "amber"
    assert guards.one_code(rows(dirty=True)).light == "amber"


def test_an_arm_with_code_of_its_own_is_no_other_version_of_the_code() -> None:
    with_own = rows(code_sha="d" * 12, sources={"expkit": "c" * 12, "mylab.noise": "a" * 12})
    plain = [dataclasses.replace(r, sources={"expkit": "c" * 12}) for r in with_own[:2]]
    assert guards.one_code([*plain, with_own[2]]).light == "green"
    edited = dataclasses.replace(with_own[2], sources={"expkit": "c" * 12, "mylab.noise": "b" * 12})
    found = guards.one_code([*plain, with_own[2], edited])
    assert (found.light, found.number) == ("amber", 2)
    assert found.sentence == f"Code versions are mixed: 2 versions of mylab.noise: {'a' * 12} and {'b' * 12}."


def test_resolution_and_hits() -> None:
    fine = time_to_target(range(1, 101), range(1, 101), 90, rule="first")
    coarse = time_to_target([1, 2, 3], [0, 0, 1], 0.5, rule="first")
    miss = Crossing(False, None, None, None, False, 3.0)
    assert guards.resolution([fine, miss]).light == "green"
    found = guards.resolution([coarse])
    assert (found.light, found.number) == ("amber", 0.4)
    assert guards.hits(5, 5).light == "green"
    assert guards.hits(3, 5).sentence.startswith("2 of 5 trials never reached")


def test_nothing_breaks_on_an_empty_table() -> None:
    every = [guard([]) for guard in guards.OF_REPLICATES]
    every += [guards.contention([], "train_s"), guards.methods_effective({}), guards.resolution([]), guards.hits(0, 0)]
    assert all("nan" not in g.sentence and g.sentence.endswith(".") for g in every)
    assert guards.red(every) == []
    assert sum(guards.lights(every).values()) == len(every)
