"""How arms come to the target with their misses: through summaries of synthetic stores."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from expkit.analysis.model import Arm, Summary
from expkit.analysis.summary import summarise
from expkit.store.query import connect
from tests.store.synthetic import Cell, Method, make_store

METHODS = {"ema": Method(0.9)}


def summary_of(root: Path, change: Any = lambda cell: cell, **options: Any) -> Summary:
    make_store(root, **{"methods": METHODS, "change": change, "num_batches": 16, **options})
    with connect(root) as con:
        return summarise(con, "ablate")


def arm(found: Summary, label: str) -> Arm:
    return next(a for a in found.arms if a.label == label)


def low(arm: str, *seeds: int) -> Any:
    """Trials that end below the target of 0.8."""

    def change(cell: Cell) -> Cell:
        return dataclasses.replace(cell, accuracy=0.7) if cell.arm == arm and cell.seed in seeds else cell

    return change


def test_where_all_come_the_curve_ends_at_0_and_the_paired_speedup_stays(tmp_path: Path) -> None:
    found = summary_of(tmp_path)
    ema, none = arm(found, "ema"), arm(found, "none")
    assert (ema.reach.hits, ema.reach.n, ema.reach.timed) == (5, 5, 5)
    assert ema.reach.curve[-1][1] == 0
    assert ema.target_speedup.method == "paired t"
    assert ema.reach.speedup.method == "two-sample t"
    median_s = next(t.median_s for t in ema.target_times if t.rule == "interpolated" and t.share is None)
    assert ema.reach.typical_s == pytest.approx(median_s, rel=0.05)
    assert (ema.reach.difference_s.lo or 0) > 0
    assert ema.reach.log_rank_p is not None and ema.reach.log_rank_p < 0.01
    assert none.reach.log_rank_p is None
    assert none.reach.sentence == "5 of 5 trials reached the target."
    endpoint = next(t for t in ema.target_times if t.rule == "endpoint")
    assert endpoint.text.endswith("(5/5)")
    assert endpoint.median_s == pytest.approx(ema.time_s, rel=0.05)


def test_a_miss_is_censored_and_the_speedup_says_how(tmp_path: Path) -> None:
    ema = arm(summary_of(tmp_path, low("ema", 18)), "ema")
    assert (ema.reach.hits, ema.reach.n) == (4, 5)
    assert ema.target_speedup == ema.reach.speedup
    assert ema.target_speedup.method == "Tobit, likelihood ratio"
    assert ema.target_speedup.lo is not None
    assert ema.reach.curve[-1][1] == pytest.approx(0.2)
    assert "4 of 5 trials reached the target; a miss counts as later than its last evaluation; speedup to it x" in (
        ema.reach.sentence
    )
    assert ema.reach.sentence.endswith("with misses censored, unpaired.")


def test_with_fewer_hits_than_half_there_is_a_curve_and_no_speedup(tmp_path: Path) -> None:
    ema = arm(summary_of(tmp_path, low("ema", 17, 18, 19)), "ema")
    assert (ema.target_speedup.value, ema.reach.typical_s, ema.reach.median_s) == (None, None, None)
    assert ema.reach.restricted_mean_s.value is not None
    assert "no speedup to it, as fewer than half of a side's trials came." in ema.reach.sentence


def test_nobody_came_on_either_side(tmp_path: Path) -> None:
    found = summary_of(tmp_path, accuracy=0.5)
    ema = arm(found, "ema")
    assert (ema.reach.hits, ema.reach.log_rank_p, ema.reach.curve) == (0, None, ())
    assert ema.reach.restricted_mean_s.value == ema.reach.tau_s
    assert ema.target_speedup.value is None


def test_a_trial_that_failed_never_came_and_no_model_takes_it_for_late(tmp_path: Path) -> None:
    def change(cell: Cell) -> Cell:
        return dataclasses.replace(cell, state="failed") if (cell.arm, cell.seed) == ("ema", 18) else cell

    ema = arm(summary_of(tmp_path, change), "ema")
    assert (ema.reach.hits, ema.reach.n, ema.reach.timed) == (4, 5, 5)
    assert ema.reach.curve[-1][1] == pytest.approx(0.2)
    assert (ema.reach.speedup.value, ema.target_speedup.value) == (None, None)
    assert "1 failed or diverged, and no model says when" in ema.reach.sentence


def test_times_of_another_setting_are_not_put_together(tmp_path: Path) -> None:
    other = {"host": "bench2", "device": "cpu", "nproc": 1, "threads": 1, "parallel": "ddp"}

    def change(cell: Cell) -> Cell:
        return dataclasses.replace(cell, setting=other) if cell.arm == "ema" and cell.seed > 18 else cell

    ema = arm(summary_of(tmp_path, change), "ema")
    assert (ema.reach.hits, ema.reach.n, ema.reach.timed) == (5, 5, 2)


def test_without_a_target_or_a_baseline_there_is_little_to_say(tmp_path: Path) -> None:
    assert arm(summary_of(tmp_path / "a", target=None), "ema").reach.sentence == ""

    def pending(cell: Cell) -> Cell:
        return dataclasses.replace(cell, state="pending") if cell.arm == "none" else cell

    found = summary_of(tmp_path / "b", pending)
    assert arm(found, "none").reach.sentence == "No trial has ended."
    assert arm(found, "ema").reach.speedup.value is None
    assert arm(found, "ema").reach.hits == 5
