"""Checkpoints behind a URI: uploaded in the background, manifest last, errors not lost. `memory://` stands for them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch

from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.errors import CheckpointError, EnvironmentFault, UsageError
from expkit.trainer.checkpoint import remote
from expkit.trainer.checkpoint.remote import RemoteFolder
from expkit.uri import file_system, is_remote
from tests.trainer.doubles import recorder, trainer, weights

RUN = "memory://bucket/run"


@pytest.fixture
def memory() -> Iterator[Any]:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()


def files(fs: Any) -> list[str]:
    return sorted(path.removeprefix("/bucket/run/") for path in fs.find("/bucket/run"))


def trained(**settings: Any) -> Any:
    with trainer(save_folder=RUN, **settings) as t:
        t.fit()
    return t


def test_all_files_are_up_once_the_trainer_is_closed(memory: Any) -> None:
    trained(save_interval="4ba")
    expected = [f"{name}/{file}" for name in ("ep1-ba4", "ep2-ba8")
                for file in ("manifest.json", "rank0.json", "rank0.safetensors")]  # fmt: skip
    assert files(memory) == [*expected, "latest"]
    assert memory.cat("/bucket/run/latest") == b"ep2-ba8\n"


def test_it_is_resumed_from_there_bit_by_bit(memory: Any) -> None:
    whole = trainer(max_duration="3ep")
    whole.fit()
    trained()
    with trainer(save_folder=RUN, autoresume=True, max_duration="3ep") as t:
        assert t.state.resumed_from == f"{RUN}/ep2-ba8"
        t.fit()
        assert t.state.timestamp.batch == 12 and torch.equal(weights(t), weights(whole))
    assert t.saved_checkpoints == [f"{RUN}/{name}" for name in ("ep1-ba4", "ep2-ba8", "ep3-ba12")]


def test_loading_one_of_them_and_the_newest_of_them(memory: Any) -> None:
    trained()
    assert trainer(load_path=f"{RUN}/ep1-ba4").state.timestamp.batch == 4
    assert trainer(load_path=RUN).state.timestamp.batch == 8
    assert trainer(load_path=RUN, load_weights_only=True).state.timestamp.batch == 0
    with pytest.raises(CheckpointError, match=r"there is no checkpoint at memory://bucket/nothing$"):
        trainer(load_path="memory://bucket/nothing")


def test_rotation_goes_by_what_lies_there(memory: Any) -> None:
    def run(**settings: Any) -> None:
        saver = CheckpointSaver(folder=RUN, save_interval="1ba", keep_last=2)
        with trainer(callbacks=[saver], autoresume=True, **settings) as t:
            t.fit()

    run(max_duration="5ba")
    assert {path.split("/")[0] for path in files(memory)} == {"ep1-ba4", "ep1-ba5", "latest"}
    run()
    assert {path.split("/")[0] for path in files(memory)} == {"ep1-ba7", "ep2-ba8", "latest"}


def test_a_damaged_newest_is_passed_over(memory: Any) -> None:
    trained()
    memory.pipe("/bucket/run/ep2-ba8/rank0.json", b"{}")
    with pytest.warns(UserWarning, match=r"ep2-ba8.* damaged: rank0.json has 2 bytes .*; so .*ep1-ba4 is taken"):
        assert trainer(save_folder=RUN, autoresume=True).state.timestamp.batch == 4


def test_a_file_that_is_gone_there_is_damage_like_any_other(memory: Any) -> None:
    trained()
    memory.rm("/bucket/run/ep2-ba8/rank0.safetensors")
    with pytest.warns(UserWarning, match=r"run/ep2-ba8 is damaged: rank0.safetensors is not there; so .*ep1-ba4 is"):
        assert trainer(save_folder=RUN, autoresume=True).state.timestamp.batch == 4


def test_half_an_upload_is_no_checkpoint(memory: Any) -> None:
    trained()
    memory.rm("/bucket/run/ep2-ba8/manifest.json")
    assert trainer(save_folder=RUN, autoresume=True).state.timestamp.batch == 4
    with trainer(save_folder=RUN, autoresume=True) as t:
        t.fit()
    assert "ep2-ba8/manifest.json" in files(memory)


def test_a_manifest_that_names_other_files_is_refused_before_any_is_fetched(memory: Any, tmp_path: Path) -> None:
    from tests.trainer.test_checkpoint_damage import forge

    trained()
    memory.get("/bucket/run/ep2-ba8", str(tmp_path / "c"), recursive=True)
    forge(tmp_path / "c", lambda facts: facts["files"].update({"../x.json": {"sha256": "0" * 64, "size": 0}}))
    memory.put(str(tmp_path / "c" / "manifest.json"), "/bucket/run/ep2-ba8/manifest.json")
    with pytest.raises(CheckpointError, match=r"memory://bucket/run/ep2-ba8/manifest.json .* has no file '../x.json'"):
        trainer(load_path=f"{RUN}/ep2-ba8")


class Slow:
    """A file system on which every upload waits for a gate, and notes whose thread it is."""

    def __init__(self, fs: Any) -> None:
        self.gate, self.threads = threading.Event(), set[str]()
        self._put = fs.put_file

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(30)
        return self._put(*args, **kwargs)


def test_training_does_not_wait_for_uploads_and_close_does(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(memory)
    monkeypatch.setattr(type(memory), "put_file", slow)
    t = trainer(save_folder=RUN)
    t.fit()
    assert files(memory) == [] and t.state.timestamp.batch == 8
    threading.Timer(0.2, slow.gate.set).start()
    began_s = time.monotonic()
    t.close()
    assert time.monotonic() - began_s > 0.1 and len(files(memory)) == 7
    assert all(name.startswith("expkit-upload") for name in slow.threads)


def test_an_upload_that_fails_for_a_moment_is_tried_again(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PAUSES_S", (0.0, 0.0))
    failures, put = [OSError("reset by peer"), OSError("reset by peer")], memory.put_file

    def flaky(*args: Any, **kwargs: Any) -> Any:
        if failures:
            raise failures.pop()
        return put(*args, **kwargs)

    monkeypatch.setattr(type(memory), "put_file", lambda self, *args, **kwargs: flaky(*args, **kwargs))
    trained()
    assert len(files(memory)) == 7


class TestErrors:
    @pytest.fixture
    def broken(self, memory: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr(remote, "_PAUSES_S", (0.0, 0.0))

        def refuse(*_: Any, **__: Any) -> None:
            raise PermissionError("403 Forbidden")

        monkeypatch.setattr(type(memory), "put_file", refuse)
        return memory

    def test_they_end_training_at_the_next_batch(self, broken: Any) -> None:
        class Waiting(type(recorder())):  # type: ignore[misc]
            def batch_start(self, state: Any, logger: Any) -> None:
                time.sleep(0.05)

        t = trainer(save_folder=RUN, save_interval="1ba", callbacks=[Waiting()])
        with pytest.raises(EnvironmentFault, match=r"could not be uploaded to memory://bucket/run: .*403 Forbidden"):
            t.fit()
        assert t.state.timestamp.batch < 8

    def test_or_come_out_at_close(self, broken: Any) -> None:
        t = trainer(save_folder=RUN, save_interval=None)
        t.fit()
        with pytest.raises(EnvironmentFault, match="403 Forbidden"):
            t.close()
        t.close()

    def test_nothing_is_left_on_this_machine(
        self, broken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        t = trainer(save_folder=RUN, save_interval=None)
        t.fit()
        with pytest.raises(EnvironmentFault):
            t.close()
        assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_on_this_machine(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trained(save_interval="1ba")
    trainer(load_path=RUN)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_ones_own_is_up_when_it_is_said_to_be(memory: Any) -> None:
    t = trainer()
    assert t.save_checkpoint(f"{RUN}/mine-{{batch}}", weights_only=True) == f"{RUN}/mine-0"
    assert files(memory) == ["latest", "mine-0/manifest.json", "mine-0/rank0.json", "mine-0/rank0.safetensors"]


def test_a_scheme_that_needs_a_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="nosuch://x is no address of files"):
        file_system("nosuch://x")
    monkeypatch.setitem(sys.modules, "s3fs", None)  # whether or not it is installed here
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(EnvironmentFault, match=r"s3://bucket/x needs a package that is not installed: .*s3fs"):
        file_system("s3://bucket/x")
    with pytest.raises(EnvironmentFault) as e:
        file_system("s3://key:secret@bucket/x")
    assert "secret" not in str(e.value)


def test_what_is_remote_and_what_is_a_path() -> None:
    assert is_remote("s3://a/b") and is_remote("memory://a") and not is_remote("file:///a")
    assert not is_remote("/a/b") and not is_remote("a:b/c") and not is_remote("C://a")


def test_numbers_rise_though_nothing_is_up_yet(memory: Any) -> None:
    folder = RemoteFolder(RUN)
    assert [folder.next_number() for _ in range(3)] == [1, 2, 3]


def test_a_place_that_cannot_be_asked_is_said_in_a_sentence(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(Exception):
        """Of a library of its own."""

    def refuse(*_: Any, **__: Any) -> None:
        raise Refused("no credentials\n  Traceback ...")

    trained()
    newest = f"{RUN}/ep2-ba8"
    for method, where in (("ls", RUN), ("cat_file", RUN), ("get_file", newest), ("exists", RUN)):
        with monkeypatch.context() as patched:
            patched.setattr(type(memory), method, refuse)
            with pytest.raises(EnvironmentFault) as e:
                trainer(load_path=RUN, save_folder=RUN, autoresume=method != "exists")
            assert str(e.value) == f"{where} cannot be read: Refused no credentials"
