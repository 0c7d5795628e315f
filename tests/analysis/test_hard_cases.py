"""Whatever a sweep looks like: a value or a sentence, never a traceback, never nan. Studies in memory, arms by arms."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import time
from collections.abc import Callable

import numpy as np
import pytest

from expkit.analysis.arms import arms
from expkit.analysis.budgets import equal_quality
from expkit.analysis.credit import credited
from expkit.analysis.fronts import fronts
from expkit.analysis.model import Arm
from expkit.analysis.noise import aa_floor
from expkit.analysis.pairs import aa_pairs
from expkit.analysis.replicate import Replicate
from expkit.analysis.study import Study
from tests.analysis.studies import study_of

LABELS = ["none", "a", "b", "a+b"]
BUDGETS = [f"{arm} trainer.ssr={budget}" for budget in ("0.5", "1.0") for arm in LABELS]
Change = Callable[[Replicate], Replicate | None]


def usual(label: str, seed: int, rng: np.random.Generator) -> tuple[float, float]:
    return 10 * math.exp(rng.normal(-0.1 * ("a" in label), 0.02)), 0.82 + rng.normal(0, 0.01)


def replaced(**changes: object) -> Change:
    return lambda one: dataclasses.replace(one, **changes)  # type: ignore[arg-type]


def when(condition: Callable[[Replicate], bool], **changes: object) -> Change:
    return lambda one: dataclasses.replace(one, **changes) if condition(one) else one  # type: ignore[arg-type]


def all_of(study: Study) -> tuple[Arm, ...]:
    """Everything that is computed of a study, each value looked at."""
    floor = aa_floor(*aa_pairs(study.replicates, study.clock))
    found = arms(study, floor, [])
    effects, credit = credited(study, floor)
    for part in (found, fronts(study), equal_quality(study), effects, (credit, study.pooling)):
        json.dumps([dataclasses.asdict(one) for one in part], allow_nan=False)  # raises on nan and inf
    for arm in found:
        for text in (arm.sentence, arm.verdict, arm.reach.sentence, arm.checks.sentence):
            assert not {"nan", "inf", "None"} & set(text.replace("[", " ").replace("x", " ").replace(",", " ").split())
        assert arm.sentence.endswith(".")
    return found


CASES: dict[str, tuple[Change, int]] = {
    "nothing has run": (replaced(state="pending", quality=None, clocks={}), 3),
    "it runs": (when(lambda r: (r.seed or 0) > 0, state="running", quality=None), 3),
    "all failed": (replaced(state="failed", quality=None), 3),
    "no baseline": (lambda one: None if one.arm.startswith("none") else one, 3),
    "the baseline failed": (when(lambda r: r.arm.startswith("none"), state="failed", quality=None), 3),
    "one seed": (lambda one: one, 1),
    "two seeds": (lambda one: one, 2),
    "quality is nan": (replaced(quality=math.nan), 3),
    "quality of one arm is inf": (when(lambda r: r.arm.startswith("a"), quality=math.inf), 3),
    "quality is 0": (replaced(quality=0.0), 3),
    "quality is negative": (replaced(quality=-5.0), 3),
    "all is equal": (replaced(quality=0.9, clocks={"train_s": 3.0, "cpu_s": 3.0}), 3),
    "the clock reads 0": (replaced(clocks={"train_s": 0.0, "cpu_s": 0.0}), 3),
    "the clock is nan": (replaced(clocks={"train_s": math.nan, "cpu_s": None}), 3),
    "times are huge": (when(lambda r: r.arm.startswith("a"), clocks={"train_s": 1e300, "cpu_s": 1e-300}), 3),
    "mixed hosts": (when(lambda r: (r.seed or 0) % 2 == 1, host="other", setting="other"), 4),
    "each arm has a host": (lambda one: dataclasses.replace(one, setting=one.arm), 3),
    "mixed code": (when(lambda r: r.arm.startswith("b"), code_sha="other"), 3),
    "all resumed": (replaced(timing_reasons=("resumed",)), 3),
    "metrics cannot be read": (when(lambda r: r.arm.startswith("a"), unreadable=True), 3),
    "seeds are not known": (replaced(seed=None), 3),
}


@pytest.mark.parametrize("labels", [LABELS, BUDGETS], ids=["one budget", "two budgets"])
@pytest.mark.parametrize("case", CASES)
def test_there_is_a_value_or_a_sentence(case: str, labels: list[str]) -> None:
    change, seeds = CASES[case]
    for mode, target in (("max", 0.82), ("min", 0.82), ("max", None)):
        all_of(study_of(labels, range(seeds), usual, change=change, mode=mode, target=target))


def test_an_empty_study() -> None:
    assert all_of(study_of([], [], usual)) == ()


def test_where_nobody_reaches_the_target_all_arms_say_so() -> None:
    found = all_of(study_of(LABELS, range(4), usual, target=0.99))
    assert {arm.reach.hits for arm in found} == {0}
    assert {arm.target_speedup.value for arm in found} == {None}
    assert found[1].reach.difference_s.value is not None
    assert found[1].reach.sentence.startswith("0 of 4 trials reached the target; a miss counts as later")


def test_where_all_is_equal_the_ratio_is_one_exactly() -> None:
    change, _ = CASES["all is equal"]
    arm = all_of(study_of(LABELS, range(4), usual, change=change))[1]
    assert (arm.speedup.lo, arm.speedup.value, arm.speedup.hi) == (1, 1, 1)
    assert (arm.checks.p, arm.checks.p_sign_flip, arm.checks.rho) == (1, 1, None)
    assert arm.checks.hodges_lehmann.value == 1
    assert arm.reach.difference_s.value == 0


def test_a_metric_to_minimise_is_the_mirror_image() -> None:
    def negative(label: str, seed: int, rng: np.random.Generator) -> tuple[float, float]:
        seconds, quality = usual(label, seed, rng)
        return seconds, -quality

    there = all_of(study_of(LABELS, range(4), usual, target=0.82))
    back = all_of(study_of(LABELS, range(4), negative, target=-0.82, mode="min"))
    for one, other in zip(there, back, strict=True):
        assert one.reach == other.reach
        assert one.quality_difference == other.quality_difference
        assert one.target_speedup == other.target_speedup


@pytest.mark.parametrize("methods", [6, pytest.param(10, marks=pytest.mark.soak)])
def test_up_to_1024_arms_of_10_seeds_with_misses_take_seconds(methods: int) -> None:
    names = [f"m{i}" for i in range(methods)]
    labels = ["+".join(c) or "none" for k in range(methods + 1) for c in itertools.combinations(names, k)]

    def outcome(label: str, seed: int, rng: np.random.Generator) -> tuple[float, float]:
        return 10 * math.exp(rng.normal(0, 0.02)), 0.8 + rng.normal(0.01, 0.01)

    begin = time.process_time()
    found = all_of(study_of(labels, range(10), outcome, target=0.8))
    assert len(found) == 2**methods
    assert sum(arm.reach.hits < arm.reach.n for arm in found) > len(found) / 2
    assert time.process_time() - begin < 30  # 9 s for 1,024, most of it likelihoods
