"""Reference convergence points (G8), and the guard that asks whether the baseline is still that of its pilots."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from expkit.analysis.convergence import olympic_mean, reference_convergence
from expkit.analysis.guards.convergence import convergence
from expkit.analysis.summary import summarise
from expkit.errors import UsageError
from expkit.store.query import connect
from tests.store.synthetic import Cell, make_store

SMALL = (16, 14, 16, 17, 16, 16, 15, 16, 15, 16)
LARGE = (20, 21, 21, 20, 22, 22, 21, 21, 20, 20)


@pytest.mark.parametrize(
    ("runs", "mean", "least", "by_rules", "of_all", "by_checker"),
    [
        (SMALL, 15.75, 15.212621, 1.035325, 14.780730, 1.065577),
        (LARGE, 20.75, 19.929140, 1.041189, 19.821303, 1.046853),
    ],
)
def test_the_examples_of_the_rules_with_either_sd(
    runs: tuple[int, ...], mean: float, least: float, by_rules: float, of_all: float, by_checker: float
) -> None:
    """G8: the rules' document prints 15.21 and 3.53 %; the checker allows 6.6 %."""
    found = reference_convergence(runs, 5)
    assert (found.mean, found.least, found.least_of_all) == pytest.approx((mean, least, of_all), abs=1e-6)
    assert found.allowed == pytest.approx((by_rules, by_checker), abs=1e-6)


def test_olympic_means() -> None:
    assert olympic_mean([15, 15, 15, 16, 16]) == pytest.approx(15.333, abs=5e-4)
    assert olympic_mean([19, 19, 19, 20, 21]) == pytest.approx(19.333, abs=5e-4)
    assert olympic_mean([15, math.inf, 14, 16]) == 15.5  # one miss counts as the slowest
    assert olympic_mean([15, math.inf, math.inf, 16]) == math.inf
    for wrong in ([1.0, 2.0], []):
        with pytest.raises(UsageError, match="takes 3 values or more"):
            olympic_mean(wrong)
    for reference, submitted in (((1.0, 2.0, 3.0), 5), ((1.0, 2.0, 3.0, math.inf), 5), (SMALL, 2)):
        with pytest.raises(UsageError, match="4 finite runs or more"):
            reference_convergence(reference, submitted)


def test_a_baseline_that_learns_as_its_pilots_did_and_one_that_learns_faster() -> None:
    pilots = [1000.0 * runs for runs in SMALL]
    same = convergence(pilots, [15_000, 15_000, 15_000, 16_000, 16_000])
    assert (same.light, same.number) == ("green", pytest.approx(15.75 / (46 / 3)))
    assert same.sentence == (
        "Baseline: 15,333 samples to the target, its pilots 15,750 (x1.03); seeds explain up to x1.04 by MLPerf's "
        "rules, x1.07 by its checker."
    )
    faster = convergence(pilots, [14_000, 14_000, 14_500, 14_500, 15_000])
    assert faster.light == "amber"
    assert faster.sentence.endswith("x1.07 by its checker: data, code or a schedule have changed since.")


def test_too_few_runs_or_too_many_misses_are_not_looked_at() -> None:
    assert not convergence([1.0, 2.0, 3.0], [1.0] * 5).checked
    assert not convergence([1.0, 90.0, 3.0, 200.0], [1.0] * 5).checked
    assert not convergence([1.0, 2.0, 3.0, math.inf], [1.0] * 5).checked
    assert "two trials of the baseline or more missed" in convergence(SMALL, [15, math.inf, math.inf, 15]).sentence


@pytest.mark.parametrize(("shift", "light"), [(0.0, "green"), (0.1, "amber")])
def test_pilots_and_baselines_of_a_store(tmp_path: Path, shift: float, light: str) -> None:
    """Half of the seeds play the pilots; the other half learn as they did, or a good deal faster."""

    def pilot(cell: Cell) -> Cell:
        if cell.seed < 22:
            return dataclasses.replace(cell, role="pilot")
        return dataclasses.replace(cell, accuracy=cell.accuracy + shift)

    made = make_store(tmp_path, {}, seeds=range(17, 27), repeats=False, change=pilot, evaluations=16, num_batches=128)
    made.store.write_target("ablate", made.store.targets("ablate") | {"seeds": [17, 18, 19, 20, 21]})
    with connect(tmp_path) as con:
        found = {guard.name: guard for guard in summarise(con, "ablate").guards}["convergence"]
    assert (found.light, found.checked) == (light, True)
