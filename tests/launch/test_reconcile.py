"""Which replicates stand for the cells of a plan, and which are run: over a real store, without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from expkit.launch.drive import Job
from expkit.launch.reconcile import Reconciled, reconcile
from expkit.launch.setting import agrees
from expkit.plan.trial import Cell, Role, Trial
from expkit.store.records import PlanRow, Status
from expkit.store.store import Store

HERE = {"host": "here", "device": "auto", "nproc": 1, "threads": 1, "torch": "2", "microbatch": None}
RAN_HERE = {**HERE, "device": "cpu", "microbatch": 64}


def cell(name: str, role: Role, position: int, block: int = 0, replicate: int = 0) -> Cell:
    digits = (name.encode().hex() + "0" * 64)[:64]
    return Cell(Trial(digits, None, name, (), {}, 17), replicate, role, block, position)  # type: ignore[arg-type]


BLOCK = [cell("none", "baseline", 0), cell("ema", "arm", 1), cell("none", "repeat", 2, replicate=1)]


class Bench:
    """A store, and a sweep in it that is reconciled again and again."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.own: list[PlanRow] = []

    def reconcile(self, cells: list[Cell], **options: Any) -> Reconciled:
        options = {"exclusive": True, **options}
        found = reconcile(cells, self.store, self.own, lambda _: HERE, **options)
        self.own = found.rows(self.own, "hash")
        return found

    def settle(self, job: Job, state: str = "complete", **fields: Any) -> None:
        self.store.new_attempt(job.id12, job.replicate, "driver")
        fields = {"setting": RAN_HERE, "timing_valid": True, **fields}
        self.store.write_status(job.id12, job.replicate, Status(state, 1, **fields))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def names(jobs: tuple[Job, ...]) -> list[str]:
    return [f"{job.cell.trial.arm} r{job.replicate}" for job in jobs]


def test_an_empty_store_runs_everything_in_order(bench: Bench) -> None:
    assert names(bench.reconcile(BLOCK).todo) == ["none r0", "ema r0", "none r1"]


def test_a_complete_sweep_runs_nothing(bench: Bench) -> None:
    for job in bench.reconcile(BLOCK).todo:
        bench.settle(job)
    again = bench.reconcile(BLOCK)
    assert again.todo == ()
    assert again.states == ("complete",) * 3


def test_failed_ones_wait_for_retry(bench: Bench) -> None:
    jobs = bench.reconcile(BLOCK).todo
    bench.settle(jobs[0])
    bench.settle(jobs[1], "failed", cause="exception")
    bench.settle(jobs[2], "diverged")
    assert bench.reconcile(BLOCK).todo == ()
    assert names(bench.reconcile(BLOCK, retry="diverged").todo) == ["none r1"]
    assert names(bench.reconcile(BLOCK, retry="failed", exclusive=False).todo) == ["ema r0"]
    assert names(bench.reconcile(BLOCK, retry="all").todo) == ["ema r0", "none r1"]


def test_a_late_arm_takes_the_baseline_along_only_under_exclusive(bench: Bench) -> None:
    for job in bench.reconcile([BLOCK[0], BLOCK[2]]).todo:
        bench.settle(job)
    late = bench.reconcile(BLOCK)
    assert names(late.todo) == ["none r2", "ema r0"]
    assert names(late.late) == ["none r2"]
    for job in late.todo:
        bench.settle(job)
    settled = bench.reconcile(BLOCK)
    assert settled.todo == ()
    assert names(settled.jobs) == ["none r0", "none r2", "ema r0", "none r1"]


def test_a_late_arm_is_alone_where_timing_is_shared(bench: Bench) -> None:
    for job in bench.reconcile([BLOCK[0], BLOCK[2]], exclusive=False).todo:
        bench.settle(job)
    assert names(bench.reconcile(BLOCK, exclusive=False).todo) == ["ema r0"]


def test_a_trial_of_another_sweep_counts_in_the_same_setting_with_valid_timing(bench: Bench) -> None:
    ema = [cell("ema", "arm", 0)]
    bench.settle(Job(ema[0], 0))
    assert bench.reconcile(ema).todo == ()


@pytest.mark.parametrize(
    ("fields", "reuse"),
    [
        ({"timing_valid": False}, "same_setting"),
        ({"setting": {**RAN_HERE, "host": "elsewhere"}}, "same_setting"),
        ({"setting": {**RAN_HERE, "threads": 2}}, "same_setting"),
        ({}, "never"),
    ],
)
def test_else_it_runs_as_the_next_replicate(bench: Bench, fields: dict[str, Any], reuse: str) -> None:
    ema = [cell("ema", "arm", 0)]
    bench.settle(Job(ema[0], 0), **fields)
    assert names(bench.reconcile(ema, reuse=reuse).todo) == ["ema r1"]


def test_reuse_any_ignores_the_setting(bench: Bench) -> None:
    ema = [cell("ema", "arm", 0)]
    bench.settle(Job(ema[0], 0), setting={**RAN_HERE, "host": "elsewhere"})
    assert bench.reconcile(ema, reuse="any").todo == ()


def test_what_is_the_sweep_s_own_counts_whatever_its_timing_until_it_is_retried(bench: Bench) -> None:
    ema = [cell("ema", "arm", 0)]
    bench.settle(bench.reconcile(ema).todo[0], timing_valid=False)
    assert bench.reconcile(ema).todo == ()
    again = bench.reconcile(ema, retry="timing")
    assert names(again.todo) == ["ema r1"]
    bench.settle(again.todo[0])
    settled = bench.reconcile(ema)
    assert (names(settled.jobs), settled.todo) == (["ema r1"], ())


def test_a_method_that_was_removed_leaves_the_plan_and_stays_in_the_store(bench: Bench) -> None:
    for job in bench.reconcile(BLOCK).todo:
        bench.settle(job)
    left = bench.reconcile([BLOCK[0], BLOCK[2]])
    assert names(left.jobs) == ["none r0", "none r1"]
    assert bench.store.state_of(BLOCK[1].trial.id12, 0) == "complete"


def test_a_result_keeps_the_target_that_it_ran_under(bench: Bench) -> None:
    bench.settle(bench.reconcile(BLOCK).todo[0])
    again = reconcile(BLOCK, bench.store, bench.own, lambda _: HERE, exclusive=True)
    assert [row.target_hash for row in again.rows(bench.own, "new")] == ["hash", "new", "new"]


def test_device_auto_agrees_with_any_device() -> None:
    assert agrees(RAN_HERE, HERE)
    assert agrees({**RAN_HERE, "device": "cuda:0"}, {**HERE, "device": "cuda"})
    assert not agrees(RAN_HERE, {**HERE, "device": "cuda"})
