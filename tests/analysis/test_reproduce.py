"""The SQL beside a report's numbers gives those very numbers, whatever the numbers leave out."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from expkit.analysis.model import Summary
from expkit.analysis.summary import summarise
from expkit.store.query import Connection, connect
from tests.store.synthetic import Cell, Method, make_store

METHODS = {"ema": Method(1.02), "progressive_resizing": Method(0.8, -0.01)}


def same_numbers(con: Connection, found: Summary) -> None:
    speedups = {r["arm"]: r for r in con.rows(found.sql["speedup"])}
    quality = {r["arm"]: r for r in con.rows(found.sql["quality"])}
    targets = {r["arm"]: r for r in con.rows(found.sql["time_to_target"])}
    for a in found.arms:
        interpolated = next(t for t in a.target_times if t.rule == "interpolated" and t.share is None)
        row = targets[a.label]
        assert (row["median_s"], row["hits"], row["n"]) == (
            pytest.approx(interpolated.median_s or float("inf")), interpolated.hits, interpolated.n,
        )  # fmt: skip
        if not a.baseline:
            assert (speedups[a.label]["speedup"], speedups[a.label]["n"]) == (
                pytest.approx(a.speedup.value), a.speedup.n,
            )  # fmt: skip
            assert (quality[a.label]["difference"], quality[a.label]["n"]) == (
                pytest.approx(a.quality_difference.value), a.quality_difference.n,
            )  # fmt: skip
    fastest = max((a for a in found.arms if not a.baseline), key=lambda a: a.speedup.value or 0)
    assert [(r["arm"], r["speedup"]) for r in con.rows(found.sql["fastest"])] == [
        (fastest.label, pytest.approx(fastest.speedup.value))
    ]
    (noise,) = con.rows(found.sql["noise"])
    assert (noise["ratio"], noise["pairs"]) == (pytest.approx(found.noise[0].ratio.value), found.noise[0].pairs)
    assert {r["state"]: r["n"] for r in con.rows(found.sql["states"])} == found.states
    lost = {(r["id"], r["replicate"], r["status"]) for r in con.rows(found.sql["failures"])}
    assert lost == {(f.id, f.replicate, f.state) for f in found.failures}
    effects = con.rows(found.sql["effects"])
    assert [(r["method"], r["speedup"], r["n"]) for r in effects] == [
        (e.method, pytest.approx(e.time.value), e.time.n) for e in found.effects
    ]
    assert [(r["difference"], r["n"]) for r in con.rows(found.sql["effects_quality"])] == [
        (pytest.approx(e.quality.value), e.quality.n) for e in found.effects
    ]
    drawn = {c.arm: c for c in found.curves}
    for arm in {r["arm"] for r in con.rows(found.sql["curve"])}:
        own = [r for r in con.rows(found.sql["curve"]) if r["arm"] == arm]
        assert [(r["batch"], r["mean"], r["n"]) for r in own] == [
            (step, pytest.approx(mean), n)
            for step, mean, n in zip(drawn[arm].step, drawn[arm].mean, drawn[arm].n, strict=True)
        ]


def spoiled(cell: Cell) -> Cell:
    """In each seed something else that keeps numbers from being used."""
    match cell.seed, cell.arm, cell.role:
        case 19, "ema", _:
            return dataclasses.replace(cell, driver="driver-2")
        case 20, "none", "repeat":
            return dataclasses.replace(cell, wall_per_cpu=1.3)  # the machine was shared, and nobody wrote it down
        case 21, "progressive_resizing", _:
            return dataclasses.replace(cell, timing_valid=False, timing_reasons=("resumed",))
        case 22, "ema+progressive_resizing", _:
            return dataclasses.replace(cell, state="diverged")
        case 23, "ema", _:
            return dataclasses.replace(cell, accuracy=0.5)
        case 24, "none", "baseline":
            return dataclasses.replace(cell, state="interrupted")
    return cell


def test_numbers_and_sql_leave_out_the_same_replicates(tmp_path: Path) -> None:
    """A file that cannot be read, another driver's baseline and contention that was measured were left out of the
    numbers, not of the SQL beside them."""
    made = make_store(tmp_path, METHODS, seeds=range(17, 26), change=spoiled, num_batches=16, evaluations=4)
    made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), "mode": "min"})
    for arm, seed in (("ema", 18), ("none", 25)):
        (tmp_path / f"trials/{made.ids[arm, seed]}/r0/attempts/1/metrics-000000.parquet").write_bytes(b"PAR1")
    with connect(tmp_path) as con:
        found = summarise(con, "ablate")
        assert {a.label: (a.speedup.n, a.quality_difference.n) for a in found.arms if not a.baseline} == {
            "ema": (7, 8), "progressive_resizing": (8, 9), "ema+progressive_resizing": (8, 8),
        }  # fmt: skip
        same_numbers(con, found)


def test_arms_at_several_points_are_compared_with_the_baseline_of_their_own(tmp_path: Path) -> None:
    def point(cell: Cell) -> Cell:
        return dataclasses.replace(cell, arm=f"{cell.arm} optimizer.sgd.lr={1.0 if cell.seed < 19 else 2.0}")

    make_store(tmp_path, {"ema": Method(0.9, 0.01)}, seeds=range(17, 21), change=point, num_batches=16, evaluations=4)
    with connect(tmp_path) as con:
        found = summarise(con, "ablate")
        rows = {r["arm"]: r for r in con.rows(found.sql["quality"])}
        times = {r["arm"]: r for r in con.rows(found.sql["speedup"])}
    assert "effects" not in found.sql
    assert len(rows) == len(times) == 2
    for a in (a for a in found.arms if not a.baseline):
        assert rows[a.label]["difference"] == pytest.approx(a.quality_difference.value)
        assert times[a.label]["speedup"] == pytest.approx(a.speedup.value)
