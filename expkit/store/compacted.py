"""Compacted files: the rows of many finished attempts in one file, and the manifest that makes it count.

A manifest is written last, when its file was read back, so a file without one does not exist to readers. It names the
attempts whose rows the file holds: these come from it alone, whether their own files still lie there or not. A file
that `replaces` others makes them void.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from expkit.store.atomic import Unreadable, read_json
from expkit.store.layout import COMPACTED, Layout

MANIFEST_VERSION = 1


class Key(NamedTuple):
    """One rank of one attempt."""

    id: str
    replicate: int
    attempt: int
    rank: int

    @property
    def written(self) -> str:
        """As it stands in a manifest."""
        return f"{self.id}/r{self.replicate}/{self.attempt}/{self.rank}"


_WRITTEN = re.compile(r"[0-9a-f]{12}/r\d+/\d+/\d+")


@dataclass(frozen=True)
class Manifest:
    """What one compacted file holds."""

    name: str
    """32 hex; the file's name without its ending."""
    covers: Mapping[str, int]
    """How many rows of each attempt and rank, by its key as it is written: who looks for one need not read them all."""
    size: int
    """Bytes of the file."""
    sha256: str
    schema: int
    """Version of the metrics schema that it was written in."""
    replaces: tuple[str, ...] = ()
    """Names of compacted files whose rows are all in this one."""

    @cached_property
    def rows(self) -> dict[Key, int]:
        """How many of each attempt and rank."""
        return {_key(text): n for text, n in self.covers.items()}

    @property
    def num_rows(self) -> int:
        """Rows of all attempts."""
        return sum(self.covers.values())

    def to_json(self) -> dict[str, Any]:
        """As it is written, a line an attempt and rank."""
        return {
            "schema_version": MANIFEST_VERSION, "metrics_schema": self.schema, "rows": self.num_rows,
            "size": self.size, "sha256": self.sha256, "replaces": list(self.replaces), "covers": self.covers,
        }  # fmt: skip

    @classmethod
    def from_json(cls, name: str, value: dict[str, Any]) -> Self:
        """The manifest behind a JSON object; ValueError where it is none."""
        version = value.get("schema_version")
        if not isinstance(version, int) or version > MANIFEST_VERSION:
            raise ValueError(f"has schema version {version!r}, this expkit reads up to {MANIFEST_VERSION}")
        try:
            covers = value["covers"]
            if not all(map(_WRITTEN.fullmatch, covers)) or not all(type(n) is int for n in covers.values()):
                raise ValueError("covers what no attempt is called")
            size, schema = int(value["size"]), int(value["metrics_schema"])
            return cls(name, covers, size, str(value["sha256"]), schema, tuple(map(str, value["replaces"])))
        except (AttributeError, KeyError, TypeError, ValueError) as e:
            raise ValueError(f"is no manifest of a compacted file ({type(e).__name__}: {e})") from None


def names(layout: Layout) -> list[str]:
    """Names of all that have a manifest, sorted."""
    try:
        return sorted(name[:-5] for name in os.listdir(layout.compacted) if COMPACTED.fullmatch(name))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def manifests(layout: Layout, wanted: Iterable[str], set_aside: list[Unreadable]) -> Iterator[Manifest]:
    """Those that can be read; one that vanishes meanwhile was replaced."""
    for name in wanted:
        path = layout.manifest(name)
        value = read_json(path, set_aside)
        if value is None:
            continue
        try:
            yield Manifest.from_json(name, value)
        except ValueError as e:
            set_aside.append(Unreadable(path, str(e)))


def counting(all_of: Iterable[Manifest], readable: Callable[[str], bool], layout: Layout) -> list[Manifest]:
    """Those whose file is readable and that no other such replaces; where two hold an attempt, the larger counts."""
    good = [manifest for manifest in all_of if readable(str(layout.compacted_metrics(manifest.name)))]
    replaced = {name for manifest in good for name in manifest.replaces}
    chosen: list[Manifest] = []
    held: set[str] = set()
    for manifest in sorted(good, key=lambda manifest: (-manifest.num_rows, manifest.name)):
        if manifest.name not in replaced and held.isdisjoint(manifest.covers):
            chosen.append(manifest)
            held.update(manifest.covers)
    return chosen


def lacking(layout: Layout, name: str) -> set[tuple[str, int]]:
    """Replicates that miss rows of rank 0 when this compacted file cannot be read: it held them and nothing else does.

    Where it is the manifest that cannot be read, the file says itself whose rows it holds.
    """
    held = [key for manifest in manifests(layout, [name], []) for key in manifest.rows]
    if not held:
        held = [Key(*row) for row in _keys_in(layout.compacted_metrics(name))]
    return {
        (key.id, key.replicate)
        for key in held
        if key.rank == 0 and not any(layout.attempt(key.id, key.replicate, key.attempt).glob("metrics-[0-9]*.parquet"))
    }


def last_attempt(layout: Layout, id12: str, replicate: int) -> int:
    """The highest attempt of a replicate that any compacted file has rows of; 0 where none has.

    Searches manifests as text, since a driver asks before each trial: 10 MB/s would show, 1 GB/s does not.
    """
    wanted = re.compile(rf'"{id12}/r{replicate}/(\d+)/'.encode())
    while True:
        before, held = names(layout), [0]
        for name in before:
            with contextlib.suppress(FileNotFoundError):
                held += map(int, wanted.findall(layout.manifest(name).read_bytes()))
        if names(layout) == before:  # else one was replaced by another that was not listed
            return max(held)


def _keys_in(path: Path) -> set[tuple[Any, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.ParquetFile(path).read(columns=list(Key._fields), use_threads=False)
    except (OSError, pa.ArrowException):
        return set()
    return set(zip(*(rows[name].to_pylist() for name in Key._fields), strict=True))


def _key(text: str) -> Key:
    id12, replicate, attempt, rank = text.split("/")
    return Key(id12, int(replicate.removeprefix("r")), int(attempt), int(rank))
