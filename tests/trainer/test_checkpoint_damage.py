"""Damaged, truncated, foreign and malicious files: each refused in one sentence, nothing executed, nothing changed."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit.errors import CheckpointError
from expkit.trainer.checkpoint.manifest import sum_of
from tests.trainer.doubles import trainer, weights

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoints of batches 2, 4, 6 and 8."""
    folder = tmp_path_factory.mktemp("saved")
    t = trainer(save_folder=folder, save_interval="2ba")
    with t:
        t.fit()
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return shutil.copytree(saved, tmp_path / "run")


class Payload:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.trace),))


def rewrite(checkpoint: Path, name: str, content: bytes) -> None:
    """Another content for a file, with a manifest that vouches for it: whoever wants to harm us can count."""
    (checkpoint / name).write_bytes(content)
    forge(checkpoint, lambda facts: facts["files"].update({name: _facts(content)}))


def forge(checkpoint: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = checkpoint / "manifest.json"
    facts = json.loads(path.read_text())
    facts.pop("manifest_sha256")
    change(facts)
    path.write_text(json.dumps({**facts, "manifest_sha256": sum_of(facts)}))


def _facts(content: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def json_of(checkpoint: Path) -> Any:
    return json.loads((checkpoint / "rank0.json").read_text())


def edit(change: Callable[[Any], object]) -> Damage:
    """Change what stands in rank0.json, and vouch for it."""

    def damage(checkpoint: Path) -> None:
        content = json_of(checkpoint)
        changed = change(content)
        rewrite(checkpoint, "rank0.json", json.dumps(content if changed is None else changed).encode())

    return damage


def put(path: str, value: Any) -> Damage:
    """Another value at a path of rank0.json."""

    def change(content: Any) -> None:
        *parents, last = path.split("/")
        for key in parents:
            content = content[key]
        content[last] = value

    return edit(change)


def flip(checkpoint: Path) -> None:
    path = checkpoint / "rank0.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))


def cut(name: str) -> Damage:
    def damage(checkpoint: Path) -> None:
        path = checkpoint / name
        path.write_bytes(path.read_bytes()[:-7])

    return damage


def replaced(before: str, after: str) -> Damage:
    """Another text in the manifest."""

    def damage(checkpoint: Path) -> None:
        path = checkpoint / "manifest.json"
        path.write_text(path.read_text().replace(before, after))

    return damage


def header(text: bytes) -> Damage:
    return lambda c: rewrite(c, "rank0.safetensors", struct.pack("<Q", len(text)) + text)


def deep(checkpoint: Path) -> None:
    rewrite(checkpoint, "rank0.json", b'{"model": ' + b"[" * 200_000 + b"]" * 200_000 + b"}")


DAMAGED: dict[str, tuple[Damage, str]] = {
    "a bit flipped": (flip, "is damaged: the content of rank0.safetensors is not what was written"),
    "tensors cut short": (cut("rank0.safetensors"), "is damaged: rank0.safetensors has .* bytes instead of"),
    "the rest cut short": (cut("rank0.json"), "is damaged: rank0.json has .* bytes instead of"),
    "manifest cut short": (cut("manifest.json"), r"manifest.json cannot be used: it is no JSON"),
    "a file gone": (lambda c: (c / "rank0.json").unlink(), "is damaged: rank0.json is not there"),
    "a folder in its place": (
        lambda c: ((c / "rank0.json").unlink(), (c / "rank0.json").mkdir()), "rank0.json is not there"),
    "manifest changed": (replaced('"batch": 8', '"batch": 9'), "its checksum does not fit its content"),
    "manifest empty": (lambda c: (c / "manifest.json").write_text(""), "it is no JSON"),
    "manifest binary": (lambda c: (c / "manifest.json").write_bytes(b"\x80\x04\xff"), "something binary"),
    "manifest of something else": (lambda c: (c / "manifest.json").write_text("{}"), "is not the manifest of an"),
    "manifest no map": (lambda c: (c / "manifest.json").write_text("[1]"), "the whole must be a map"),
}  # fmt: skip

MALICIOUS: dict[str, tuple[Damage, str]] = {
    "a newer format": (lambda c: forge(c, lambda f: f.update(version=2)), "is of format 2, newer than this expkit"),
    "path traversal": (
        lambda c: forge(c, lambda f: f["files"].update({"../../evil.json": _facts(b"")})),
        "a checkpoint has no file '../../evil.json'"),
    "an absolute path": (
        lambda c: forge(c, lambda f: f["files"].update({"/etc/passwd": _facts(b"")})), "has no file '/etc/passwd'"),
    "no files": (lambda c: forge(c, lambda f: f.update(files={})), "its manifest names no rank0"),
    "files of a wrong type": (lambda c: forge(c, lambda f: f.update(files=7)), "files must be a map, but is 7"),
    "a number below zero": (lambda c: forge(c, lambda f: f["timestamp"].update(batch=-1)), "batch must be a whole"),
    "a number like the sea": (lambda c: forge(c, lambda f: f["timestamp"].update(batch=10**30)), "must be a whole"),
    "a counter of its own": (lambda c: forge(c, lambda f: f["timestamp"].update(fun=1)), "has a counter 'fun'"),
    "a metric that is none": (lambda c: forge(c, lambda f: f.update(metrics={"a": "x"})), "metric 'a' is no number"),
    "a json of two terabytes": (
        lambda c: forge(c, lambda f: f["files"]["rank0.json"].update(size=2 << 40)), "larger than any that we write"),
    "nested deeply": (deep, "nested deeper than anything we write"),
    "a key twice": (lambda c: rewrite(c, "rank0.json", b'{"model": {}, "model": {}}'), "a key of it comes twice"),
    "NaN as a word": (lambda c: rewrite(c, "rank0.json", b'{"model": NaN}'), "NaN is no JSON"),
    "a number of a million digits": (lambda c: rewrite(c, "rank0.json", b"1" * 10**6), "rank0.json cannot be used"),
    "no map": (edit(lambda content: [content]), "the whole must be a map"),
    "a part that is no map": (put("model", [1, 2]), "rank0.json cannot be used: model must be a map"),
    "a mark of its own": (put("model/0.bias", {"$call": "os.system"}), r"the mark '\$call' is none of ours"),
    "a mark among keys": (put("model/0.bias", {"$tensor": "model/0.bias", "x": 1}), "refers to a tensor"),
    "a tensor that is not there": (put("model/0.bias", {"$tensor": "../x"}), r"a tensor '../x' that is not there"),
    "a reference that is no name": (put("model/0.bias", {"$tensor": ["a"]}), "that is not there"),
    "strides beyond its memory": (
        put("model/0.weight", {"$tensor": "model/0.weight", "stride": [10**9, 1]}), "cannot have the strides"),
    "strides that overlap": (
        put("model/0.weight", {"$tensor": "model/0.weight", "stride": [0, 1]}), "cannot have the strides"),
    "a key that is a list": (put("model", {"$items": [[[1], 2]]}), "a key of a map is neither text nor number"),
    "a pair that is none": (put("model", {"$items": [3]}), "no pair of key and value"),
    "a list for a weight": (put("model/0.bias", [1.0] * 16), "0.bias is a list there and a Parameter|Tensor here"),
    "a time that is a text": (put("training/timestamp", "now"), "timestamp must be a map, but is 'now'"),
    "a time before the beginning": (put("training/train_s", -1.0), "train_s must be seconds"),
    "a batch that is a list": (put("training/evaluated_at", [1]), "evaluated_at must be a map"),
    "a metric that is a list": (put("training/metrics", {"eval/a": [1]}), "metric eval/a must be a number"),
    "no clocks": (put("clocks/seconds", {}), "clocks: data_wait_s must be a number"),
    "groups that are none": (put("optimizer/groups", 3), "optimizer: groups must be a list"),
    "a group that is none": (put("optimizer/groups", [3]), "a parameter group must be a map"),
    "too many groups": (
        edit(lambda c: c["optimizer"]["groups"].append({"params": []})), "2 parameter groups there and 1"),
    "state that is none": (put("optimizer/state", {"0.weight": 3}), "state of 0.weight must be a map"),
    "state of another shape": (
        put("optimizer/state/0.weight/momentum_buffer", {"$tensor": "model/3.weight"}), "has shape .* there"),
    "generators that are none": (put("rng/torch", [1, 2]), "rng: a generator of torch is a row of bytes"),
    "generators of the wrong size": (put("rng/torch", {"$tensor": "rng/python/words"}), "a row of bytes"),
    "generators with words too large": (
        put("rng/python/words", {"$tensor": "model/0.bias"}), "a generator has 625 words of 32 bits"),
    "seeds that are none": (put("loader/seeds", ["a"]), "loader: "),
    "no safetensors": (lambda c: rewrite(c, "rank0.safetensors", b"not one"), "is no safetensors file"),
    "an empty file": (lambda c: rewrite(c, "rank0.safetensors", b""), "is no safetensors file"),
    "a header of 2**63 bytes": (
        lambda c: rewrite(c, "rank0.safetensors", struct.pack("<Q", 2**63)), "is no safetensors file"),
    "tensors beyond the file": (
        header(b'{"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}}'), "is no safetensors file"),
    "tensors on top of each other": (
        header(b'{"a":{"dtype":"F32","shape":[0],"data_offsets":[9,2]}}'), "is no safetensors file"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*DAMAGED, *MALICIOUS])
def test_it_is_refused_in_one_sentence_and_nothing_is_changed(name: str, folder: Path) -> None:
    damage, sentence = {**DAMAGED, **MALICIOUS}[name]
    damage(folder / "ep2-ba8")
    with pytest.raises(CheckpointError, match=sentence) as e:
        trainer(load_path=folder / "ep2-ba8")
    assert "\n" not in str(e.value) and len(str(e.value)) < 1000
    assert "ep2-ba8" in str(e.value), "it says which"


@pytest.mark.parametrize("name", DAMAGED)
def test_autoresume_falls_back_to_the_one_before_and_says_so(name: str, folder: Path) -> None:
    DAMAGED[name][0](folder / "ep2-ba8")
    with pytest.warns(UserWarning, match=r"ep2-ba8.*; so .*ep1-ba6 is taken"):
        t = trainer(save_folder=folder, save_interval="2ba", autoresume=True)
    assert t.state.timestamp.batch == 6
    t.fit()
    whole = trainer()
    whole.fit()
    assert torch.equal(weights(t), weights(whole))
    assert trainer(load_path=folder / "ep2-ba8").state.timestamp.batch == 8, "the damaged one is replaced"


def test_without_a_manifest_it_never_was_a_checkpoint(folder: Path) -> None:
    (folder / "ep2-ba8" / "manifest.json").unlink()
    with pytest.warns(UserWarning, match="ep2-ba8 is no checkpoint: it has no manifest.json; so .*ep1-ba6 is taken"):
        assert trainer(save_folder=folder, autoresume=True).state.timestamp.batch == 6


def test_where_none_is_whole_it_does_not_begin_anew(folder: Path) -> None:
    for name in ("ep0-ba2", "ep1-ba4", "ep1-ba6", "ep2-ba8"):
        flip(folder / name)
    with pytest.raises(CheckpointError, match=r"no checkpoint can be used: .*ep2-ba8 is damaged.*ep0-ba2 is damaged"):
        trainer(save_folder=folder, autoresume=True)


class TestPickles:
    """Nothing executable is opened, under whatever name it comes."""

    def test_a_pickle_renamed_to_safetensors(self, folder: Path, tmp_path: Path) -> None:
        rewrite(folder / "ep2-ba8", "rank0.safetensors", pickle.dumps(Payload(tmp_path / "trace")))
        with pytest.raises(CheckpointError, match="it looks like a pickle, which may hold code and is never opened"):
            trainer(load_path=folder / "ep2-ba8")
        assert not (tmp_path / "trace").exists()

    def test_a_file_of_torch_save_renamed(self, folder: Path, tmp_path: Path) -> None:
        torch.save(Payload(tmp_path / "trace"), tmp_path / "x")
        rewrite(folder / "ep2-ba8", "rank0.safetensors", (tmp_path / "x").read_bytes())
        with pytest.raises(CheckpointError, match="it looks like a pickle"):
            trainer(load_path=folder / "ep2-ba8")
        assert not (tmp_path / "trace").exists()

    def test_a_pickle_as_json_or_as_manifest(self, folder: Path, tmp_path: Path) -> None:
        for name in ("rank0.json", "manifest.json"):
            content = pickle.dumps(Payload(tmp_path / "trace"))
            rewrite(folder / "ep2-ba8", name, content) if name == "rank0.json" else (
                folder / "ep2-ba8" / name
            ).write_bytes(content)
            with pytest.raises(CheckpointError, match="something binary"):
                trainer(load_path=folder / "ep2-ba8")
        assert not (tmp_path / "trace").exists()

    def test_a_checkpoint_of_torch_save_is_no_folder(self, tmp_path: Path) -> None:
        torch.save(Payload(tmp_path / "trace"), tmp_path / "ep1.pt")
        with pytest.raises(CheckpointError, match=r"a checkpoint is a folder, and files such as torch\.save writes"):
            trainer(load_path=tmp_path / "ep1.pt")
        assert not (tmp_path / "trace").exists()


def test_what_is_not_there_is_said_to_be_not_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no manifest\.json, for there is nothing of that name"):
        trainer(load_path=tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"is no checkpoint: it has no manifest\.json$"):
        trainer(load_path=tmp_path)


def test_latest_may_say_what_it_likes(folder: Path) -> None:
    """It is for readers; what is newest follows from the manifests."""
    (folder / "latest").write_text("../../../../etc\n")
    assert trainer(save_folder=folder, autoresume=True).state.timestamp.batch == 8


def test_a_method_that_cannot_take_its_state_says_so_in_a_sentence(tmp_path: Path) -> None:
    from expkit.algorithms.ema import EMA

    trainer(algorithms=[EMA()], save_folder=tmp_path).fit()
    edit(lambda c: c.update({"algorithms/ema": {"held": None}}))(tmp_path / "ep2-ba8")
    with pytest.raises(CheckpointError, match="ep2-ba8 cannot be taken up: algorithms/ema: KeyError 'swapped'"):
        trainer(algorithms=[EMA()], load_path=tmp_path / "ep2-ba8")
