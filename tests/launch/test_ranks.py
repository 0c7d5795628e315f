"""Trials of two ranks through the fork server: the same curve as one, logs of both, and who is to blame for an end."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from expkit.launch import process
from expkit.launch.executor import Outcome
from expkit.launch.progress import progress_of
from expkit.launch.ranks import RankFailure, failures, to_blame, write_failure
from expkit.store.layout import Layout
from expkit.store.query import connect
from expkit.store.records import Status
from tests.launch.lab import Lab

TWO = ("--set", "runtime.nproc=2")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


def status_of(lab: Lab, id12: str) -> Status:
    status = lab.store.read_status(id12, 0)
    assert status is not None
    return status


def series(lab: Lab, id12: str, replicate: int) -> dict[tuple[int, str], float]:
    with connect(lab.runs) as con:
        sql = "SELECT batch, name, value FROM metrics WHERE id = ? AND replicate = ? AND name NOT LIKE 'throughput%'"
        return {(row["batch"], row["name"]): row["value"] for row in con.rows(sql, [id12, replicate])}


def test_two_ranks_give_the_curve_of_one_to_1e_6_and_see_each_sample_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOW", "1")
    one = lab.json("run", "tiny")
    assert one["state"] == "complete", one
    recipe = lab.store.layout.recipe(one["id"])  # nproc is in no id, so this is the same trial, in another setting
    recipe.write_text(recipe.read_text().replace("nproc: 1", "nproc: 2"))
    two = lab.json("rerun", one["id"])
    assert (two["state"], two["replicate"]) == ("complete", 1)
    alone, together = series(lab, one["id"], 0), series(lab, one["id"], 1)
    assert alone.keys() == together.keys()
    assert sum(name == "train/loss" for _, name in alone) == 8
    assert together == pytest.approx(alone, rel=1e-6)
    attempt = lab.store.layout.attempt(one["id"], 1, 1)
    seen = [Layout.log(attempt, rank).read_text().split("\n") for rank in (0, 1)]
    samples = [[int(word) for line in lines if line.startswith("saw") for word in line.split()[1:]] for lines in seen]
    assert [len(ids) for ids in samples] == [32, 32]
    assert sorted(samples[0] + samples[1]) == list(range(64))
    status = lab.store.read_status(one["id"], 1)
    assert status is not None
    assert status.setting["nproc"] == 2
    assert "contention" not in status.timing_reasons
    assert not Layout.log(attempt, 2).exists()


def trouble(lab: Lab, kind: str, rank: int = 1) -> str:
    """A recipe in which something goes wrong on one rank."""
    text = (lab.folder / "recipes" / "tiny.yaml").read_text()
    name = f"{kind}{rank}"
    (lab.folder / "recipes" / f"{name}.yaml").write_text(
        f"{text}algorithms: {{'py:own:Trouble': {{kind: {kind}, rank: {rank}}}}}\n"
    )
    return name


@pytest.mark.parametrize(
    ("kind", "rank", "cause", "said"),
    [
        ("raise", 1, "exception", "failed on rank 1: ValueError: the third batch is unlucky ("),
        ("raise", 0, "exception", "ValueError: the third batch is unlucky"),
        ("kill", 1, "signal", "failed on rank 1: killed by signal 9 (SIGKILL) ("),
        ("exit", 1, "ended-early", "failed on rank 1: the trial's own code left with sys.exit(0)"),
        ("hard_exit", 1, "ended-early", "failed on rank 1: the process ended with exit code 0"),
    ],
)
def test_the_rank_that_failed_first_is_named(lab: Lab, kind: str, rank: int, cause: str, said: str) -> None:
    found = lab.json("run", trouble(lab, kind, rank), *TWO)
    status = status_of(lab, found["id"])
    assert (status.state, status.cause) == ("failed", cause)
    assert said in (status.message or "")
    if rank == 1:
        assert f"trial {found['id']} failed" in (status.message or "")
        assert "rank1.log)" in (status.message or "")
    assert process.members(status.pid) == []


def test_row_31_two_ranks_that_ignore_term_are_killed_and_the_next_trial_starts(lab: Lab) -> None:
    name = trouble(lab, "stubborn", -1)
    (lab.folder / "own.py").write_text((lab.folder / "own.py").read_text().replace("time.sleep(60)", says(lab)))
    said = lab.folder / "deaf"
    running = lambda: said.exists() and len(said.read_text()) == 2  # noqa: E731
    code, err = lab.signalled(running, [signal.SIGTERM, signal.SIGTERM], "run", name, *TWO)
    assert code == 143, err
    (id12,) = [t.name for t in lab.store.layout.trials.iterdir() if lab.store.state_of(t.name, 0) == "interrupted"]
    pids = [int(line) for line in (lab.folder / "sessions").read_text().split()]
    assert len(pids) == 2
    assert [process.members(pid) for pid in pids] == [[], []]
    assert lab.json("run", "tiny", "--seed", "5", *TWO)["state"] == "complete"
    assert status_of(lab, id12).message is not None


def says(lab: Lab) -> str:
    """A rank tells that it is there, whatever folder its server was started in, and then hears nothing."""
    sessions, deaf = lab.folder / "sessions", lab.folder / "deaf"
    return (
        f"open({str(sessions)!r}, 'a').write(f'{{os.getsid(0)}} '); open({str(deaf)!r}, 'a').write('x'); time.sleep(60)"
    )


def test_term_lets_both_ranks_finish_the_same_step(lab: Lab) -> None:
    recipe = lab.folder / "recipes" / "slow.yaml"
    recipe.write_text((lab.folder / "recipes" / "tiny.yaml").read_text().replace("pause_s: 0.0", "pause_s: 0.3"))
    before = {t.name for t in lab.store.layout.trials.iterdir()}

    def at_it() -> bool:
        new = {t.name for t in lab.store.layout.trials.iterdir()} - before
        return any(progress_of(lab.store.layout, id12, 0)[0] for id12 in new)

    code, err = lab.signalled(at_it, [signal.SIGINT], "run", "slow", *TWO)
    assert code == 130, err
    (id12,) = {t.name for t in lab.store.layout.trials.iterdir()} - before
    assert lab.store.state_of(id12, 0) == "interrupted"
    attempt = lab.store.layout.attempt(id12, 0, 1)
    assert [Layout.log(attempt, rank).read_text().count("Interruption") for rank in (0, 1)] == [1, 1]
    assert failures(attempt) == []


def written(folder: Path, rank: int, message: str, *, victim: bool) -> None:
    try:
        raise ValueError(message)
    except ValueError as e:
        write_failure(folder, rank, e, victim=victim)


def test_blame_goes_to_the_first_that_is_no_victim(tmp_path: Path) -> None:
    written(tmp_path, 2, "lost a rank", victim=True)
    written(tmp_path, 1, "my fault", victim=False)
    written(tmp_path, 0, "late", victim=False)
    blamed = to_blame(Outcome(tmp_path, 1, rank=2))
    assert blamed is not None
    assert (blamed.rank, blamed.message.splitlines()[0]) == (1, "ValueError: my fault")
    assert [failure.rank for failure in failures(tmp_path)] == [1, 0, 2]


def test_a_rank_that_could_not_write_is_blamed_where_all_others_are_victims(tmp_path: Path) -> None:
    written(tmp_path, 0, "lost a rank", victim=True)
    killed = to_blame(Outcome(tmp_path, -9, rank=1))
    assert killed == RankFailure(1, "signal", "killed by signal 9 (SIGKILL)", False, 0.0)
    left = to_blame(Outcome(tmp_path, 1, rank=0, early=3))
    assert left is not None
    assert (left.rank, left.cause) == (3, "ended-early")
    assert to_blame(Outcome(tmp_path / "nowhere", 1)) is None


def test_a_record_of_a_failure_is_json_and_has_no_rank_to_spare(tmp_path: Path) -> None:
    written(tmp_path, 1, "x", victim=False)
    record: dict[str, Any] = json.loads(Layout.rank_failure(tmp_path, 1).read_text())
    assert set(record) == {"rank", "cause", "message", "victim", "at_s"}
