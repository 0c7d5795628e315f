"""The macros against the estimators of `expkit.analysis` and against slow definitions: equal to the last digit."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from expkit.analysis.attainment import attained
from expkit.analysis.load import load, sweep_row
from expkit.analysis.pairs import Pairs, time_pairs
from expkit.analysis.replicate import label_of, split_arm
from expkit.analysis.time_to_target import Mode, Rule, time_to_target
from expkit.errors import QueryError
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.query import Connection, connect
from expkit.store.store import Store
from tests.store.synthetic import Cell, Method, make_store

MODES: tuple[Mode, ...] = ("max", "min")
RULES: tuple[Rule, ...] = ("first", "sustained", "to_end", "median3")
VALUES = st.one_of(st.sampled_from([0.5, math.nan, math.inf, -math.inf]), st.floats(0, 1))


def write(root: Path, runs: Sequence[Sequence[float]], times: Sequence[float], **stamp: Any) -> None:
    """A replicate a run, with one metric `q`; an epoch has three batches, and the CPU's clock once stood still."""
    store = Store(root)
    for run, values in enumerate(runs):
        writer = MetricsWriter(store.new_attempt(f"{run:012x}", 0, "driver"), f"{run:012x}", 0, 1)
        for j, value in enumerate(values):
            cpu_s = times[min(j, 2)] if j < 5 else times[j]
            stamp = Stamp(j + 1, (j + 1) // 3, 0, 0, 0, times[j], cpu_s, -times[j])
            writer.log_many({"q": value}, stamp)
        writer.close()


@given(runs=st.lists(st.lists(VALUES, min_size=1, max_size=8), min_size=30, max_size=30))
@settings(max_examples=2, deadline=None)
def test_time_to_target_is_that_of_the_estimator(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[float]]
) -> None:
    """Also where the clock stands still (evaluations keep their order) or goes backwards (they are put in order)."""
    root = tmp_path_factory.mktemp("runs")
    times = [1.1 * (j + 1) + 0.01 * j * j for j in range(8)]
    write(root, runs, times)
    with connect(root) as con:
        for mode, rule, clock in itertools.product(MODES, RULES, ("train_s", "cpu_s", "epoch", "wall_s")):
            answer = con.rows(
                "SELECT * FROM time_to_target('q', 0.5, mode := $mode, rule := $rule, clock := $clock) ORDER BY id",
                {"mode": mode, "rule": rule, "clock": clock},
            )
            series = con.rows(
                f"SELECT id, list({clock}::DOUBLE ORDER BY batch) AS u FROM metrics GROUP BY id ORDER BY id"
            )
            for ours, values, clocks in zip(answer, runs, series, strict=True):
                theirs = time_to_target(clocks["u"], values, 0.5, mode, rule=rule)
                assert (ours["hit"], ours["t"], ours["known_at"], ours["horizon"], bool(ours["left_censored"])) == (
                    theirs.hit, theirs.t, theirs.known_at, theirs.horizon, theirs.left_censored,
                )  # fmt: skip
                assert theirs.bracket in (None, (ours["bracket_lo"], ours["bracket_hi"]))


def spoiled(cell: Cell) -> Cell:
    """In each seed something else that keeps times from being compared."""
    match cell.seed, cell.arm, cell.role:
        case 18, "ema", _:
            return replace(cell, timing_valid=False, timing_reasons=("resumed",))
        case 19, "none", "repeat":
            return replace(cell, wall_per_cpu=1.3)  # somebody had the core: its own wall clock does not count
        case 20, "blur", _:
            return replace(cell, driver="driver-2")
        case 21, "none", "baseline":
            return replace(cell, accuracy=0.5)  # never gets there
        case 22, "ema", _:
            return replace(cell, accuracy=0.5)
        case 23, "blur", _:
            return replace(cell, setting={**cell.setting, "threads": 2})
        case 24, "ema", _:
            return replace(cell, state="diverged")
        case 24, "blur", _:
            return replace(cell, state="pending")
        case 25, "none", _:
            return replace(cell, timing_reasons=("shared",))
        case 26, "ema", _:
            return replace(cell, timing_reasons=("contention",))
    return cell


@pytest.fixture(scope="module", params=["exclusive", "shared"])
def sweep(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Connection:
    """Ten seeds, in most of which something keeps times from being compared."""
    root = tmp_path_factory.mktemp("runs")
    made = make_store(root, {"ema": Method(1.02), "blur": Method(0.7)}, seeds=range(17, 27), change=spoiled)
    made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), "timing": request.param})
    return connect(root)


def estimated(con: Connection, clock: str) -> Mapping[str, Pairs]:
    """Pairs of each arm as the report makes them."""
    exclusive = con.store.sweep_settings("ablate").get("timing") != "shared"
    found = load(con, sweep_row(con, "ablate"), "eval/accuracy", exclusive=exclusive)
    time_of = attained(found.series, 0.8, (), "max", clock).time_of()
    arms: dict[str, list[Any]] = {}
    for one in found.replicates:
        arms.setdefault(one.arm, []).append(one)
    base = {arm: arms[label_of((), split_arm(arm)[1])] for arm in arms}
    return {arm: time_pairs(members, base[arm], clock, time_of) for arm, members in arms.items() if arm != "none"}


@pytest.mark.parametrize("clock", ["train_s", "cpu_s", "wall_s"])
def test_speedups_are_those_of_the_estimator_with_the_same_reasons(sweep: Connection, clock: str) -> None:
    rows = sweep.rows("SELECT * FROM speedups('ablate', 'eval/accuracy', 0.8, clock := $clock)", {"clock": clock})
    for arm, pairs in estimated(sweep, clock).items():
        own = [row for row in rows if row["arm"] == arm]
        assert [row["block"] for row in own] == list(range(10))
        compared = [row for row in own if row["speedup"] is not None]
        assert [row["block"] for row in compared] == list(pairs.blocks)
        assert [row["t_baseline"] for row in compared] == list(pairs.base)
        assert [row["t"] for row in compared] == list(pairs.arm)
        assert [row["speedup"] for row in compared] == [b / a for b, a in zip(pairs.base, pairs.arm, strict=True)]
        reasons = Counter(row["why"] for row in own if row["status"] == "complete" and row["why"])
        assert reasons == pairs.dropped


def test_every_reason_was_met(sweep: Connection) -> None:
    rows = sweep.rows("SELECT block, arm, why, status FROM speedups('ablate', 'eval/accuracy', 0.8)")
    why = {(row["block"], row["arm"]): row["why"] for row in rows}
    missed = "with a baseline without a time"
    none = "without a baseline of the same setting and driver run"
    exclusive = sweep.store.sweep_settings("ablate").get("timing") != "shared"
    assert {key: reason for key, reason in why.items() if reason and key[1] != "blur+ema"} == {
        (1, "ema"): "resumed", (4, "ema"): missed, (4, "blur"): missed,
        (5, "ema"): "without a time", (6, "blur"): none, (7, "ema"): "diverged", (7, "blur"): "pending",
        (8, "ema"): none, (8, "blur"): none, (9, "ema"): "contention",
    } | ({(3, "blur"): none} if exclusive else {})  # fmt: skip


def test_an_arm_that_ran_twice_in_a_block_is_one_row_with_the_geometric_means(tmp_path: Path) -> None:
    """Its second replicate was in another setting, with a baseline of its own."""
    made = make_store(tmp_path, {"blur": Method(0.7)}, seeds=(17, 18))
    rows = made.store.read_plan("ablate")
    again = {"driver": "driver-2", "setting_hash": "other"}
    for arm, replicate in (("none", 2), ("blur", 1)):
        id12 = made.ids[arm, 17]
        writer = MetricsWriter(made.store.new_attempt(id12, replicate, "driver-2"), id12, replicate, 1)
        for batch, value in ((1, 0.1), (2, 0.9), (3, 0.9)):
            seconds = batch * (3.7 if arm == "none" else 2.9)
            writer.log_many({"eval/accuracy": value}, Stamp(batch, 0, 0, 0, 0, seconds, seconds, seconds))
        writer.close()
        status = made.store.read_status(id12, 0)
        assert status is not None
        made.store.write_status(id12, replicate, replace(status, **again))
        first = next(row for row in rows if row.id == id12)
        rows.append(replace(first, replicate=replicate, role="repeat" if arm == "none" else "arm", position=len(rows)))
    made.store.write_plan("ablate", "version: 1\nname: ablate\n", rows)
    made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), "timing": "exclusive"})
    with connect(tmp_path) as con:
        (both, single) = con.rows("SELECT * FROM speedups('ablate', 'eval/accuracy', 0.8)")
        pairs = estimated(con, "train_s")["blur"]
    assert (both["block"], both["replicate"], single["block"]) == (0, 0, 1)
    assert ([both["t_baseline"], single["t_baseline"]], [both["t"], single["t"]]) == (list(pairs.base), list(pairs.arm))


def test_speedups_leave_out_a_trial_with_a_metrics_file_that_cannot_be_read(tmp_path: Path) -> None:
    made = make_store(tmp_path, {"blur": Method(0.7)}, seeds=(17, 18))
    attempt_dir = made.store.layout.attempt(made.ids["blur", 17], 0, 1)
    (attempt_dir / "metrics-000001.parquet").write_bytes(b"PAR1 and no more")
    with connect(tmp_path) as con:
        rows = con.rows("SELECT speedup IS NULL AS none, why FROM speedups('ablate', 'eval/accuracy', 0.8)")
        assert estimated(con, "train_s")["blur"].dropped == {rows[0]["why"]: 1}
    assert [row["none"] for row in rows] == [True, False]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("time_to_target('q', NULL)", "a target must be a finite number, but got NULL"),
        ("time_to_target('q', (SELECT target_value FROM sweeps))", "but got NULL"),
        ("time_to_target('q', 'nan')", "but got nan"),
        ("time_to_target('q', 0.5, mode := NULL)", "mode must be max or min, but got NULL"),
        ("time_to_target('q', 0.5, rule := NULL)", "unknown rule NULL"),
        ("time_to_target('q', 0.5, clock := NULL)", "unknown clock NULL"),
        ("aligned('q', NULL)", "unknown axis NULL"),
    ],
)
def test_user_report_a_target_that_is_null_looked_like_one_that_nobody_reached(
    tmp_path: Path, sql: str, says: str
) -> None:
    write(tmp_path, [[0.1, 0.9, 0.9]], [1.0, 2.0, 3.0])
    with connect(tmp_path) as con, pytest.raises(QueryError, match=says):
        con.rows(f"SELECT * FROM {sql}")


def test_a_curve_has_the_points_that_the_analysis_has(sweep: Connection) -> None:
    series = load(sweep, sweep_row(sweep, "ablate"), "eval/accuracy", exclusive=True).series
    rows = sweep.rows("SELECT * FROM curve('eval/accuracy')")
    assert {(row["id"], row["replicate"]) for row in rows} == set(series)
    for (id12, replicate), points in series.items():
        own = [row for row in rows if (row["id"], row["replicate"]) == (id12, replicate)]
        for column, values in (("batch", points.batch), ("value", points.value), *points.clocks.items()):
            np.testing.assert_array_equal([row[column] for row in own], values)


@pytest.mark.parametrize("axis", ["train_s", "batch", "epoch"])
@given(runs=st.lists(st.lists(VALUES, min_size=1, max_size=8), min_size=12, max_size=12))
@example(runs=[[j / 10 for j in range(8)]] * 12)  # of the batches of one epoch the last counts
@settings(max_examples=2, deadline=None)
def test_aligned_is_the_last_value_that_was_known(
    tmp_path_factory: pytest.TempPathFactory, axis: str, runs: list[list[float]]
) -> None:
    """By a slow definition: of all points at or before x the last one, and nothing after the trial's own end."""
    root = tmp_path_factory.mktemp("runs")
    write(root, runs, [1.1 * (j + 1) + 0.01 * j * j for j in range(8)])
    with connect(root) as con:
        points = con.rows(f"SELECT id, {axis}::DOUBLE AS place, value FROM metrics ORDER BY id, batch")
        rows = con.rows("SELECT id, x, value FROM aligned('q', $axis) ORDER BY id, x", {"axis": axis})
    longest = max(point["place"] for point in points)
    assert [row["x"] for row in rows] == [step * longest / 100 for step in range(1, 101)] * len(runs)
    for row in rows:
        own = [point for point in points if point["id"] == row["id"]]
        before = [point["value"] for point in own if point["place"] <= row["x"]]
        known = before[-1] if before and row["x"] <= own[-1]["place"] else None
        assert row["value"] == known or (known is not None and math.isnan(known) and math.isnan(row["value"]))
