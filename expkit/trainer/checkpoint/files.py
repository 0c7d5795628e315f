"""Files of one rank: rank<r>.safetensors with all tensors, rank<r>.json with the rest. No pickle, written or read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from expkit.errors import CheckpointError
from expkit.trainer.checkpoint import checks
from expkit.trainer.checkpoint.manifest import MAX_JSON_BYTES
from expkit.trainer.checkpoint.tree import Packing, unpack
from expkit.trainer.checkpoint.verify import digest


def write_files(folder: Path, rank: int, tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Write a tree, synced and read again; gives sha256 and size of the files, by name."""
    packing = Packing()
    packed = {name: packing.pack(state, (name,)) for name, state in tree.items()}
    text = json.dumps(packed, ensure_ascii=False, allow_nan=False).encode(errors="surrogatepass")
    if len(text) > MAX_JSON_BYTES:
        raise CheckpointError(f"the state without its tensors takes {len(text) >> 20} MB as JSON, and "
                              f"{MAX_JSON_BYTES >> 20} MB is the most; long rows of numbers go as tensors")  # fmt: skip
    numbers, rest = folder / f"rank{rank}.safetensors", folder / f"rank{rank}.json"
    _save(packing.tensors, numbers)
    rest.write_bytes(text)
    numbers.chmod(rest.stat().st_mode)  # the library lets only its owner read it
    for path in (numbers, rest):
        _sync(path)
    _compare(numbers, packing.tensors)
    if rest.read_bytes() != text:
        raise OSError(f"{rest} reads otherwise than it was written")
    return {path.name: {"sha256": digest(path), "size": path.stat().st_size} for path in (numbers, rest)}


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    """The library says in words what the system has said; OSError, as for any other file."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(tensors, path)
    except SafetensorError as e:
        number = re.search(r"\(os error (\d+)\)", str(e))
        if number is None:
            raise OSError(str(e)) from e
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from e


def read_files(folder: Path, rank: int) -> dict[str, Any]:
    """The tree of one rank; CheckpointError for whatever is not a file of ours. Its tensors are new and on the CPU."""
    path = folder / f"rank{rank}.json"
    with checks.blaming(str(path)):
        packed = checks.mapping(checks.json_of(path.read_bytes()), "the whole")
        return checks.mapping(unpack(packed, _read_tensors(folder / f"rank{rank}.safetensors")), "the whole")


def _read_tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as f:
            return {name: f.get_tensor(name).clone() for name in f.keys()}  # noqa: SIM118  # it is no dict
    except (SafetensorError, KeyError, RuntimeError) as e:
        with path.open("rb") as raw:
            start = raw.read(2)
        pickled = start == b"PK" or start[:1] == b"\x80"
        hint = "; it looks like a pickle, which may hold code and is never opened" if pickled else ""
        raise CheckpointError(f"{path} is no safetensors file ({str(e).splitlines()[0]}){hint}") from None


def _compare(path: Path, tensors: dict[str, Tensor]) -> None:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as f:
        for name, tensor in tensors.items():
            if not torch.equal(_bytes(f.get_tensor(name)), _bytes(tensor)):
                raise OSError(f"{path} reads otherwise than it was written, at {name}")


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _sync(path: Path) -> None:
    with path.open("rb+") as f:
        os.fsync(f.fileno())
