"""Reasons why a trial's seconds cannot be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from expkit.launch.neighbours import Neighbours
from expkit.launch.reference import measure
from expkit.launch.timing import contended, drifted, reasons


def test_a_quiet_trial_has_no_reason() -> None:
    clocks = {"train_s": 3.0, "cpu_s": 2.95}
    assert reasons(clocks, threads=1, alone_on_cpu=True, resumed=False, shared=False, reference_s=(1.0, 1.09)) == []


def test_each_reason_has_its_word() -> None:
    clocks = {"train_s": 3.4, "cpu_s": 3.0}
    found = reasons(clocks, threads=1, alone_on_cpu=True, resumed=True, shared=True, reference_s=(1.0, 1.2))
    assert found == ["resumed", "shared", "contention", "drift"]


@pytest.mark.parametrize(
    ("train_s", "cpu_s", "threads", "expected"),
    [(1.1, 1.0, 1, False), (1.12, 1.0, 1, True), (1.0, 2.0, 2, False), (1.0, 1.0, 2, True)],
)
def test_contention_is_wall_over_cpu_time_of_each_thread(
    train_s: float, cpu_s: float, threads: int, expected: bool
) -> None:
    assert contended(train_s, cpu_s, threads) is expected


def test_waiting_for_an_accelerator_is_no_contention() -> None:
    clocks = {"train_s": 3.0, "cpu_s": 1.0}
    assert reasons(clocks, threads=1, alone_on_cpu=False, resumed=False, shared=False, reference_s=(1.0, 1.0)) == []


def test_drift_is_ten_percent_either_way() -> None:
    assert [drifted(1.0, after) for after in (0.85, 0.95, 1.05, 1.15)] == [True, False, False, True]


def test_the_reference_workload_draws_no_random_number_and_stays_within_its_budget() -> None:
    before = torch.get_rng_state()
    found = measure(budget_s=0.02)
    assert torch.equal(before, torch.get_rng_state())
    assert found.cpu_s > 0
    assert 0 < found.wall_s < 1


def test_overlapping_trials_see_each_other_whichever_ends_first(tmp_path: Path) -> None:
    first, second = Neighbours(tmp_path, key="1"), Neighbours(tmp_path, key="2")
    with first:
        assert not first.seen()
        with second:
            assert second.seen()
        assert first.seen()  # the other has gone again, but was there
    with Neighbours(tmp_path, key="3") as third:
        assert not third.seen()
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_killed_trial_is_nobody(tmp_path: Path) -> None:
    (tmp_path / "expkit-trial-99999").write_text("x")
    with Neighbours(tmp_path) as alone:
        assert not alone.seen()
    assert list(tmp_path.iterdir()) == []
