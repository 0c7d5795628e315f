"""Whole sweeps: all arms at once, who may be best, sensitivity, cost, tuning; and when steps become steady."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from expkit.analysis.model import Summary
from expkit.analysis.steady import steady_state
from expkit.analysis.summary import summarise
from expkit.store.query import connect
from tests.store.synthetic import Cell, Method, make_store

METHODS = {"ema": Method(1.02), "resize": Method(0.8, -0.01)}


def summary_of(
    root: Path,
    change: Callable[[Cell], Cell] = lambda cell: cell,
    wanted: dict[str, Any] | None = None,
    methods: dict[str, Method] | None = None,
    **options: Any,
) -> Summary:
    options = {"num_batches": 32, "evaluations": 16, **options}
    made = make_store(root, methods or METHODS, change=change, **options)
    if wanted:
        made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), **wanted})
    with connect(root) as con:
        return summarise(con, "ablate")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    wanted = {"confirmatory": ["resize", "ema"], "rates": {"per_hour": 3.6, "per_kwh": 0.5, "watts": 100.0}}
    return summary_of(tmp_path_factory.mktemp("whole"), wanted=wanted)


def test_all_arms_have_dunnetts_intervals_and_they_are_wider(whole: Summary) -> None:
    assert whole.many.family == "Dunnett"
    for arm in whole.arms[1:]:
        own = next(c for c in whole.many.arms if c.arm == arm.label)
        assert own.simultaneous.value == pytest.approx(arm.speedup.value)
        assert own.p is not None and arm.checks.p is not None
        assert own.p >= arm.checks.p - 1e-9
        assert (own.simultaneous.lo or 0) < (arm.speedup.lo or 0)
        assert (own.p < 0.05) == (not (own.simultaneous.lo or 0) <= 1 <= (own.simultaneous.hi or 0))


def test_dunnetts_p_is_scipys(whole: Summary) -> None:
    """A complete table in blocks is Dunnett's with the blocks' means taken off and their degrees of freedom."""
    trials = {(t.arm, t.seed, t.replicate): t.train_s for t in whole.trials}
    seeds = sorted({t.seed for t in whole.trials if t.seed is not None})
    t0 = [math.log((trials["none", s, 0] or 0) * (trials["none", s, 1] or 0)) / 2 for s in seeds]
    d = {a.label: np.array([t - math.log(trials[a.label, s, 0] or 0) for t, s in zip(t0, seeds, strict=True)])
         for a in whole.arms[1:]}  # fmt: skip
    error = whole.many.sensitivity.sd or 0
    statistic = {label: v.mean() / error / math.sqrt(2 / len(seeds)) for label, v in d.items()}
    ema = next(c for c in whole.many.arms if c.arm == "ema")
    joint = scipy.stats.multivariate_t(shape=np.full((3, 3), 0.5) + np.eye(3) / 2, df=whole.many.sensitivity.df)
    limit = abs(statistic["ema"])
    inside = joint.cdf(np.full(3, limit), lower_limit=np.full(3, -limit), random_state=1)
    assert ema.p == pytest.approx(1 - inside, abs=2e-3)


def test_confirmatory_arms_are_a_family_of_their_own(whole: Summary) -> None:
    named = {c.arm: c.p_confirmatory for c in whole.many.arms}
    p = {a.label: a.checks.p or 0 for a in whole.arms[1:]}
    assert named["ema+resize"] is None
    assert named["resize"] == pytest.approx(2 * p["resize"])
    assert named["ema"] == pytest.approx(max(2 * p["resize"], p["ema"]))


def test_improvement_and_equivalence(whole: Summary) -> None:
    found = {c.arm: c for c in whole.many.arms}
    assert (found["resize"].improvement.value, found["resize"].improvement.n) == (1.0, 5)
    assert found["resize"].improvement.lo == pytest.approx(0.025**0.2)
    assert (found["resize"].sooner or 0) > 0.9
    assert (found["ema"].p_not_worse or 1) < 0.05 < (found["resize"].p_not_worse or 0)
    assert (found["ema"].p_equal or 1) >= (found["ema"].p_not_worse or 0)


def test_who_may_be_the_best(whole: Summary) -> None:
    time, worthy, quality = whole.many.best
    assert (time.question, time.winner, time.tied, time.arms) == ("time", "resize", ("resize", "ema+resize"), 4)
    assert time.sentence.startswith(
        "Fastest: resize, of 4 arms; ema+resize cannot be told from it. The best of 4 equal"
    )
    assert (worthy.question, worthy.winner) == ("time, quality not worse", "none")
    assert worthy.sentence.startswith("Fastest of quality that is not worse: the baseline, of 2 arms")
    assert quality.winner in ("ema", "none")
    assert time.shrunk is not None and 1 < time.shrunk < time.value


def test_what_the_sweep_could_show(whole: Summary) -> None:
    found = whole.many.sensitivity
    assert (found.n, found.df, found.blocks_of_improvement) == (5, 12, 29)
    assert found.sd == pytest.approx(0.01, rel=0.5)
    assert found.arm is not None and found.effect is not None
    assert 1.01 < found.effect < found.arm < 1.06
    assert [k for _, k in found.seeds] == sorted((k or 0 for _, k in found.seeds), reverse=True)


def test_the_bill(whole: Summary) -> None:
    found = whole.many.cost
    assert found.replicates == 25
    assert found.train_s == pytest.approx(sum(t.train_s or 0 for t in whole.trials))
    assert found.energy_source == "modelled"
    assert found.energy_kwh == pytest.approx(found.wall_s * 100 / 3.6e6)
    assert found.price == pytest.approx(found.wall_s / 1000 + found.energy_kwh * 0.5)
    assert {arm for arm, _ in found.per_run} == {a.label for a in whole.arms}
    assert found.sentence.startswith("This claim cost 25 runs:")
    assert "(modelled)" in found.sentence


def test_without_rates_there_is_no_price_and_without_a_common_error_holm(tmp_path: Path) -> None:
    def change(cell: Cell) -> Cell:
        return dataclasses.replace(cell, state="failed") if (cell.arm, cell.seed) == ("ema", 18) else cell

    found = summary_of(tmp_path, change, target=None)
    assert found.many.family == "Holm"
    assert (found.many.cost.price, found.many.cost.per_run) == (None, ())
    resize = next(c for c in found.many.arms if c.arm == "resize")
    assert (resize.simultaneous.method, resize.sooner) == ("Bonferroni", None)
    assert found.many.sensitivity.effect is None
    assert found.many.best[0].method == "paired t, Bonferroni"


@pytest.mark.parametrize("state", ["pending", "failed"])
def test_a_sweep_without_results_has_none(tmp_path: Path, state: str) -> None:
    found = summary_of(tmp_path, lambda cell: dataclasses.replace(cell, state=state)).many
    assert (found.family, found.best, found.steadiness, found.tuning) == ("", (), None, ())
    assert found.sensitivity.arm is None
    assert all(c.p is None and c.improvement.value is None for c in found.arms)


def test_one_seed_compares_nothing(tmp_path: Path) -> None:
    found = summary_of(tmp_path, seeds=[17]).many
    assert (found.family, found.best, found.sensitivity.arm) == ("", (), None)
    assert found.arms[0].improvement.n == 1


def test_power_that_was_logged_is_measured_energy(tmp_path: Path) -> None:
    found = summary_of(tmp_path, metric="gpu_power_usage_W", target=None)
    assert found.many.cost.energy_source == "measured"
    assert (found.many.cost.energy_kwh or 0) > 0


def test_steps_that_warm_up_become_steady() -> None:
    rng = np.random.default_rng(0)
    noise = np.exp(rng.normal(0, 0.01, 100))
    found = steady_state(np.concatenate((np.full(15, 2.0), np.ones(85))) * noise)
    assert found is not None and found.start is not None
    assert 14 <= found.start <= 16
    steady = steady_state(noise)
    assert steady is not None
    assert steady.start == 0
    slower = steady_state(np.linspace(1, 3, 100) * noise)
    assert slower is not None
    assert slower.start is None
    assert len(slower.segments) > 3


def test_single_slow_steps_are_no_change_of_pace() -> None:
    times = np.exp(np.random.default_rng(1).normal(0, 0.01, 200))
    times[[50, 120]] = 30.0
    found = steady_state(times)
    assert found is not None
    assert (found.start, found.segments) == (0, (0,))


def test_steady_states_of_short_and_odd_series() -> None:
    assert steady_state([1.0] * 7) is None
    assert steady_state([math.nan] * 20) is None
    equal = steady_state(np.ones(10))
    assert equal is not None
    assert equal.start == 0
    late = steady_state(np.concatenate((np.ones(90), np.full(10, 2.0))))
    assert late is not None
    assert late.start is None
    long = steady_state(np.concatenate((np.full(1000, 2.0), np.ones(9000))))
    assert long is not None
    assert long.start == 1000
