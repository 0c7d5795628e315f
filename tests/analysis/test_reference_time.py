"""Reference system time: G19, tables with a slip, and the arms of a sweep whose trials ran on two machines."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from expkit.analysis.reference_arms import on_reference
from expkit.analysis.reference_time import (
    Phase,
    Timed,
    billed,
    doubtful,
    out_of_line,
    reference_time_s,
    scaled_s,
    work_of,
)
from expkit.analysis.summary import summarise
from expkit.errors import UsageError
from expkit.report.markdown import to_markdown
from expkit.report.section import make_page
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


def test_work_is_read_from_a_phases_name() -> None:
    assert work_of("128x1x28x28") == 3 * 128 * 784
    assert work_of("128x1x28x28 forward + 64x1x28x28") == 128 * 784 + 3 * 64 * 784
    assert work_of("2 * 64x784") == 301_056
    assert (work_of("?"), work_of("odd")) == (3.0, 1.0)


TABLE = (Phase("arm", "12x4", 400, 0.120, 0.0), Phase("arm", "12x4 forward", 400, 0.040, 0.0),
         Phase("arm", "6x4", 100, 0.055, 0.003))  # fmt: skip


def test_a_training_is_billed_by_its_phases_with_the_error_of_their_medians() -> None:
    """G19 once more, by phases; a phase that was not timed costs what the one nearest in work costs."""
    found = billed({"12x4": 1000, "12x4 forward": 500, "6x4": 400}, TABLE)
    assert found is not None
    error = 400 * math.sqrt(math.pi / 2) * 1.4826 * 0.003 / 10
    assert (found.seconds, found.error_s, found.nearest) == pytest.approx((162.0, error, 0.0))
    near = billed({"12x4": 3, "11x4": 1}, TABLE)
    assert near is not None
    assert (near.seconds, near.nearest) == pytest.approx((0.48, 0.25))
    assert billed({}, TABLE) is billed({"12x4": 1}, ()) is None


def test_entries_off_the_line_of_their_arm_are_named() -> None:
    table = [Phase("a", f"{n}x10", 200, 0.01 * n if n != 4 else 0.004, 0.0) for n in range(1, 7)]
    assert [one.phase for one in out_of_line(table)] == ["4x10"]


STEPS = {"none": {"12x4": 1500}, "resize": {"12x4": 1000, "12x4 forward": 500, "6x4": 400}}


def test_a_report_tells_the_speedup_on_the_reference_system_beside_the_measured_one(tmp_path: Path) -> None:
    """Whatever the trials measured: S = 180 / 162, once the table is there; a damaged one is none."""
    made = make_store(tmp_path, {"resize": Method(0.5)}, seeds=(17, 18), num_batches=8, evaluations=4,
                      change=lambda cell: dataclasses.replace(cell, phases=STEPS[cell.arm]))  # fmt: skip
    with connect(tmp_path) as con:
        assert summarise(con, "ablate").reference is None
    phases = [dataclasses.asdict(dataclasses.replace(one, arm=arm)) for arm in STEPS for one in TABLE]
    record = {"host": "bench9", "utc": "2026-05-05T00:00:00Z", "torch": "2", "phases": phases}
    made.store.write_reference("ablate", record)
    with connect(tmp_path) as con:
        found = summarise(con, "ablate")
    assert found.reference is not None
    none, resize = found.reference.arms
    assert (none.seconds, resize.seconds) == pytest.approx((180.0, 162.0))
    assert (resize.speedup.value, resize.speedup.n) == (pytest.approx(1.111111, abs=5e-7), 2)
    half = 1.96 * 400 * math.sqrt(math.pi / 2) * 1.4826 * 0.003 / 10 / 162
    assert resize.speedup.hi == pytest.approx(180 / 162 * math.exp(half), rel=1e-4)
    page = to_markdown(make_page(found))
    assert "In reference system time" in page
    assert "On bench9 as timed on 2026-05-05" in page
    made.store.write_reference("ablate", {**record, "phases": [{"arm": "none", "phase": 3}]})
    with connect(tmp_path) as con:
        assert summarise(con, "ablate").reference is None
