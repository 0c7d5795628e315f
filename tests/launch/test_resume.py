"""Trials that were cut go on from their checkpoints, and end as if nothing had happened."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from expkit.launch.resume import lineage, origin
from expkit.store.layout import Layout
from expkit.store.query import connect
from expkit.trainer.checkpoint.manifest import read_manifest
from tests.launch.lab import Lab, until

EVERY_3 = ["--set", "trainer.max_duration=24ba", "--set", "trainer.checkpoint={every: 3ba, keep: last}"]

SLOWLY = ["--set", "data.train={'py:own:Points': {pause_s: 0.07}}"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("resume{d}"), pause_s=0.03)


def attempt_dir(lab: Lab, id12: str, attempt: int) -> Path:
    return lab.store.layout.attempt(id12, 0, attempt)


def saved(lab: Lab, id12: str, attempt: int) -> list[str]:
    folder = Layout.checkpoints(attempt_dir(lab, id12, attempt))
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def saved_at(batch: int) -> Callable[[Path], object]:
    """Whether the first attempt at a trial has a checkpoint of this batch."""
    return lambda trial: [*trial.glob(f"r0/attempts/1/checkpoints/*ba{batch}")]


def beats(trial: Path) -> bool:
    """Whether it has said that it has trained."""
    heartbeat = trial / "r0" / "heartbeat"
    return heartbeat.exists() and '"batch": 0' not in (heartbeat.read_text() or '"batch": 0')


AT_6 = saved_at(6)


def interrupted(lab: Lab, *arguments: str, when: Callable[[Path], object] = AT_6, number: int = signal.SIGTERM) -> str:
    """The trial of a run that was asked to stop as soon as `when` held for its folder."""
    before = trials(lab)
    code, err = lab.signalled(lambda: has(lab, before, when), [number], *arguments)
    assert code == 128 + number, err
    (made,) = trials(lab) - before
    assert lab.store.state_of(made.name, 0) == "interrupted"
    return made.name


def trials(lab: Lab) -> set[Path]:
    return {*lab.runs.glob("trials/*")}


def has(lab: Lab, before: set[Path], when: Callable[[Path], object]) -> bool:
    return any(when(trial) for trial in trials(lab) - before)


def record(lab: Lab, id12: str, attempt: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Layout.attempt_record(attempt_dir(lab, id12, attempt)).read_text())
    return found


def equals_one_that_ran_through(lab: Lab, id12: str) -> None:
    """Every value of every batch, and each of them once."""
    verified = lab.call("rerun", id12, "--verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    with connect(lab.runs) as con:
        sql = "SELECT count(*) AS n FROM metrics WHERE id = ? GROUP BY replicate, batch, name HAVING n > 1"
        assert con.rows(sql, [id12]) == []
        sql = "SELECT replicate, name, count(*) AS n FROM metrics WHERE id = ? GROUP BY ALL ORDER BY ALL"
        counted: dict[int, dict[str, int]] = {}
        for row in con.rows(sql, [id12]):
            counted.setdefault(row["replicate"], {})[row["name"]] = row["n"]
    assert counted[0] == counted[1]
    assert counted[0]["train/loss"] == 24
    final = [read_manifest(path) for path in lab.runs.glob(f"trials/{id12}/r*/attempts/*/checkpoints/ep3-ba24")]
    assert len(final) == 2 and len({one.files["rank0.safetensors"]["sha256"] for one in final}) == 1, "same weights"


def test_a_trial_that_is_asked_to_stop_saves_and_goes_on_bit_by_bit(lab: Lab) -> None:
    id12 = interrupted(lab, "run", "tiny", *EVERY_3)
    (name,) = saved(lab, id12, 1)
    batch = int(name.partition("ba")[2])
    assert f"goes on from batch {batch}" in lab.call("why", id12).stdout
    assert f"checkpoint: runs/trials/{id12}/r0/attempts/1/checkpoints/{name}" in lab.call("show", id12).stdout
    done = lab.call("run", "tiny", *EVERY_3)
    assert (done.returncode, f"goes on from batch {batch} of attempt 1" in done.stderr) == (0, True)
    assert record(lab, id12, 2)["from"] == {"attempt": 1, "batch": batch}
    status = lab.store.read_status(id12, 0)
    assert status is not None
    assert (status.timing_valid, status.timing_reasons[0]) == (False, "resumed")
    assert saved(lab, id12, 1) == [] and saved(lab, id12, 2) == ["ep3-ba24"]
    for command in ("show", "why"):
        assert f"attempt 2 went on from batch {batch} of attempt 1" in lab.call(command, id12).stdout
    with connect(lab.runs) as con:
        rows = con.rows("SELECT attempt, batch, train_s, value FROM metrics WHERE id = ? AND name = 'train/loss' "
                        "ORDER BY batch", [id12])  # fmt: skip
        everything = con.rows("SELECT count(*) AS n FROM metrics_all WHERE id = ? AND name = 'train/loss'", [id12])
    assert [row["attempt"] for row in rows] == [1] * batch + [2] * (24 - batch)
    assert all(a["train_s"] < b["train_s"] < a["train_s"] + 0.5 for a, b in pairwise(rows))
    assert everything == [{"n": 24}]
    equals_one_that_ran_through(lab, id12)


def test_kill_9_in_the_middle_of_a_run_and_it_goes_on_bit_by_bit(lab: Lab) -> None:
    settings = [*EVERY_3, "--seed", "2", "--set", "callbacks={lr_monitor: {}}", "--set", "scheduler={cosine: {}}",
                "--set", "algorithms={ema: {half_life: 4ba}, label_smoothing: {}}",
                "--set", "optimizer={sgd: {lr: 0.1, momentum: 0.9}}"]  # fmt: skip
    before = trials(lab)
    with lab.start("run", "tiny", *settings) as driver:
        until(lambda: has(lab, before, saved_at(9)))
        driver.kill()
    assert lab.until_gone() == []
    (made,) = trials(lab) - before
    id12 = made.name
    assert lab.store.state_of(id12, 0) == "lost"
    assert "it left no result, and running it again goes on from batch" in lab.call("why", id12).stdout
    assert lab.call("run", "tiny", *settings).returncode == 0
    assert record(lab, id12, 2)["from"]["batch"] >= 9
    with connect(lab.runs) as con:
        final = con.rows("SELECT batch FROM metrics WHERE id = ? AND name = 'lr' ORDER BY batch", [id12])
    assert [row["batch"] for row in final] == list(range(1, 25))
    equals_one_that_ran_through(lab, id12)


def test_two_ranks_save_together_and_go_on_together(lab: Lab) -> None:
    settings = [*EVERY_3, "--seed", "3", "--set", "runtime.nproc=2"]
    id12 = interrupted(lab, "run", "tiny", *settings)
    assert lab.call("run", "tiny", *settings).returncode == 0
    assert record(lab, id12, 2)["from"]["attempt"] == 1
    equals_one_that_ran_through(lab, id12)


def test_a_damaged_checkpoint_is_passed_over_and_that_is_said(lab: Lab) -> None:
    settings = [*EVERY_3, "--seed", "4"]
    id12 = interrupted(lab, "run", "tiny", *settings)
    (name,) = saved(lab, id12, 1)
    numbers = Layout.checkpoints(attempt_dir(lab, id12, 1)) / name / "rank0.safetensors"
    content = bytearray(numbers.read_bytes())
    content[-1] ^= 1
    numbers.write_bytes(content)
    assert "is damaged" in lab.call("why", id12).stdout
    done = lab.call("run", "tiny", *settings)
    assert done.returncode == 0
    why = f"{name} is damaged: the content of rank0.safetensors is not what was written; so it starts over"
    assert why in done.stderr
    assert record(lab, id12, 2)["from"] is None
    assert "attempt 2 started over; checkpoint" in lab.call("why", id12).stdout
    assert saved(lab, id12, 1) == [], "nobody goes on from a trial that is complete"


def test_it_falls_back_to_the_checkpoint_before_the_damaged_one(lab: Lab) -> None:
    settings = ["--set", "trainer.max_duration=24ba", "--set", "trainer.eval_interval=6ba", "--seed", "5",
                "--set", "trainer.checkpoint={every: 6ba, keep: best}",
                "--set", "metrics.primary={name: eval/cross_entropy, mode: max}"]  # fmt: skip
    id12 = interrupted(lab, "run", "tiny", *settings, when=saved_at(12))
    folder = Layout.checkpoints(attempt_dir(lab, id12, 1))
    assert (folder / "ep0-ba6").is_dir(), "the loss falls, so the first one is the best by this metric"
    for path in folder.iterdir():
        if path.is_dir() and path.name != "ep0-ba6":
            (path / "rank0.json").unlink()
    done = lab.call("run", "tiny", *settings)
    assert (done.returncode, "so it goes on from batch 6 of attempt 1" in done.stderr) == (0, True)
    assert saved(lab, id12, 2) == ["ep0-ba6", "ep3-ba24"]
    equals_one_that_ran_through(lab, id12)


def test_under_exclusive_timing_it_starts_over(lab: Lab) -> None:
    lab.sweep("alone")
    settings = [*EVERY_3, "--set", "seed=6"]
    id12 = interrupted(lab, "sweep", "alone", *settings)
    assert "starts it over, for under timing: exclusive" in lab.call("why", id12, "r0").stdout
    done = lab.call("sweep", "alone", *settings)
    assert (done.returncode, "goes on" in done.stderr) == (0, False)
    assert record(lab, id12, 2)["from"] is None
    assert (saved(lab, id12, 1), saved(lab, id12, 2)) == ([], ["ep3-ba24"])


def test_a_sweep_of_shared_timing_goes_on_with_what_ctrl_c_has_cut(lab: Lab) -> None:
    lab.sweep("together", timing="shared")
    settings = [*EVERY_3, "--set", "seed=7"]
    unknown = lab.call("plan", "together", *settings).stdout
    assert (
        "disk  checkpoints of 2 replicates x 1, of a size that is known when the first trial has saved one" in unknown
    )
    id12 = interrupted(lab, "sweep", "together", *settings, number=signal.SIGINT)
    done = lab.call("sweep", "together", *settings)
    assert (done.returncode, "goes on from batch" in done.stderr) == (0, True)
    assert set(lab.states("together").values()) == {"complete"}
    disk = lab.json("plan", "together", *settings)["checkpoints"]
    assert (disk["source"], disk["bytes"]) == (f"as trial {id12} r0 has it", 2 * disk["each_bytes"])
    (folder,) = lab.runs.glob(f"trials/{id12}/r0/attempts/2/checkpoints/ep3-ba24")
    assert disk["each_bytes"] == sum(file.stat().st_size for file in folder.glob("rank*"))
    with connect(lab.runs) as con:
        sql = "SELECT replicate, count(*) AS n FROM metrics WHERE id = ? AND name = 'train/loss' GROUP BY ALL"
        assert con.rows(f"{sql} ORDER BY ALL", [id12]) == [{"replicate": 0, "n": 24}, {"replicate": 1, "n": 24}]


def test_without_an_interval_it_saves_at_the_end_and_where_it_is_interrupted(lab: Lab) -> None:
    settings = ["--set", "trainer.max_duration=24ba", "--set", "trainer.checkpoint.keep=last", *SLOWLY]
    id12 = interrupted(lab, "run", "tiny", *settings, when=beats)
    assert len(saved(lab, id12, 1)) == 1
    with (lab.folder / "own.py").open("a") as own:
        own.write("# another version\n")
    done = lab.call("run", "tiny", *settings)
    assert (done.returncode, "of attempt 1, with other code than before: own" in done.stderr) == (0, True)
    assert "of attempt 1, with other code than before: own" in lab.call("why", id12).stdout
    assert record(lab, id12, 2)["from"]["batch"] > 0
    assert saved(lab, id12, 2) == ["ep3-ba24"]


def test_none_saves_nothing_and_what_is_asked_for_later_holds_for_the_next_attempt(lab: Lab) -> None:
    plain = ["--set", "trainer.max_duration=24ba", *SLOWLY, "--seed", "9"]
    id12 = interrupted(lab, "run", "tiny", *plain, when=beats)
    assert saved(lab, id12, 1) == []
    assert "running it again starts it over" in lab.call("why", id12).stdout
    done = lab.json("run", "tiny", *EVERY_3, *SLOWLY, "--seed", "9")
    assert done["id"] == id12, "checkpoints are in no trial's id"
    assert saved(lab, id12, 2) == ["ep3-ba24"]


def test_a_trial_that_was_lost_after_its_last_checkpoint_is_complete_without_a_step(lab: Lab) -> None:
    settings = [*EVERY_3, "--seed", "10"]
    id12 = lab.json("run", "tiny", *settings)["id"]
    path = lab.store.layout.status(id12, 0)
    path.write_text(json.dumps({**json.loads(path.read_text()), "state": "running", "final": {}}))
    assert lab.call("run", "tiny", *settings).returncode == 0
    assert record(lab, id12, 2)["from"] == {"attempt": 1, "batch": 24}
    status = lab.store.read_status(id12, 0)
    assert status is not None and status.final["eval/accuracy"] > 0
    equals_one_that_ran_through(lab, id12)


def test_an_attempt_whose_driver_was_killed_at_once_breaks_no_chain(lab: Lab) -> None:
    settings = [*EVERY_3, "--seed", "11"]
    id12 = interrupted(lab, "run", "tiny", *settings)
    attempt_dir(lab, id12, 2).mkdir()
    assert list(lineage(lab.store, id12, 0)) == [2, 1]
    assert origin(lab.store, id12, 0, 1).attempt == 1
    assert origin(lab.store, id12, 0, 2).name is None, "two ranks do not go on where one was"
    assert lab.call("run", "tiny", *settings).returncode == 0
    assert record(lab, id12, 3)["from"]["attempt"] == 1
    assert list(lineage(lab.store, id12, 0)) == [3, 1]


def test_one_that_failed_begins_anew(lab: Lab) -> None:
    settings = ["--set", "trainer.checkpoint={every: 1ba, keep: last}", "--set",
                "algorithms={'py:own:Trouble': {kind: raise}}"]  # fmt: skip
    id12 = lab.json("run", "tiny", *settings)["id"]
    assert saved(lab, id12, 1) == ["ep0-ba3"]
    assert lab.call("run", "tiny", *settings).returncode == 1
    assert record(lab, id12, 2)["from"] is None


def test_an_interval_without_anything_to_keep_is_refused_at_its_line(lab: Lab) -> None:
    done = lab.call("run", "tiny", "--set", "trainer.checkpoint.every=1ep")
    assert done.returncode == 2
    assert "trainer.checkpoint: every is 1ep, but keep is none, so nothing would be saved" in done.stderr
