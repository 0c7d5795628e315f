"""The profiler: traces of the batches that were asked for, whole and in the right units; D22 is what Composer's did."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit.callbacks.profiler import Profiler
from expkit.errors import EnvironmentFault, PluginError
from expkit.loggers.parquet import Parquet
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from tests.trainer.doubles import Memory, batches, net, trainer, weights

PARTS = ("data", "batch", "forward", "loss", "backward", "optimizer")


def events(file: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return list(json.loads(text)["traceEvents"])


def marks(file: Path) -> dict[str, list[float]]:
    """Durations in microseconds of each part that is marked in a trace, operators left out."""
    found: dict[str, list[float]] = {}
    for event in events(file):
        name = str(event.get("name", ""))
        if event["ph"] == "X" and event.get("cat") == "user_annotation" and name.startswith("expkit/"):
            found.setdefault(name.removeprefix("expkit/"), []).append(event["dur"])
    return found


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def profiled(folder: Path, profiler: dict[str, Any] | None = None, **settings: Any) -> Any:
    t = trainer(profiler=Profiler(folder=str(folder), **(profiler or {})), **settings)
    with t:
        t.fit()
    return t


@pytest.mark.parametrize(
    ("schedule", "spans"),
    [
        ({}, ["2-5"]),
        ({"wait": 2, "warmup": 1, "active": 1}, ["4-4"]),
        ({"wait": 1, "warmup": 1, "active": 1, "repeat": 2}, ["3-3", "6-6"]),
        ({"warmup": 0, "active": 2, "repeat": 0}, ["1-2", "3-4", "5-6", "7-8", "9-10", "11-12"]),
        ({"skip_first": 5, "warmup": 1, "active": 1, "repeat": 2}, ["7-7", "9-9"]),
        ({"skip_first": 9, "warmup": 1, "active": 4}, ["11-12"]),  # training ends first: what there is is kept
        ({"skip_first": 12}, []),
        ({"skip_first": 11, "warmup": 1}, []),
    ],
)
def test_a_cycle_counts_batches_of_the_whole_training(tmp_path: Path, schedule: Any, spans: list[str]) -> None:
    """Composer counts batches of the epoch, so that a profile asked for once came again in every epoch."""
    profiled(tmp_path, schedule, max_duration="3ep")  # three epochs of 4 batches
    assert names(tmp_path) == sorted(f"rank0-ba{span}.trace.json" for span in spans)
    for span in spans:
        first, last = map(int, span.split("-"))
        assert len(marks(tmp_path / f"rank0-ba{span}.trace.json")["backward"]) == last - first + 1


def test_every_profiled_batch_has_every_part_once_the_last_one_too(tmp_path: Path) -> None:
    """D22: the start events of the last profiled batch were missing."""
    profiled(tmp_path, {"warmup": 1, "active": 3}, eval_dataloader=batches(2), eval_interval="2ba")
    found = marks(tmp_path / "rank0-ba2-4.trace.json")
    assert {name: len(durations) for name, durations in found.items()} == {**dict.fromkeys(PARTS, 3), "evaluation": 2}
    assert any(event.get("name") == "aten::addmm" for event in events(tmp_path / "rank0-ba2-4.trace.json"))


def test_microbatches_are_parts_of_their_own(tmp_path: Path) -> None:
    profiled(tmp_path, {"warmup": 0, "active": 2}, device_train_microbatch_size=2)
    found = marks(tmp_path / "rank0-ba1-2.trace.json")
    assert [len(found[part]) for part in PARTS] == [2, 2, 6, 6, 6, 2]


def test_no_part_is_without_its_end_whatever_is_skipped(tmp_path: Path) -> None:
    """D22: a marker that had skipped its start still emitted its end. Ours come as one event with a duration."""
    profiled(tmp_path, {"wait": 1, "warmup": 0, "active": 1, "repeat": 0})
    for file in tmp_path.iterdir():
        kinds = [e["ph"] for e in events(file) if str(e.get("name", "")).startswith("expkit/")]
        assert set(kinds) == {"X"}
        assert [len(durations) for durations in marks(file).values()] == [1] * len(PARTS)


def test_times_are_microseconds_and_memory_is_bytes(tmp_path: Path) -> None:
    """D22: units were wrong, memory by 2**9 for GB, network by 8."""

    @dataclass
    class Slow(Callback):
        def before_train_batch(self, state: Any, logger: Any) -> None:
            time.sleep(0.03)

    profiler = Profiler(folder=str(tmp_path), active=2, profile_memory=True)
    trainer(callbacks=[profiler, Slow()], device_train_microbatch_size=6).fit()
    file = tmp_path / "rank0-ba2-3.trace.json"
    assert all(30_000 <= duration < 300_000 for duration in marks(file)["batch"])
    taken = [e["args"]["Bytes"] for e in events(file) if e.get("name") == "[memory]"]
    assert 6 * 16 * 4 in taken  # activations of 6 samples, 16 features, 4 bytes


def test_only_the_newest_traces_are_kept(tmp_path: Path) -> None:
    """D22: the number to keep never took effect, since files that were written were not recorded."""
    (tmp_path / "rank0-ba1.trace.json").write_text("of another run")
    profiled(tmp_path, {"warmup": 1, "active": 1, "repeat": 4, "num_traces_to_keep": 2})
    assert names(tmp_path) == ["rank0-ba1.trace.json", "rank0-ba6-6.trace.json", "rank0-ba8-8.trace.json"]


def test_nothing_of_the_users_is_wrapped_and_no_bit_changes(tmp_path: Path) -> None:
    """D22: the decorator lost what the function returned. There is none."""

    @dataclass
    class Look(Callback):
        def after_forward(self, state: Any, logger: Any) -> None:
            assert state.outputs.shape == (6, 4)
            assert "forward" not in vars(state.model) and not state.model._forward_hooks

    plain = trainer(net(dropout=0.3))
    plain.fit()
    t = profiled(tmp_path, {"with_stack": True, "record_shapes": True, "with_flops": True}, callbacks=[Look()],
                 model=net(dropout=0.3))  # fmt: skip
    assert torch.equal(weights(t), weights(plain))


def test_compressed_files_and_copies_in_the_folder_of_a_trial(tmp_path: Path) -> None:
    attempt = tmp_path / "attempt"
    attempt.mkdir()
    profiled(tmp_path / "profile", {"compress": True}, loggers=[Parquet(attempt, "0" * 12)])
    name = "rank0-ba2-5.trace.json.gz"
    assert names(tmp_path / "profile") == [name]
    assert set(marks(tmp_path / "profile" / name)) == set(PARTS)
    assert (attempt / "profile" / name).read_bytes() == (tmp_path / "profile" / name).read_bytes()
    told = [json.loads(line) for line in (attempt / "events.jsonl").read_text().splitlines()]
    assert [(e["kind"], e["batch"], e["payload"].get("file", e["payload"].get("path"))) for e in told] == [
        ("artifact", 5, f"profile/{name}"), ("profile", 5, str(tmp_path / "profile" / name)),
    ]  # fmt: skip


@dataclass
class TooMuch(Algorithm):
    def before_loss(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch >= 2 and state.microbatch_size is None:
            raise MemoryError("too much")


def test_it_goes_together_with_auto_microbatches_and_shows_each_try(tmp_path: Path) -> None:
    """Composer refuses the pair."""
    profiled(tmp_path, {"warmup": 0, "active": 4}, algorithms=[TooMuch()], device_train_microbatch_size="auto")
    found = marks(tmp_path / "rank0-ba1-4.trace.json")
    assert (len(found["forward"]), len(found["forward, again"])) == (1 + 1 + 1 + 1 + 2, 1)
    assert (len(found["backward"]), len(found["optimizer"])) == (1 + 1 + 2 + 2, 4)


@pytest.mark.parametrize("moment", ["before_dataloader", "after_forward", "batch_end", "eval_after_forward"])
def test_an_error_ends_it_and_what_was_recorded_is_kept(tmp_path: Path, moment: str) -> None:
    def boom(self: Any, state: Any, logger: Any) -> None:
        if state.timestamp.batch >= 3:
            raise ZeroDivisionError

    t = trainer(profiler=Profiler(folder=str(tmp_path), active=7), eval_dataloader=batches(1), eval_interval="1ba",
                callbacks=[dataclass(type("Boom", (Callback,), {moment: boom}))()])  # fmt: skip
    with pytest.raises(ZeroDivisionError), t:
        t.fit()
    assert names(tmp_path) == ["rank0-ba2-3.trace.json"]
    trainer(profiler=Profiler(folder=str(tmp_path / "again")), max_duration="5ba").fit()  # torch's can be used again
    assert names(tmp_path / "again") == ["rank0-ba2-5.trace.json"]


def test_a_later_fit_goes_on_in_the_schedule_and_profiles_nothing_twice(tmp_path: Path) -> None:
    t = trainer(profiler=Profiler(folder=str(tmp_path), wait=3, warmup=1, active=1), max_duration="3ba")
    t.fit()
    assert not list(tmp_path.iterdir())
    t.fit("4ba")
    t.fit("8ba")
    assert names(tmp_path) == ["rank0-ba5-5.trace.json"]


def test_the_argument_only_adds_the_callback(tmp_path: Path) -> None:
    profiler = Profiler(folder=str(tmp_path))
    assert trainer(profiler=profiler, callbacks=[Slow2()]).state.callbacks == {"slow2": Slow2(), "profiler": profiler}
    with_labels = trainer(profiler=profiler, callbacks={"profiler": Slow2()})
    assert with_labels.state.callbacks == {"profiler": Slow2(), "profiler_2": profiler}
    trainer(callbacks=[profiler], max_duration="5ba", loggers=[Memory()]).fit()
    assert names(tmp_path) == ["rank0-ba2-5.trace.json"]


@dataclass
class Slow2(Callback):
    pass


def test_one_that_finds_another_at_work_waits_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two of torch's at once end the process."""
    first = Profiler(folder=str(tmp_path / "a"), active=2)
    second = Profiler(folder=str(tmp_path / "b"), warmup=0, active=6)
    trainer(callbacks=[first, second]).fit()
    assert names(tmp_path / "a") == ["rank0-ba2-3.trace.json"]
    assert names(tmp_path / "b") == ["rank0-ba4-6.trace.json"]
    assert [record.message for record in caplog.records] == [
        "the profiler waits: a process has one at a time, and one is at work"
    ]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        trainer(callbacks=[Profiler(folder=str(tmp_path / "c"))]).fit()
    assert not (tmp_path / "c").exists()


def test_each_run_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trainer(profiler=Profiler(), run_name="mine", max_duration="5ba").fit()
    trainer(profiler=Profiler(folder="traces/{run_name}"), run_name="yours", max_duration="5ba").fit()
    found = [str(file.relative_to(tmp_path)) for file in sorted(tmp_path.rglob("*.json"))]
    assert found == ["mine/profile/rank0-ba2-5.trace.json", "traces/yours/rank0-ba2-5.trace.json"]


def test_a_folder_that_cannot_be_is_noticed_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    t = trainer(profiler=Profiler(folder=str(tmp_path / "file" / "profile")))
    with pytest.raises(
        EnvironmentFault, match=f"cannot write to {tmp_path}/file/profile: {tmp_path}/file is no folder"
    ):
        t.fit()
    assert t.state.timestamp.batch == 0


@pytest.mark.parametrize("given", [{"active": 0}, {"wait": -1}, {"repeat": -1}, {"num_traces_to_keep": 0}])
def test_settings_that_mean_nothing_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(PluginError, match=f"Profiler: {next(iter(given))}"):
        Profiler(**given)
