"""Verify: whether a checkpoint lies there as it was written. Imports without torch, so that a driver can ask."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from expkit.errors import CheckpointError
from expkit.trainer.checkpoint import checks
from expkit.trainer.checkpoint.manifest import MAX_JSON_BYTES, Manifest


def verify(folder: Path, manifest: Manifest) -> None:
    """CheckpointError unless every file is there as the manifest says, byte by byte."""
    needed = {f"rank0.{kind}" for kind in ("json", "safetensors")}
    if missing := needed - manifest.files.keys():
        raise CheckpointError(f"{folder} is damaged: its manifest names no {min(missing)}")
    for name, facts in manifest.files.items():
        with checks.blaming(str(folder / name)):
            _verify_file(folder, name, facts)


def _verify_file(folder: Path, name: str, facts: dict[str, Any]) -> None:
    path = folder / name
    if not path.is_file():
        raise CheckpointError(f"{folder} is damaged: {name} is not there")
    if name.endswith(".json") and facts["size"] > MAX_JSON_BYTES:
        raise CheckpointError(f"{path} is larger than any that we write, {facts['size']} bytes")
    if (size := path.stat().st_size) != facts["size"]:
        raise CheckpointError(f"{folder} is damaged: {name} has {size} bytes instead of {facts['size']}")
    if digest(path) != facts["sha256"]:
        raise CheckpointError(f"{folder} is damaged: the content of {name} is not what was written")


def digest(path: Path) -> str:
    """sha256 of a file's content."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()
