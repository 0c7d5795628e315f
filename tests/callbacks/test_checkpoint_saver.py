"""CheckpointSaver: when it saves, what stays, and where; all of it read from the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit.algorithms.ema import EMA
from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.duration import Timestamp
from expkit.errors import EnvironmentFault, Interruption, PluginError, UsageError
from expkit.trainer.checkpoint.keep import Found, Keep, to_remove
from expkit.trainer.checkpoint.local import LocalFolder
from expkit.trainer.checkpoint.manifest import Manifest, read_manifest
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, batches, recorder, trainer, weights
from tests.trainer.resuming import InterruptAt


def saving(folder: Path, interval: str | None = "1ep", **settings: Any) -> Trainer:
    own = {name: settings.pop(name) for name in list(settings) if name in CheckpointSaver.__dataclass_fields__}
    saver = CheckpointSaver(folder=str(folder), save_interval=interval, **own)
    return trainer(callbacks=[*settings.pop("callbacks", []), saver], **settings)


def names(folder: Path) -> list[str]:
    return [one.name for one in LocalFolder(folder).found()[0]]


def saved(folder: Path, interval: str | None, **settings: Any) -> list[str]:
    with saving(folder, interval, **settings) as t:
        t.fit()
        assert t.saved_checkpoints == [str(folder / name) for name in names(folder)]
    return names(folder)


INTERVALS = [
    ("1ep", "2ep", ["ep1-ba4", "ep2-ba8"]),
    ("0.5ep", "2ep", ["ep0-ba2", "ep1-ba4", "ep1-ba6", "ep2-ba8"]),
    ("3ba", "2ep", ["ep0-ba3", "ep1-ba6", "ep2-ba8"]),
    ("4ba", "2ep", ["ep1-ba4", "ep2-ba8"]),
    ("7sp", "4ba", ["ep0-ba2", "ep0-ba3", "ep1-ba4"]),
    ("100sp", "2ep", ["ep2-ba8"]),
    ("0.25dur", "2ep", ["ep0-ba2", "ep1-ba4", "ep1-ba6", "ep2-ba8"]),
    ("1dur", "2ep", ["ep2-ba8"]),
    (None, "5ba", ["ep1-ba5"]),
    ("1000sec", "5ba", ["ep1-ba5"]),
    ("2iter", "2ep", ["ep1-ba6", "ep2-ba8"]),
]


@pytest.mark.parametrize(("interval", "duration", "expected"), INTERVALS)
def test_it_saves_at_its_interval_and_at_the_end_and_no_batch_twice(
    interval: str | None, duration: str, expected: list[str], tmp_path: Path
) -> None:
    memory = Memory()
    length = {"iteration_length": "3ba"} if interval == "2iter" else {}
    assert saved(tmp_path, interval, max_duration=duration, loggers=[memory], **length) == expected
    addresses = [payload["address"] for kind, _, payload in memory.events if kind == "checkpoint"]
    assert addresses == [str(tmp_path / name) for name in expected]
    assert (tmp_path / "latest").read_text() == f"{expected[-1]}\n"


def test_an_epoch_that_ends_is_over_in_its_checkpoint(tmp_path: Path) -> None:
    saved(tmp_path, "1ep", max_duration="9ba")
    now = read_manifest(tmp_path / "ep1-ba4").timestamp
    assert (now.epoch, now.batch, now.batch_in_epoch) == (1, 4, 0)


def test_the_last_one_holds_what_the_last_evaluation_measured(tmp_path: Path) -> None:
    with saving(tmp_path, "1ba", algorithms=[EMA(half_life="2ba")], eval_dataloader=batches(2)) as t:
        t.fit()
    loaded = trainer(load_path=tmp_path / "ep2-ba8", load_weights_only=True)
    assert torch.equal(weights(loaded), weights(t)), "the average"
    manifest = read_manifest(tmp_path / "ep2-ba8")
    assert manifest.evaluated and manifest.metrics == t.state.metrics


def test_stopped_early_it_saves_where_it_stopped(tmp_path: Path) -> None:
    class Stopping(type(recorder())):  # type: ignore[misc]
        def batch_end(self, state: Any, logger: Any) -> None:
            if state.timestamp.batch == 3:
                state.stop("enough")

    assert saved(tmp_path, "2ba", callbacks=[Stopping()]) == ["ep0-ba2", "ep0-ba3"]


def test_interrupted_it_saves_and_another_error_leaves_what_there_is(tmp_path: Path) -> None:
    ask = InterruptAt(3)
    with saving(tmp_path / "a", "2ba", callbacks=[ask]) as t:
        ask.trainer = t
        with pytest.raises(Interruption):
            t.fit()
    assert names(tmp_path / "a") == ["ep0-ba2", "ep0-ba3"]

    class Failing(type(recorder())):  # type: ignore[misc]
        def before_loss(self, state: Any, logger: Any) -> None:
            if state.timestamp.batch == 3:
                raise RuntimeError("no more")

    with saving(tmp_path / "b", "2ba", callbacks=[Failing()]) as t, pytest.raises(RuntimeError, match="no more"):
        t.fit()
    assert names(tmp_path / "b") == ["ep0-ba2"], "in the middle of a batch nothing is whole"


def test_a_training_that_diverged_does_not_push_out_what_was_good(tmp_path: Path) -> None:
    data = batches()
    data[2][0][0, 0] = float("nan")
    with saving(tmp_path, "1ba", keep_last=1, train_dataloader=data) as t:
        t.fit()
    assert t.diverged and names(tmp_path) == ["ep0-ba2"]


class TestRotation:
    def test_the_last_so_many(self, tmp_path: Path) -> None:
        assert saved(tmp_path, "1ba", keep_last=2) == ["ep1-ba7", "ep2-ba8"]

    def test_it_survives_a_resume_because_it_is_read_from_the_disk(self, tmp_path: Path) -> None:
        ask = InterruptAt(5)
        with saving(tmp_path, "1ba", keep_last=3, callbacks=[ask]) as t:
            ask.trainer = t
            with pytest.raises(Interruption):
                t.fit()
        assert names(tmp_path) == ["ep0-ba3", "ep1-ba4", "ep1-ba5"]
        with saving(tmp_path, "1ba", keep_last=3, callbacks=[InterruptAt(0)], autoresume=True) as t:
            t.fit()
        assert names(tmp_path) == ["ep1-ba6", "ep1-ba7", "ep2-ba8"]
        assert sorted(p.name for p in tmp_path.iterdir()) == ["ep1-ba6", "ep1-ba7", "ep2-ba8", "latest"]

    def test_the_best_stay_beside_the_last(self, tmp_path: Path) -> None:
        """Values by batch: the best is neither the first nor the last."""
        settings: Any = {"eval_dataloader": batches(2), "eval_interval": "1ba", "keep_last": 1, "max_duration": "3ep"}
        kept = saved(
            tmp_path, "1ba", keep_best=2, best_metric="eval/accuracy", loggers=[memory := Memory()], **settings
        )
        by_value = sorted(memory.series("eval/accuracy"), key=lambda row: (-row[1], row[0]))
        best = {batch for batch, _ in by_value[:2]}
        assert {read_manifest(tmp_path / name).timestamp.batch for name in kept} == best | {12}

    def test_only_what_was_evaluated_where_it_was_saved_can_be_best(self) -> None:
        rows = [(1, 0.9, False), (2, 0.5, True), (3, 0.7, True), (4, float("nan"), True), (5, 0.6, True)]
        found = [_found(number, {"eval/a": value}, evaluated) for number, value, evaluated in rows]
        assert to_remove(found, Keep(1, 1, "eval/a")) == ["c1", "c2", "c4"]
        assert to_remove(found, Keep(1, 1, "eval/a", "min")) == ["c1", "c3", "c4"]
        assert to_remove(found, Keep(1, 5, "eval/a")) == ["c1", "c4"]
        assert to_remove(found, Keep(2)) == ["c1", "c2", "c3"]
        assert to_remove(found, Keep(1, 1, "eval/other")) == ["c1", "c2", "c3", "c4"]
        assert to_remove(found, Keep()) == []

    def test_of_equal_ones_the_older_stays(self) -> None:
        found = [_found(number, {"eval/a": 0.5}, True) for number in (3, 1, 2)]
        assert to_remove(found, Keep(1, 1, "eval/a")) == ["c2"]

    def test_a_metric_that_there_is_not_is_said_at_the_first_evaluation(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="best_metric is 'eval/acc', but the evaluators gave eval/accuracy"):
            saved(tmp_path, "1ba", keep_last=1, keep_best=1, best_metric="eval/acc", eval_dataloader=batches(2))
        with pytest.warns(UserWarning, match="best_metric is 'val/accuracy', but the evaluators gave eval/accuracy"):
            saved(
                tmp_path / "b", "1ba", keep_last=1, keep_best=1, best_metric="val/accuracy", eval_dataloader=batches(2)
            )

    def test_settings_that_make_no_sense_are_refused(self) -> None:
        with pytest.raises(ValueError, match="keep_best needs best_metric"):
            CheckpointSaver(keep_last=1, keep_best=1)
        with pytest.raises(ValueError, match="keep_best needs keep_last"):
            CheckpointSaver(keep_best=1, best_metric="eval/a")
        with pytest.raises(PluginError, match="keep_last"):
            CheckpointSaver(keep_last=0)


def _found(number: int, metrics: dict[str, float], evaluated: bool) -> Found:
    labels = ["eval"] if evaluated else []
    return Found(f"c{number}", Manifest(number, Timestamp(batch=number), {}, metrics=metrics, evaluated=labels))


class TestOverwriting:
    def test_later_ones_of_another_training_are_not_overwritten(self, tmp_path: Path) -> None:
        saved(tmp_path, "2ba")
        with pytest.raises(UsageError) as e:
            saved(tmp_path, "2ba")
        assert f"training begins at batch 0, but there is {tmp_path / 'ep2-ba8'} already" in str(e.value)

    def test_unless_they_may(self, tmp_path: Path) -> None:
        saved(tmp_path, "2ba")
        saved(tmp_path, "2ba", overwrite=True, max_duration="1ep", seed=1)
        assert names(tmp_path) == ["ep1-ba6", "ep2-ba8", "ep0-ba2", "ep1-ba4"], "by age; what is newest is plain"
        assert (tmp_path / "latest").read_text() == "ep1-ba4\n"
        assert trainer(load_path=tmp_path, seed=1).state.timestamp.batch == 4

    def test_going_on_from_one_is_no_overwriting(self, tmp_path: Path) -> None:
        saved(tmp_path, "2ba")
        with saving(tmp_path, "2ba", load_path=tmp_path / "ep2-ba8", max_duration="3ep") as t:
            t.fit()
        assert names(tmp_path)[-1] == "ep3-ba12"

    def test_resuming_needs_no_permission(self, tmp_path: Path) -> None:
        """Between a rename and the next, the newest may be broken: it is passed over, and replaced."""
        saved(tmp_path, "2ba")
        (tmp_path / "ep2-ba8" / "rank0.json").write_text("{}")
        with pytest.warns(UserWarning, match="ep1-ba6 is taken"):
            t = saving(tmp_path, "2ba", autoresume=True)
        with t:
            t.fit()
        assert names(tmp_path) == ["ep0-ba2", "ep1-ba4", "ep1-ba6", "ep2-ba8"]


class TestNames:
    def test_placeholders_of_the_folder_and_of_the_moment(self, tmp_path: Path) -> None:
        folder = tmp_path / "{run_name}" / "r{rank}-{local_rank}-{world_size}-{local_world_size}-{node_rank}"
        name = "{epoch}_{batch:04d}_{batch_in_epoch}_{sample}_{sample_in_epoch}_{token}_{token_in_epoch}_{world_size}"
        with saving(folder, "3ba", name=name, run_name="a", max_duration="3ba") as t:
            t.fit()
        assert t.saved_checkpoints == [str(tmp_path / "a" / "r0-0-1-1-0" / "0_0003_3_18_18_0_0_1")]

    def test_seconds(self, tmp_path: Path) -> None:
        with saving(tmp_path, "3ba", name="{total_wct:.3f}-{epoch_wct:.3f}-{batch_wct:.3f}", max_duration="6ba") as t:
            t.fit()
        total, epoch, batch = map(float, names(tmp_path)[-1].split("-"))
        assert 0 <= batch <= epoch <= total < 100

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"name": "{lr}"}, r"has no placeholder \{lr\} that can be filled; there are: run_name"),
            ({"name": "{batch.__class__}"}, r"no placeholder \{batch.__class__\}"),
            ({"name": "{batch!r}"}, "no placeholder"),
            ({"name": "{batch"}, "is no text with placeholders"),
            ({"name": "{run_name:04d}"}, "cannot be written"),
            ({"name": "a/{batch}"}, "is that of one folder and does not begin with a dot"),
            ({"name": ".{batch}"}, "does not begin with a dot"),
        ],
    )
    def test_what_cannot_be_filled_is_said_before_the_first_batch(
        self, settings: Any, sentence: str, tmp_path: Path
    ) -> None:
        t = saving(tmp_path, **settings)
        with pytest.raises(UsageError, match=sentence):
            t.fit()
        assert t.state.timestamp.batch == 0

    def test_a_folder_knows_no_moment(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"has no placeholder \{batch\}"):
            saving(tmp_path / "{batch}").fit()

    def test_one_name_for_all_means_one_checkpoint(self, tmp_path: Path) -> None:
        assert saved(tmp_path, "2ba", name="only") == ["only"]
        assert read_manifest(tmp_path / "only").timestamp.batch == 8

    def test_a_run_without_a_name_gets_one_of_its_own(self, tmp_path: Path) -> None:
        runs = {saving(tmp_path).state.run_name for _ in range(3)}
        assert len(runs) == 3


class TestTheDisk:
    def test_what_a_killed_process_left_is_swept_away_and_what_a_living_one_writes_is_not(self, tmp_path: Path) -> None:
        (tmp_path / f".tmp-{'0' * 32}").mkdir()
        (tmp_path / f".old-{'0' * 32}").mkdir()
        with LocalFolder(tmp_path).staged() as alive:
            saved(tmp_path, None)
            assert alive.is_dir()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["ep2-ba8", "latest"]

    def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(EnvironmentFault, match=r"no checkpoint can be saved in .*file: Not a directory"):
            saved(tmp_path / "file", None)

    def test_state_that_no_checkpoint_can_hold_is_named_and_leaves_nothing_behind(self, tmp_path: Path) -> None:
        class Odd(type(recorder())):  # type: ignore[misc]
            def state_dict(self) -> dict[str, Any]:
                return {"seen": {1, 2}}

        with pytest.raises(EnvironmentFault, match="callbacks/odd/seen is of type set, which no checkpoint can hold"):
            saved(tmp_path, "3ba", callbacks=[Odd()])
        assert list(tmp_path.iterdir()) == []

    def test_all_may_read_it_who_may_read_the_folder(self, tmp_path: Path) -> None:
        saved(tmp_path, None)
        modes = {path.stat().st_mode for path in (tmp_path / "ep2-ba8").iterdir()}
        assert len(modes) == 1

    def test_the_manifest_says_what_was_trained(self, tmp_path: Path) -> None:
        saved(tmp_path, None, algorithms=[EMA(half_life="2ba")], run_name="a", seed=3)
        facts = json.loads((tmp_path / "ep2-ba8" / "manifest.json").read_text())
        assert facts["config"]["algorithms"]["ema"]["half_life"] == "2ba" and facts["config"]["seed"] == 3
        assert facts["run_name"] == "a" and facts["versions"]["torch"] == torch.__version__
        assert set(facts["files"]) == {"rank0.json", "rank0.safetensors"} and len(facts["config_sha256"]) == 64


def test_weights_only(tmp_path: Path) -> None:
    assert saved(tmp_path, "1ep", weights_only=True) == ["ep1-ba4", "ep2-ba8"]
    assert read_manifest(tmp_path / "ep1-ba4").weights_only


def test_several_savers_beside_each_other(tmp_path: Path) -> None:
    every, best = CheckpointSaver(folder=str(tmp_path / "a"), save_interval="2ba"), CheckpointSaver(
        folder=str(tmp_path / "b"), save_interval=None, weights_only=True)  # fmt: skip
    with trainer(callbacks=[every, best], save_folder=tmp_path / "c", autoresume=True) as t:
        t.fit()
    assert [len(names(tmp_path / name)) for name in "abc"] == [4, 1, 2]
    assert trainer(callbacks=[CheckpointSaver(folder=str(tmp_path / "a"))], autoresume=True).state.timestamp.batch == 8


def test_a_checkpoint_at_a_path_of_ones_own_replaces_the_one_there(tmp_path: Path) -> None:
    t = trainer()
    first = t.save_checkpoint(tmp_path / "mine")
    t.fit()
    assert t.save_checkpoint(tmp_path / "mine") == first == str(tmp_path / "mine")
    assert read_manifest(tmp_path / "mine").timestamp.batch == 8
    assert t.saved_checkpoints == []
