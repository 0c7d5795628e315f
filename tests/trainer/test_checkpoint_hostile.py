"""Checkpoints where the world is against them: folders nobody may enter, full disks, odd names, two at once."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch
from torch import nn

from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.errors import CheckpointError, EnvironmentFault, Interruption, UsageError
from expkit.launch.failure import cause_of
from expkit.trainer.checkpoint.holding import hold, is_held
from expkit.trainer.checkpoint.local import LocalFolder, place
from expkit.trainer.trainer import Trainer
from tests.rights import forbidden
from tests.trainer.doubles import batches, net, recorder, trainer, weights
from tests.trainer.resuming import InterruptAt
from tests.trainer.test_checkpoint_damage import forge

ROOT = Path(__file__).parents[2]


def fitted(**settings: Any) -> Trainer:
    with trainer(**settings) as t:
        t.fit()
    return t


def until(true: Callable[[], bool]) -> None:
    """Wait for it, half a minute at most."""
    ends_s = time.monotonic() + 30
    while not true():
        assert time.monotonic() < ends_s
        time.sleep(0.005)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with the checkpoints of batches 4 and 8."""
    fitted(save_folder=tmp_path / "run")
    return tmp_path / "run"


class TestWhatIsNotOurs:
    """See test_checkpoint_foreign.py as well."""

    def test_a_whole_folder_of_checkpoints_is_not_replaced_by_one(self, saved: Path) -> None:
        with pytest.raises(EnvironmentFault, match="run is there already and holds 'ep1-ba4', which is no part of a"):
            trainer().save_checkpoint(saved)
        assert names(saved) == ["ep1-ba4", "ep2-ba8", "latest"]

    def test_nor_is_one_with_a_users_file_in_it_rotated_away(self, tmp_path: Path) -> None:
        saver = CheckpointSaver(folder=str(tmp_path), save_interval="1ba", keep_last=1)
        fitted(callbacks=[saver], max_duration="1ba")
        (tmp_path / "ep0-ba1" / "why it is good.txt").touch()
        fitted(callbacks=[saver], max_duration="3ba", autoresume=True)
        assert names(tmp_path) == ["ep0-ba1", "ep0-ba3", "latest"]

    def test_nor_is_a_link_followed_or_taken_away(self, saved: Path) -> None:
        (saved / "link").symlink_to(saved / "ep1-ba4")
        with pytest.raises(EnvironmentFault, match="link is a link, and a checkpoint is a folder"):
            trainer().save_checkpoint(saved / "link")
        assert names(saved) == ["ep1-ba4", "ep2-ba8", "latest", "link"]

    @pytest.mark.parametrize("uri", ["memory://bucket", "local://{folder}"])
    def test_nor_is_a_folder_of_the_users_behind_a_uri(self, uri: str, tmp_path: Path) -> None:
        root = uri.format(folder=tmp_path)
        fs, path = fsspec.core.url_to_fs(f"{root}/thesis")
        fs.makedirs(f"{path}/parts")
        fs.pipe(f"{path}/parts/chapter1.tex", b"It is well known that")
        with pytest.raises(EnvironmentFault) as e:
            trainer().save_checkpoint(f"{root}/thesis")
        sentence = f"a checkpoint could not be uploaded to {root}: {root}/thesis is there already and holds 'parts'"
        assert str(e.value).startswith(sentence)
        trainer().save_checkpoint(f"{root}/thesis/mine")
        trainer().save_checkpoint(f"{root}/thesis/mine")
        fs.pipe(f"{path}/mine/notes.txt", b"good")
        with pytest.raises(EnvironmentFault, match="mine is there already"):
            trainer().save_checkpoint(f"{root}/thesis/mine")
        left = sorted(file.rpartition("thesis/")[2] for file in fs.find(path))
        ours = [f"mine/{name}" for name in ("manifest.json", "notes.txt", "rank0.json", "rank0.safetensors")]
        assert left == ["latest", *ours, "parts/chapter1.tex"]
        fs.rm(path, recursive=True)

    def test_what_was_saved_by_hand_is_not_rotated_away(self, tmp_path: Path) -> None:
        def run(**settings: Any) -> None:
            saver = CheckpointSaver(folder=str(tmp_path), save_interval="1ba", keep_last=1)
            with trainer(callbacks=[saver], autoresume=True, **settings) as t:
                t.save_checkpoint(tmp_path / "mine-{batch}")
                t.fit()

        run(max_duration="1ep")
        run()
        assert names(tmp_path) == ["ep2-ba8", "latest", "mine-0", "mine-4"]


class TestRights:
    def test_a_folder_that_may_not_be_written_is_known_before_the_first_batch(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        t = trainer(save_folder=tmp_path / "run")
        with forbidden(tmp_path / "run", 0o500), pytest.raises(EnvironmentFault) as e:
            t.fit()
        assert str(e.value) == f"no checkpoint can be saved in {tmp_path / 'run'}: Permission denied"
        assert t.state.timestamp.batch == 0 and names(tmp_path / "run") == []

    @pytest.mark.parametrize("mode", [0o000, 0o300], ids=["closed", "not to be listed"])
    def test_a_folder_that_may_not_be_read_does_not_begin_anew(self, mode: int, saved: Path) -> None:
        with forbidden(saved, mode):
            for settings in ({"save_folder": saved, "autoresume": True}, {"load_path": saved}):
                with pytest.raises(EnvironmentFault, match=r"run cannot be read: Permission denied$"):
                    trainer(**settings)

    def test_a_checkpoint_that_may_not_be_entered_is_passed_over_and_said(self, saved: Path) -> None:
        with (
            forbidden(saved / "ep2-ba8"),
            pytest.warns(UserWarning, match=r"manifest.json cannot be read: Permission denied; so .*ep1-ba4 is taken"),
        ):
            assert trainer(save_folder=saved, autoresume=True).state.timestamp.batch == 4

    def test_so_is_one_of_whose_files_one_may_not_be_read(self, saved: Path) -> None:
        with (
            forbidden(saved / "ep2-ba8" / "rank0.safetensors"),
            pytest.warns(UserWarning, match=r"rank0.safetensors cannot be read: Permission denied; so .*ep1-ba4 is"),
        ):
            assert trainer(save_folder=saved, autoresume=True).state.timestamp.batch == 4

    def test_links_that_lead_in_a_circle_and_names_that_are_too_long_are_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "circle").symlink_to(tmp_path / "circle")
        for where, why in ((tmp_path / "circle", "Too many levels"), (tmp_path / ("x" * 256), "File name too long")):
            for settings in ({"load_path": where}, {"save_folder": where, "autoresume": True}):
                with pytest.raises(EnvironmentFault, match=f"cannot be read: {why}"):
                    trainer(**settings)


@contextmanager
def no_file_larger_than(num_bytes: int) -> Iterator[None]:
    """EFBIG beyond that, as a full disk says ENOSPC."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestFullDisk:
    def test_it_is_one_sentence_leaves_nothing_behind_and_is_known_as_the_cause(self, tmp_path: Path) -> None:
        model = nn.Sequential(nn.Linear(8, 3000), nn.Linear(3000, 4))  # 156 kB
        t = trainer(model, save_folder=tmp_path / "run")
        with no_file_larger_than(100_000), pytest.raises(EnvironmentFault) as e:
            t.fit()
        assert str(e.value) == f"checkpoint {tmp_path / 'run' / 'ep1-ba4'} could not be written: File too large"
        assert cause_of(e.value) == "disk"
        assert names(tmp_path / "run") == []

    def test_what_was_saved_before_is_gone_on_from(self, saved: Path) -> None:
        longer = trainer(save_folder=saved, autoresume=True, max_duration="4ep")
        with no_file_larger_than(1000), pytest.raises(EnvironmentFault, match="ep3-ba12 could not be written"):
            longer.fit()
        assert names(saved) == ["ep1-ba4", "ep2-ba8", "latest"]
        again = fitted(save_folder=saved, autoresume=True, max_duration="4ep")
        assert torch.equal(weights(again), weights(fitted(max_duration="4ep")))


class TestNames:
    @pytest.mark.parametrize("name", ["a b", "a%20b", "ü 漢字", "a#b?c=d&e", 'it\'s "quoted";', "-rf", "*", "[a]"])
    def test_of_folders_are_taken_as_they_are(self, name: str, tmp_path: Path) -> None:
        folder = tmp_path / name
        fitted(save_folder=folder, max_duration="1ep")
        assert trainer(load_path=folder / "ep1-ba4").state.timestamp.batch == 4
        t = fitted(save_folder=str(tmp_path / "{run_name}"), run_name=name, autoresume=True)
        assert t.state.resumed_from == str(folder / "ep1-ba4") and t.saved_checkpoints[-1] == str(folder / "ep2-ba8")
        assert names(tmp_path) == [name]

    def test_that_no_file_can_have_are_refused(self, tmp_path: Path) -> None:
        for name in ("a\0b", "caf\udce9"):
            for settings in ({"save_folder": tmp_path / name}, {"load_path": tmp_path / name}):
                with pytest.raises(UsageError, match="is no address of checkpoints: it is not valid UTF-8, or has a"):
                    fitted(**settings)

    def test_a_brace_of_ones_own_is_doubled_and_the_error_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"no placeholder \{x\} that can be filled; .*; \{\{ stands for a brace$"):
            fitted(save_folder=tmp_path / "a{x}")
        assert fitted(save_folder=tmp_path / "a{{x}}").saved_checkpoints[-1] == str(tmp_path / "a{x}" / "ep2-ba8")

    def test_a_tilde_is_the_users_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        t = fitted(save_folder="~/run", run_name="a")
        assert t.saved_checkpoints[-1] == str(tmp_path / "run" / "ep2-ba8") and names(tmp_path) == ["run"]
        assert trainer(load_path="~/run").state.timestamp.batch == 8

    def test_latest_is_taken_and_means_the_newest_that_is_whole(self, saved: Path) -> None:
        assert trainer(load_path=saved / "latest").state.timestamp.batch == 8
        with pytest.raises(UsageError, match="no checkpoint can be called 'latest'"):
            trainer().save_checkpoint(saved / "latest")
        fitted(save_folder=saved.parent / "latest", max_duration="1ep")
        assert trainer(load_path=saved.parent / "latest").state.timestamp.batch == 4, "a folder may be called so"

    def test_a_file_of_a_checkpoint_leads_to_the_checkpoint(self, saved: Path) -> None:
        for name in ("manifest.json", "rank0.safetensors"):
            with pytest.raises(CheckpointError, match=rf"{name} is no checkpoint.*, but is in one, {saved}/ep2-ba8$"):
                trainer(load_path=saved / "ep2-ba8" / name)


class TestTwoAtOnce:
    def test_a_second_training_in_the_same_folder_is_refused_before_its_first_batch(self, tmp_path: Path) -> None:
        class Beside(type(recorder())):  # type: ignore[misc]
            def batch_end(self, state: Any, logger: Any) -> None:
                if state.timestamp.batch == 3:
                    with pytest.raises(EnvironmentFault) as e:
                        second.fit()
                    self.said = str(e.value)

        second = trainer(save_folder=tmp_path)
        beside = Beside()
        fitted(save_folder=tmp_path, callbacks=[beside])
        assert f"checkpoints are being saved in {tmp_path} already" in beside.said
        assert second.state.timestamp.batch == 0 and names(tmp_path) == ["ep1-ba4", "ep2-ba8", "latest"]

    def test_two_savers_of_one_training_likewise(self, tmp_path: Path) -> None:
        with pytest.raises(EnvironmentFault, match="by another saver of this one"):
            fitted(save_folder=tmp_path, callbacks=[CheckpointSaver(folder=str(tmp_path))])
        assert names(tmp_path) == []

    def test_one_after_the_other_is_no_matter_even_if_nothing_is_closed(self, tmp_path: Path) -> None:
        trainer(save_folder=tmp_path).fit()
        ask = InterruptAt(10)
        left_open = trainer(save_folder=tmp_path, autoresume=True, max_duration="4ep", callbacks=[ask])
        ask.trainer = left_open
        with pytest.raises(Interruption):
            left_open.fit()
        fitted(save_folder=tmp_path, autoresume=True, max_duration="3ep", callbacks=[InterruptAt(0)])
        left_open.fit()
        assert left_open.state.timestamp.batch == 16

    def test_a_child_that_outlives_a_killed_training_holds_nothing(self, tmp_path: Path) -> None:
        """As a loader's worker does, until it has seen that its parent is gone."""
        held, alive = tmp_path / "held", tmp_path / "alive"
        ended, held_open = os.pipe()
        if (training := os.fork()) == 0:
            os.close(held_open)
            hold(tmp_path)
            held.touch()
            if os.fork() == 0:
                alive.touch()
                os.read(ended, 1)
                os._exit(0)
            signal.pause()
        until(held.exists)
        assert is_held(tmp_path) and hold(tmp_path) is None
        until(alive.exists)
        os.kill(training, signal.SIGKILL)
        os.waitpid(training, 0)
        assert not is_held(tmp_path)
        os.close(held_open)
        os.close(ended)

    def test_where_locks_are_unknown_nobody_is_kept_out_and_nothing_is_swept_away(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Lustre without -o flock: no file system here is like that."""

        def refuse(*_: Any) -> None:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr("fcntl.flock", refuse)
        (tmp_path / f".tmp-{'0' * 32}").mkdir()
        fitted(save_folder=tmp_path)
        assert names(tmp_path) == [f".tmp-{'0' * 32}", "ep1-ba4", "ep2-ba8", "latest"]

    def test_of_two_that_are_saved_by_hand_under_one_name_one_is_there_and_whole(self, tmp_path: Path) -> None:
        def put(letter: str) -> None:
            for _ in range(100):
                with LocalFolder(tmp_path).staged() as staged:
                    for name in ("rank0.json", "rank0.safetensors"):
                        (staged / name).write_text(letter)
                    place(staged, tmp_path / "c")

        with ThreadPoolExecutor(2) as both:
            list(both.map(put, "ab"))
        assert names(tmp_path) == ["c"]
        assert {(tmp_path / "c" / name).read_text() for name in names(tmp_path / "c")} in ({"a"}, {"b"})

    def test_what_was_there_is_there_again_where_its_successor_cannot_take_its_place(self, saved: Path) -> None:
        with pytest.raises(FileNotFoundError):
            place(saved / "nothing", saved / "ep2-ba8")
        assert names(saved) == ["ep1-ba4", "ep2-ba8", "latest"]

    def test_rotation_by_somebody_else_is_no_error(self, saved: Path) -> None:
        folder = LocalFolder(saved)
        folder.remove("ep1-ba4")
        folder.remove("ep1-ba4")
        assert names(saved) == ["ep2-ba8", "latest"]


class TestFuture:
    @pytest.fixture
    def newer(self, saved: Path) -> Path:
        forge(saved / "ep2-ba8", lambda facts: facts.update(version=2, something={"new": 1}))
        return saved

    def test_one_of_a_newer_format_is_not_taken_for_damaged(self, newer: Path) -> None:
        for settings in ({"save_folder": newer, "autoresume": True}, {"load_path": newer}):
            with pytest.raises(
                CheckpointError, match=r"ep2-ba8/manifest.json is of format 2, newer than this expkit, "
            ):
                trainer(**settings)

    def test_nor_overwritten_unless_it_may_be(self, newer: Path) -> None:
        with pytest.raises(CheckpointError, match="newer than this expkit"):
            fitted(save_folder=newer)
        saver = CheckpointSaver(folder=str(newer), overwrite=True)
        assert len(fitted(callbacks=[saver]).saved_checkpoints) == 2

    def test_one_of_before_there_was_kept_is_read(self, saved: Path) -> None:
        forge(saved / "ep2-ba8", lambda facts: facts.pop("kept"))
        assert trainer(load_path=saved).state.timestamp.batch == 8


class Wrapped(nn.Module):
    """The same weights, all under other names."""

    def __init__(self) -> None:
        super().__init__()
        self.module = net()

    def forward(self, x: Any) -> Any:
        return self.module(x)


class TestAnotherModel:
    def test_where_no_name_fits_loose_loading_takes_nothing_and_so_is_refused(self, saved: Path) -> None:
        with pytest.raises(CheckpointError, match=r"lacks module\.0\.bias.*; no weight of it would be taken"):
            trainer(Wrapped(), load_path=saved, load_weights_only=True, load_strict=False)

    def test_what_loose_loading_leaves_is_said(self, saved: Path) -> None:
        model = net()
        model.append(nn.Linear(4, 4))
        with pytest.warns(UserWarning, match=r"taken up in part: its model lacks 4\.bias, 4\.weight$"):
            trainer(model, load_path=saved, load_weights_only=True, load_strict=False)

    def test_of_another_shape_it_is_said_how_to_leave_it_out(self, saved: Path) -> None:
        model = net()
        model[3] = nn.Linear(16, 5)
        for strict in (True, False):
            with pytest.raises(CheckpointError, match=r"model: 3\.bias has shape .*what load_ignore_keys matches"):
                trainer(model, load_path=saved, load_weights_only=True, load_strict=strict)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trainer(model, load_path=saved, load_weights_only=True, load_ignore_keys=["model/3.*"])

    def test_patterns_that_are_one_text_are_not_read_letter_by_letter(self, saved: Path) -> None:
        with pytest.raises(UsageError, match=r"must be a list of patterns, but got 'model/\*'; write \['model/\*'\]"):
            trainer(load_path=saved, load_ignore_keys="model/*")

    def test_a_pattern_that_matches_nothing_says_what_there_is(self, saved: Path) -> None:
        with pytest.warns(UserWarning, match=r"matches 'model\.0\.\*'; paths are like model/<name of a weight> and "):
            trainer(load_path=saved, load_ignore_keys=["model.0.*"])


@pytest.mark.parametrize("cut", [2, 5, 7, 11])
def test_the_best_that_are_kept_across_a_resume_are_those_that_would_have_been(cut: int, tmp_path: Path) -> None:
    def run(folder: Path, ask: InterruptAt) -> None:
        saver = CheckpointSaver(folder=str(folder), save_interval="1ba", keep_last=2, keep_best=2,
                                best_metric="eval/accuracy")  # fmt: skip
        with trainer(callbacks=[saver, ask], eval_dataloader=batches(3), eval_interval="1ba", max_duration="3ep",
                     autoresume=True) as t:  # fmt: skip
            ask.trainer = t
            t.fit()

    run(tmp_path / "whole", InterruptAt(0))
    with pytest.raises(Interruption):
        run(tmp_path / "cut", InterruptAt(cut))
    run(tmp_path / "cut", InterruptAt(0))
    assert names(tmp_path / "cut") == names(tmp_path / "whole")


def test_an_upload_that_failed_is_not_lost_where_nobody_closes(tmp_path: Path) -> None:
    """The last words of a script that never calls close()."""
    script = f"""
import fsspec, tempfile
from expkit.trainer.checkpoint import remote
from expkit.trainer.checkpoint.keep import Keep
remote._PAUSES_S = ()
def refuse(*_, **__):
    raise PermissionError("403 Forbidden")
fsspec.filesystem("memory").put_file = refuse
tempfile.tempdir = {str(tmp_path)!r}
folder = remote.RemoteFolder("memory://bucket/run")
with folder.staged() as staged:
    (staged / "manifest.json").touch()
    folder.commit(staged, "ep1-ba4", Keep())
print("saved")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.stdout == "saved\n", done.stderr
    said = "a checkpoint could not be uploaded to memory://bucket/run: PermissionError: 403 Forbidden"
    assert done.stderr.splitlines() == [said] and names(tmp_path) == []
