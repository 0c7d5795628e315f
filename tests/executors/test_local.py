"""The local executor with the fork server that all tests share, because it is not its start that they are about."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from expkit import plugins
from expkit.launch import process
from expkit.launch.drive import Job
from expkit.launch.executor import Executor, Outcome, open_executor
from expkit.launch.trials import add, python_path, trial_of
from expkit.plan.trial import Cell
from expkit.spec.files import load_recipe
from expkit.spec.trust import read_trust
from expkit.store.owner import Owner
from tests.launch.lab import KeptWorkers, Lab, until


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    local = open_executor("local", jobs=2, grace_s=0.5)
    local._workers = KeptWorkers.only()  # type: ignore[attr-defined]
    yield local
    local.close()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("EXPKIT_LOCK_DIR", str(tmp_path / "lock"))
    return Lab(tmp_path)


def attempt_of(lab: Lab, seed: int, trouble: str = "none") -> tuple[Job, Path]:
    """An attempt at a tiny trial in which something may go wrong."""
    file = lab.folder / "recipes" / f"{trouble}.yaml"
    tiny = (lab.folder / "recipes" / "tiny.yaml").read_text()
    file.write_text(f"{tiny}algorithms: {{'py:own:Trouble': {{kind: {trouble}}}}}\n")
    trust = read_trust(lab.folder)
    job = Job(Cell(trial_of(load_recipe(file, overrides=[f"seed={seed}"])), 0, "arm", 0, 0), 0)
    add(lab.store, [job.cell.trial])
    told = {"trust": trust.patterns, "python_path": python_path(trust), "dirty": None}
    return job, lab.store.new_attempt(job.id12, 0, "driver", driver_owner=asdict(Owner.this_process()), **told)


def outcomes(executor: Executor, count: int, timeout_s: float = 30.0) -> list[Outcome]:
    found: list[Outcome] = []
    deadline = time.monotonic() + timeout_s
    while len(found) < count and time.monotonic() < deadline:
        found += executor.poll(0.2)
    return found


def test_two_trials_run_side_by_side_in_sessions_of_their_own(executor: Executor, lab: Lab) -> None:
    jobs = [attempt_of(lab, seed) for seed in (1, 2)]
    for _, attempt in jobs:
        executor.submit(attempt)
    assert len(executor.running()) == executor.slots == 2
    assert {(o.attempt, o.code) for o in outcomes(executor, 2)} == {(attempt, 0) for _, attempt in jobs}
    statuses = [lab.store.read_status(job.id12, 0) for job, _ in jobs]
    assert [s.state for s in statuses if s] == ["complete", "complete"]
    assert len({s.pid for s in statuses if s}) == 2
    assert all("shared" in s.timing_reasons for s in statuses if s)


def test_cancel_lets_a_trial_say_that_it_was_interrupted(executor: Executor, lab: Lab) -> None:
    recipe = lab.folder / "recipes" / "tiny.yaml"
    recipe.write_text(recipe.read_text().replace("pause_s: 0.0", "pause_s: 0.2"))
    job, attempt = attempt_of(lab, 3)
    executor.submit(attempt)
    until(lambda: lab.store.state_of(job.id12, 0) == "running")
    executor.cancel(attempt)
    assert outcomes(executor, 1) == [Outcome(attempt, 128 + signal.SIGTERM)]
    assert lab.store.state_of(job.id12, 0) == "interrupted"


def test_a_trial_that_ignores_term_is_killed_with_its_helpers_after_the_grace(executor: Executor, lab: Lab) -> None:
    job, attempt = attempt_of(lab, 4, "stubborn")
    executor.submit(attempt)
    until(lambda: (status := lab.store.read_status(job.id12, 0)) and status.state == "running")
    time.sleep(0.6)  # until it sleeps with its ears shut
    status = lab.store.read_status(job.id12, 0)
    assert status is not None
    executor.cancel(attempt)
    assert outcomes(executor, 1) == [Outcome(attempt, -signal.SIGKILL)]
    assert process.members(status.pid) == []


def test_kill_ends_it_at_once(executor: Executor, lab: Lab) -> None:
    job, attempt = attempt_of(lab, 5, "stubborn")
    executor.submit(attempt)
    until(lambda: lab.store.state_of(job.id12, 0) == "running")
    executor.kill(attempt)
    assert [outcome.code for outcome in outcomes(executor, 1)] == [-signal.SIGKILL]


def test_a_process_that_has_trained_is_never_used_again_and_starts_in_a_moment(executor: Executor, lab: Lab) -> None:
    pids = []
    for seed in (6, 7):
        job, attempt = attempt_of(lab, seed)
        executor.submit(attempt)
        assert outcomes(executor, 1)[0].code == 0
        status = lab.store.read_status(job.id12, 0)
        assert status is not None
        pids.append(status.pid)
    assert len(set(pids)) == 2


def test_the_server_has_one_thread_and_has_run_nothing(executor: Executor, lab: Lab) -> None:
    _, attempt = attempt_of(lab, 8)
    executor.submit(attempt)
    (server,) = process.children(executor._workers.server.pid)  # type: ignore[attr-defined]
    assert outcomes(executor, 1)[0].code == 0
    assert len(list(Path(f"/proc/{server}/task").iterdir())) == 1


def test_poll_with_nothing_to_wait_for_takes_its_time_and_is_empty() -> None:
    idle = open_executor("local")
    started_s = time.monotonic()
    assert idle.poll(0.05) == []
    assert time.monotonic() - started_s >= 0.05
    idle.close()


def test_it_is_a_plug_in_like_any_other() -> None:
    assert "local" in plugins.names("executors")
    assert [setting.name for setting in plugins.settings(plugins.load("executors", "local"))] == [
        "jobs", "threads", "isolation", "grace_s"]  # fmt: skip
