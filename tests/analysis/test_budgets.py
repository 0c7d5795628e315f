"""Time at equal quality and the front, from studies of arms at several budgets."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from expkit.analysis import phrases
from expkit.analysis.budgets import budget_of, equal_quality
from expkit.analysis.fronts import fronts
from expkit.analysis.replicate import Replicate
from tests.analysis.studies import study_of

LABELS = [f"{arm} trainer.ssr={budget}" for budget in ("0.25", "0.5", "1.0") for arm in ("none", "ema")]


def outcome(label: str, seed: int, rng: np.random.Generator) -> tuple[float, float]:
    """The arm reaches any quality in five sixths of the baseline's time; q = 0.8 + 0.05 ln u."""
    budget = float(label.rpartition("=")[2])
    seconds = 10 * budget * math.exp(rng.normal(0, 0.005))
    ahead = math.log(1.2) if label.startswith("ema") else 0.0
    return seconds, 0.8 + 0.05 * (math.log(seconds) + ahead) + 0.001 * math.sin(seed) + rng.normal(0, 0.0005)


def test_a_budget_is_read_off_the_label() -> None:
    assert budget_of("ema optimizer.sgd.lr=1.0 trainer.ssr=0.5") == ("ema optimizer.sgd.lr=1.0", 0.5)
    assert budget_of("ema trainer.ssr=1.0") == ("ema", 1.0)
    assert budget_of("ema optimizer.sgd.lr=1.0") == ("ema optimizer.sgd.lr=1.0", None)
    assert budget_of("none") == ("none", None)


def test_the_speedup_at_equal_quality_is_found_with_its_range() -> None:
    [found] = equal_quality(study_of(LABELS, range(5), outcome), [0.88, 0.99])
    assert (found.arm, found.budgets, found.seeds) == ("ema", (0.25, 0.5, 1.0), 5)
    assert found.overlap is not None
    assert (found.at[0].quality, found.at[0].preset) == (0.88, True)
    assert [at.preset for at in found.at] == [True, False, False]
    for at in found.at:
        assert at.speedup.lo is not None and at.speedup.hi is not None
        assert at.speedup.lo < 1.2 < at.speedup.hi
        assert at.baseline_s / at.arm_s == pytest.approx(at.speedup.value)
        assert at.smooth == pytest.approx(1.2, rel=0.1)
    assert found.least is not None and found.greatest is not None
    assert found.least <= 1.2 <= found.greatest
    assert found.sentence.startswith(
        f"ema: {phrases.times(found.least)} to {phrases.times(found.greatest)} at equal eval/accuracy over 0.85"
    )
    assert found.gains[0].difference.value == pytest.approx(0.05 * math.log(1.2), abs=0.003)


def cheap(label: str, seed: int, rng: np.random.Generator) -> tuple[float, float]:
    """An arm that takes 0.7 of the seconds for what the baseline has in a quarter of them."""
    seconds, quality = outcome(label, seed, rng)
    if label.startswith("ema"):
        return 0.7 * seconds, quality + 0.05 * math.log(0.25 / 1.2)
    return seconds, quality


def test_a_saving_that_a_shorter_baseline_has_too_is_told_with_its_bound() -> None:
    study = study_of(LABELS, range(5), cheap)
    [found] = equal_quality(study)
    assert [(one.budget, one.shorter) for one in found.outrun] == [(1.0, 0.5)] if study.delta == 0 else True
    most = found.outrun[-1]
    assert (most.budget, most.at_most.n) == (1.0, 5)
    assert most.at_most.hi is not None and most.at_most.hi < 1
    assert most.at_most.value == pytest.approx(most.baseline_s / most.seconds)
    assert most.gain.lo is not None and most.gain.lo > -study.delta
    assert found.sentence.startswith("A baseline is faster than ema and not worse at ")
    assert f"at equal quality the arm is no faster than {phrases.factor(most.at_most)}. " in found.sentence
    assert equal_quality(study_of(LABELS, range(5), outcome))[0].outrun == ()
    assert equal_quality(study_of(LABELS, range(1), cheap))[0].outrun == ()  # one seed has no interval


def test_a_metric_to_minimise_gives_the_same_speedups() -> None:
    def turned(label: str, seed: int, rng: np.random.Generator) -> tuple[float, float]:
        seconds, quality = outcome(label, seed, rng)
        return seconds, -quality

    [there] = equal_quality(study_of(LABELS, range(5), outcome), [0.88])
    [back] = equal_quality(study_of(LABELS, range(5), turned, mode="min"), [-0.88])
    assert [at.speedup for at in back.at] == [at.speedup for at in there.at]
    assert [at.quality for at in back.at] == [-at.quality for at in there.at]
    assert back.quality == pytest.approx([-q for q in there.quality])
    assert back.gains == there.gains
    assert back.overlap is not None and there.overlap is not None
    assert back.overlap == pytest.approx((-there.overlap[1], -there.overlap[0]))


def test_curves_that_do_not_meet_say_so() -> None:
    def apart(label: str, seed: int, rng: np.random.Generator) -> tuple[float, float]:
        seconds, quality = outcome(label, seed, rng)
        return seconds, quality + (1.0 if label.startswith("ema") else 0.0)

    [found] = equal_quality(study_of(LABELS, range(3), apart))
    assert (found.overlap, found.at, found.least) == (None, (), None)
    assert found.sentence.startswith("No common quality: the baseline's budgets give 0.8")
    assert found.gains


def test_seeds_with_a_hole_are_left_out_and_one_budget_is_no_curve() -> None:
    def hole(one: Replicate) -> Replicate:
        lost = one.arm == "ema trainer.ssr=0.5" and one.seed == 2
        return dataclasses.replace(one, state="failed", quality=None) if lost else one

    [found] = equal_quality(study_of(LABELS, range(5), outcome, change=hole))
    assert found.seeds == 4
    assert equal_quality(study_of(["none", "ema"], range(3), lambda *_: (1.0, 0.9))) == ()

    def early(one: Replicate) -> Replicate:
        done = one.arm.endswith("0.25")
        return one if done else dataclasses.replace(one, state="pending", quality=None)

    [found] = equal_quality(study_of(LABELS, range(2), outcome, change=early))
    assert found.sentence == "No seed has a whole run of arm and baseline at two budgets yet."


def test_there_is_a_front_per_parameter_point() -> None:
    found = fronts(study_of(LABELS, range(5), outcome))
    assert [front.point for front in found] == ["trainer.ssr=0.25", "trainer.ssr=0.5", "trainer.ssr=1.0"]
    for front in found:
        assert dict(front.probability)[f"ema {front.point}"] == 1
        assert front.seeds == 5
    assert fronts(study_of(["none", "ema"], range(2), lambda *_: (1.0, 0.9)))[0].probability == ()
    assert fronts(study_of(["none"], range(3), lambda *_: (1.0, 0.9))) == ()
    assert fronts(study_of(["ema"], range(3), lambda *_: (1.0, 0.9))) == ()
