"""Manifest: what a checkpoint is and which bytes belong to it; written last, so without one there is no checkpoint."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from expkit.duration import Timestamp
from expkit.errors import CheckpointError
from expkit.store.strict import number as number_of
from expkit.store.strict import strict
from expkit.trainer.checkpoint import checks

FILE = "manifest.json"
LATEST = "latest"
"""A text file beside checkpoints, with the name of the newest; for readers, the manifests decide."""
FORMAT = "expkit-checkpoint"
VERSION = 1
MAX_JSON_BYTES = 64 << 20
"""No JSON file of a checkpoint is larger: one that is was not written by us, and would take many times that to read."""
_NAME = re.compile(r"rank(?:0|[1-9][0-9]{0,5})\.(?:json|safetensors)")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class NewerFormat(CheckpointError):
    """Not damaged, only written by an expkit that is newer than this one."""


@dataclass(frozen=True)
class Manifest:
    """Facts of one checkpoint that one may want to know without reading it."""

    number: int
    """Rises from one checkpoint of a folder to the next; the highest is the newest."""
    timestamp: Timestamp
    files: dict[str, dict[str, Any]]
    """sha256 and size in bytes of each file, by name."""
    world_size: int = 1
    weights_only: bool = False
    kept: bool = False
    """Asked for by its path, so that no rotation takes it away."""
    run_name: str = ""
    saved_utc: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    """The newest values of the evaluators' series."""
    evaluated: list[str] = field(default_factory=list)
    """Labels of the evaluators whose values are those of the very weights that are saved here."""
    config: dict[str, Any] = field(default_factory=dict)
    """What was trained; JSON."""
    config_sha256: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The file's content; the checksum of all the rest stands in it."""
        facts = strict({"format": FORMAT, "version": VERSION, **asdict(self), "timestamp": self.timestamp._asdict()})
        return json.dumps({**facts, "manifest_sha256": sum_of(facts)}, indent=1, ensure_ascii=False) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint; CheckpointError says in one sentence why there is none that can be used."""
    path = folder / FILE
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MAX_JSON_BYTES else b""
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"{folder} is no checkpoint: it has no {FILE}{_guess(folder)}") from None
    except OSError as e:
        raise CheckpointError(f"{path} cannot be read: {e.strerror or e}") from None
    return manifest_of(data, str(path))


def manifest_of(data: bytes, where: str) -> Manifest:
    """A manifest from the bytes of its file."""
    with checks.blaming(where):
        facts = checks.mapping(checks.json_of(data), "the whole")
        if facts.get("format") != FORMAT:
            raise ValueError("it is not the manifest of an expkit checkpoint")
        version = checks.integer(facts.get("version"), "version", least=1)
        if version > VERSION:
            raise NewerFormat(f"{where} is of format {version}, newer than this expkit, which reads up to {VERSION}")
        if facts.pop("manifest_sha256", None) != sum_of(facts):
            raise ValueError("its checksum does not fit its content")
        return _manifest(facts)


def is_ours(name: str) -> bool:
    """Whether a file of a checkpoint is called so; a folder with any other in it is not ours to take away."""
    return name == FILE or _NAME.fullmatch(name) is not None


def sha256_of(value: Any) -> str:
    """The hash of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(strict(value), sort_keys=True).encode()).hexdigest()


def _manifest(facts: dict[str, Any]) -> Manifest:
    files = checks.mapping(facts.get("files"), "files")
    return Manifest(
        number=checks.integer(facts.get("number"), "number"),
        timestamp=checks.timestamp(facts.get("timestamp"), "timestamp"),
        files={name: _file(name, file) for name, file in files.items()},
        world_size=checks.integer(facts.get("world_size"), "world_size", least=1),
        weights_only=checks.boolean(facts.get("weights_only"), "weights_only"),
        kept=checks.boolean(facts.get("kept", False), "kept"),  # older ones do not say
        run_name=checks.text(facts.get("run_name"), "run_name"),
        saved_utc=checks.text(facts.get("saved_utc"), "saved_utc"),
        metrics=_metrics(checks.mapping(facts.get("metrics"), "metrics")),
        evaluated=[checks.text(label, "evaluated") for label in checks.sequence(facts.get("evaluated"), "evaluated")],
        config=checks.mapping(facts.get("config"), "config"),
        config_sha256=checks.text(facts.get("config_sha256"), "config_sha256"),
        versions={k: checks.text(v, k) for k, v in checks.mapping(facts.get("versions"), "versions").items()},
    )


def _file(name: str, file: Any) -> dict[str, Any]:
    if not _NAME.fullmatch(name):
        raise ValueError(f"a checkpoint has no file {name[:80]!r}, only rank<number>.json and rank<number>.safetensors")
    file = checks.mapping(file, name)
    digest = checks.text(file.get("sha256"), f"sha256 of {name}")
    if not _SHA256.fullmatch(digest):
        raise ValueError(f"sha256 of {name} is no sha256")
    return {"sha256": digest, "size": checks.integer(file.get("size"), f"size of {name}")}


def _metrics(given: Mapping[str, Any]) -> dict[str, float]:
    metrics = {}
    for name, value in given.items():
        if (read := number_of(value)) is None:
            raise ValueError(f"metric {name[:80]!r} is no number")
        metrics[name] = read
    return metrics


def value_to_rank(manifest: Manifest, metric: str) -> float | None:
    """A metric of the weights saved here; None where they were not evaluated, or not with a number."""
    evaluated = any(metric.startswith(f"{label}/") for label in manifest.evaluated)
    value = manifest.metrics.get(metric) if evaluated else None
    return None if value is None or not math.isfinite(value) else value


def refuse_others(where: str, names: Iterable[str]) -> None:
    """CheckpointError where something lies in a folder that no checkpoint has: it is not ours to replace."""
    if others := sorted(name for name in names if not is_ours(name)):
        raise CheckpointError(f"{where} is there already and holds {others[0]!r}, which is no part of a checkpoint; "
                              f"nothing there was touched, choose another path")  # fmt: skip


def sum_of(facts: Mapping[str, Any]) -> str:
    """The checksum of a manifest, over all that stands in it beside the checksum."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _guess(folder: Path) -> str:
    if (folder.parent / FILE).is_file():
        return f", but is in one, {folder.parent}"
    if folder.is_file():
        return "; a checkpoint is a folder, and files such as torch.save writes are not read, for they may hold code"
    return "" if folder.exists() else ", for there is nothing of that name"
