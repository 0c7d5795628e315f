"""Reference system time: G19, tables with a slip, and the arms of a sweep whose trials ran on two machines."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from expkit.analysis.reference_arms import on_reference
from expkit.analysis.reference_time import Timed, doubtful, reference_time_s, scaled_s
from expkit.errors import UsageError
from expkit.store.query import connect
from tests.store.synthetic import Cell, Method, make_store

SECONDS = {"full": 0.120, "forward": 0.040, "small": 0.055}


def test_the_toy_of_the_definition_sheet() -> None:
    """G19: 162.0 s against 180.0 s, a speedup of 1.111111."""
    arm = reference_time_s({"full": 1000, "forward": 500, "small": 400}, SECONDS)
    base = reference_time_s({"full": 1500}, SECONDS)
    assert (arm, base, base / arm) == pytest.approx((162.0, 180.0, 1.111111), abs=5e-7)
    with pytest.raises(UsageError, match="no time of huge; it has full, forward, small"):
        reference_time_s({"huge": 1}, SECONDS)


def test_a_decimal_slip_in_a_table_shows() -> None:
    """NoTrainNoGain's table of BERT has 0.01052 between 0.09188 and 0.1186."""
    layers, seconds = [4, 5, 6, 7, 8, 9], [0.0650, 0.0785, 0.09188, 0.01052, 0.1186, 0.1320]
    assert doubtful(layers, seconds) == [3]
    assert doubtful(layers, [0.0650, 0.0785, 0.09188, 0.1052, 0.1186, 0.1320]) == []
    assert doubtful([1, 2], [1, 50]) == []


def test_seconds_are_scaled_by_the_workload_beside_them() -> None:
    assert scaled_s(100.0, (0.010, 0.012), 0.0055) == pytest.approx(50.0)
    assert scaled_s(100.0, (), 0.0055) is None
    assert scaled_s(100.0, (math.nan, 0.011), 0.0055) == pytest.approx(50.0)


def test_a_host_is_its_median() -> None:
    timed = Timed.of([0.011, 0.012, 0.5], [0.010, 0.011, 0.4])
    assert (timed.wall_s, timed.cpu_s, timed.mad_s, timed.repeats) == pytest.approx((0.012, 0.011, 0.001, 3))
    assert timed.spread == pytest.approx(1.4826 / 11)
    with pytest.raises(UsageError, match="one round or more"):
        Timed.of([], [])


def test_arms_of_two_machines_pair_on_one(tmp_path: Path) -> None:
    """Seeds 18 and 19 ran on a machine of half the speed: seconds differ, reference system time does not."""
    slow = (18, 19)

    def on_two(cell: Cell) -> Cell:
        twice = dataclasses.replace(cell, seconds=cell.seconds * 2, reference_s=(0.02, 0.02))
        return twice if cell.seed in slow else dataclasses.replace(cell, reference_s=(0.01, 0.01))

    make_store(tmp_path, {"resize": Method(0.8)}, change=on_two, num_batches=8, evaluations=4)
    with connect(tmp_path) as con:
        none, resize = on_reference(con, "ablate", 0.005)
    assert none.seconds == pytest.approx(5.0, rel=0.02)
    assert (none.trials, resize.trials, none.speedup.value) == (10, 5, None)
    assert resize.speedup.value == pytest.approx(1.25, abs=0.03)
    assert (resize.speedup.n, resize.speedup.method) == (5, "paired t")
