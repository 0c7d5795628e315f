"""Guards of schedule, clock and what was fixed in advance: what triggers each and what does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from expkit.analysis.guards import clock, schedule, target
from expkit.analysis.guards.clock import Beside
from expkit.analysis.load import Evaluations
from expkit.analysis.model import Interval
from expkit.analysis.recipe import Recipe, read
from expkit.analysis.replicate import Replicate

NAMED = {"utc": "2026-01-02T03:00:00Z", "seeds": [1, 2, 3], "metric": "eval/accuracy", "mode": "max",
         "clock": "train_s", "non_inferiority": 0.005}  # fmt: skip
STARTED = "2026-01-02T03:04:00Z"
CONFIG: dict[str, Any] = {
    "model": {"resnet": {"depth": 8}},
    "data": {"train": {"digits": {"split": "train"}}, "eval": {"digits": {"split": "validation"}}},
    "scheduler": {"cosine": {"warmup": "0.1dur"}},
    "algorithms": {"ema": {"half_life": "12ba"}},
    "trainer": {"max_duration": "2ep"},
}


def test_seeds_and_terms_that_were_named_before_the_first_arm_started() -> None:
    found = target.fixed_in_advance([NAMED], STARTED)
    assert (found.light, found.number) == ("green", 3)
    assert found.sentence == (
        "n fixed in advance: 3 seeds, eval/accuracy and its margin were named on 2026-01-02, "
        "before the first arm started."
    )
    assert target.fixed_in_advance([NAMED], None).light == "green"


def test_seeds_that_were_added_after_looking() -> None:
    more = NAMED | {"utc": "2026-01-03T00:00:00Z", "seeds": [1, 2, 3, 4, 5]}
    found = target.fixed_in_advance([NAMED, more], STARTED)
    assert (found.light, found.number) == ("amber", 3)
    assert "n chosen after looking: 3 were named before the first arm started, 5 now" in found.sentence


def test_a_metric_or_margin_that_was_changed_after_looking() -> None:
    other = NAMED | {"utc": "2026-01-03T00:00:00Z", "metric": "eval/f1", "non_inferiority": 0.01}
    found = target.fixed_in_advance([NAMED, other], STARTED)
    assert found.light == "amber"
    assert "the primary metric (from eval/accuracy to eval/f1) and the margin (from 0.005 to 0.01)" in found.sentence
    back = NAMED | {"utc": "2026-01-04T00:00:00Z"}
    assert target.fixed_in_advance([NAMED, other, back], STARTED).light == "green"


def test_a_sweep_of_trials_that_were_there_before_and_a_store_that_does_not_say() -> None:
    assert "n chosen after looking" in target.fixed_in_advance([NAMED], "2026-01-01T00:00:00Z").sentence
    assert target.fixed_in_advance([NAMED], STARTED, asked=True).light == "amber"
    assert not target.fixed_in_advance([], STARTED).checked


def series(*batches: float) -> Evaluations:
    steps = np.array(batches, dtype=float)
    return Evaluations(steps, steps * 8, {"train_s": steps / 2, "wall_s": steps, "cpu_s": steps / 2}, steps / 10)


def run(seed: int, **changes: Any) -> Replicate:
    return dataclasses.replace(Replicate(f"{seed:012}", 0, "ema", "arm", 0, seed, "complete", seed), **changes)


def test_a_run_that_ended_in_the_middle_of_its_schedule_withholds() -> None:
    runs, curves = [run(1), run(2)], {("000000000001", 0): series(1, 16), ("000000000002", 0): series(1, 8)}
    shares = schedule.progress(runs, curves, {"ema": Recipe("2ep")})
    assert shares == {"ema seed 1 r0": 1.0, "ema seed 2 r0": 0.5}
    found = schedule.schedules_ended(shares, ["stopper"])
    assert (found.light, found.number) == ("red", 0.5)
    assert found.sentence == (
        "1 of 2 runs ended before their schedule did (the recipe has stopper): ema seed 2 r0 at 50 %."
    )


def test_whole_schedules_at_one_budget_and_at_several() -> None:
    one = schedule.schedules_ended({"a": 1.0, "b": 0.99})
    assert (one.light, one.number) == ("green", 0.99)
    assert one.sentence.endswith("at one budget, so time at equal quality is not measured.")
    assert "ran at 3 budgets" in schedule.schedules_ended({"a": 1.0}, (), [0.25, 0.5, 1.0]).sentence
    assert not schedule.schedules_ended({}).checked


def test_a_budget_in_batches_is_its_own_plan_and_one_of_another_ratio_no_kin() -> None:
    runs = [run(1), run(2, arm="ema trainer.ssr=0.5")]
    curves = {("000000000001", 0): series(1, 8), ("000000000002", 0): series(1, 8)}
    recipes = {"ema": Recipe("16ba"), "ema trainer.ssr=0.5": Recipe("16ba", 0.5)}
    assert list(schedule.progress(runs, curves, recipes).values()) == [0.5, 1.0]


def test_a_budget_in_seconds_or_samples_is_counted_in_them() -> None:
    """A faster arm does more batches in the same seconds; the slower one has not ended early for that."""
    runs = [run(1), run(2, arm="slow")]
    curves = {("000000000001", 0): series(1, 16), ("000000000002", 0): series(1, 8)}
    curves["000000000002", 0].clocks["train_s"][-1] = 8.0  # type: ignore[index]
    timed = {"ema": Recipe("8sec"), "slow": Recipe("8sec")}
    assert list(schedule.progress(runs, curves, timed).values()) == [1.0, 1.0]
    assert list(schedule.progress(runs, curves, {"ema": Recipe("128sp"), "slow": Recipe("128sp")}).values()) == [1, 0.5]
    assert list(schedule.progress(runs, curves, {"ema": Recipe("9tok"), "slow": Recipe("9tok")}).values()) == [1, 1]


def test_one_unit_for_budget_and_schedules() -> None:
    found = schedule.one_unit({"ema": read(CONFIG)})
    assert (found.light, found.number) == ("green", 1)
    assert found.sentence == (
        "Budget and schedules are in epochs, batches among the methods' own settings; compared at equal epochs."
    )
    timed = read(CONFIG | {"scheduler": {"multi_step": {"milestones": ["30sec", "60sec"]}}})
    found = schedule.one_unit({"ema": timed})
    assert found.light == "amber"
    assert "scheduler.multi_step.milestones.0" in found.sentence
    assert schedule.one_unit({"a": Recipe("2ep"), "b": Recipe("1h")}).light == "red"
    assert schedule.one_unit({"a": Recipe("1h", spans={"warmup": "60sec"})}).light == "green"
    assert not schedule.one_unit({"a": Recipe()}).checked


def test_what_a_recipe_says() -> None:
    found = read(CONFIG | {"callbacks": {"threshold_stopper": {}, "lr_monitor": {}, "py:own:Watch": {}}})
    assert found == Recipe(
        "2ep", 1.0, {"scheduler.cosine.warmup": "0.1dur", "algorithms.ema.half_life": "12ba"}, ("validation",),
        "resnet on digits", ("threshold_stopper",), (),
    )  # fmt: skip
    assert read(CONFIG | {"algorithms": {"mixup": {}, "ema": {}}}).changes_targets == ("mixup",)
    assert read({}) == Recipe()
    labelled = {"data": {"eval": {"a": {"digits": {"split": "test"}}, "b": {"digits": {"split": "validation"}}}}}
    assert read(labelled).splits == ("test", "validation")


def rows(setup: float, evals: float, *, role: str) -> list[Replicate]:
    clocks = {"train_s": 10.0, "setup_s": setup, "compile_s": 0.0, "callbacks_s": 0.1}
    return [run(i, block=i, role=role, clocks=clocks | {"eval_s": evals + 0.001 * i}) for i in range(3)]


def beside(arm: list[Replicate], base: list[Replicate], parts: tuple[str, ...]) -> Beside:
    return clock.beside_the_clock(clock.by_blocks(arm, parts), clock.by_blocks(base, parts))


def test_work_beside_the_clock() -> None:
    base, clean = rows(1, 2, role="baseline"), rows(1, 2, role="arm")
    same = beside(clean, base, clock.UNBILLED)
    more = beside(rows(1, 3, role="arm"), base, clock.UNBILLED)
    assert clock.off_the_clock({"ema": same}).light == "green"
    found = clock.off_the_clock({"ema": same, "heavy": more})
    assert (found.light, found.number) == ("amber", pytest.approx(0.1))
    assert found.sentence.endswith("take longer than in the baseline: heavy 1.00 s a trial (10 %).")
    assert not clock.off_the_clock({"ema": beside([], base, clock.UNBILLED)}).checked


def test_setup_that_would_move_the_ratio() -> None:
    base = rows(1, 2, role="baseline")
    found = clock.setup({"blurpool": beside(rows(3, 2, role="arm"), base, clock.SETUP)}, 1.0, 0.01)
    assert (found.light, found.number) == ("amber", pytest.approx(11 / 13))
    assert found.sentence == "Setup excluded: 1.00 s baseline, 3.00 s blurpool; including it x0.846 (without x1.00)."
    same = beside(rows(1, 2, role="arm"), base, clock.SETUP)
    assert clock.setup({"ema": same}, 1.0, 0.01).light == "green"
    moved = beside(rows(1.5, 2, role="arm"), base, clock.SETUP)
    assert clock.setup({"ema": moved}, 1.0, 0.10).light == "green"  # within the noise floor
    assert not clock.setup({"ema": Beside(Interval(), 0.0)}, 1.0, 0.01).checked


def test_a_clock_that_ran_backwards_withholds() -> None:
    good = series(1, 8, 16)
    back = dataclasses.replace(good, clocks=good.clocks | {"train_s": np.array([1.0, 5.0, 4.0])})
    beyond = dataclasses.replace(good, clocks=good.clocks | {"train_s": np.array([1.0, 9.0, 17.0])})
    curves = {("000000000001", 0): good, ("000000000002", 0): back, ("000000000003", 0): beyond}
    assert clock.clocks_run([run(1)], curves).light == "green"
    assert clock.clocks_run([run(1), run(2)], curves).light == "red"
    found = clock.clocks_run([run(1), run(2), run(3)], curves)
    assert (found.light, found.number) == ("red", 2)
    assert clock.clocks_run([run(3, timing_reasons=("resumed",))], curves).light == "green"
    assert not clock.clocks_run([], curves).checked
