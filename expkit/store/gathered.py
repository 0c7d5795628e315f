"""Gathered: copies of many small metrics files in one, left by who read a store that nobody has compacted.

DuckDB takes 0.4 ms for a file, however little is in it. A copy counts in place of the files that it was made from while
each of them counts and is as old and as long as it was. Where a byte of it is wrong, or anything else does not fit, it
is passed over; nothing is lost with it, for what it was made from stays.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from expkit.store.atomic import read_json
from expkit.store.layout import GATHERED, Layout

GATHERED_VERSION = 1
Attempt = tuple[str, int, int]
"""(id, replicate, attempt)."""
Stamp = tuple[int, int]
"""When a file was changed, in nanoseconds, and its bytes."""


@dataclass(frozen=True)
class Gathered:
    """One copy."""

    path: str
    made_from: Mapping[str, Stamp]
    """By the path of each file."""


def names(layout: Layout) -> list[str]:
    """Names of all copies, sorted."""
    try:
        found = os.listdir(layout.compacted)  # noqa: PTH208
    except OSError:
        return []
    return sorted(name[:-5] for name in found if GATHERED.fullmatch(name))


def read(layout: Layout) -> Iterator[Gathered]:
    """Those that are whole, every byte looked at: 1 GB/s."""
    for name in names(layout):
        path, value = layout.compacted_metrics(name), read_json(layout.manifest(name), [])
        if value is None or value.get("schema_version") != GATHERED_VERSION:
            continue
        with suppress(OSError, AttributeError, KeyError, TypeError, ValueError):
            made_from = {f"{layout.trials}/{part}": (int(ns), int(size)) for part, (ns, size) in value["parts"].items()}
            if hashlib.sha256(path.read_bytes()).hexdigest() == value["sha256"]:
                yield Gathered(str(path), made_from)


def unchanged(copies: Iterable[Gathered]) -> set[str]:
    """Of the files that copies were made from those that are as they were."""
    return {path for copy in copies for path, stamp in copy.made_from.items() if stamp_of(path) == stamp}


def in_place_of(files: Iterable[str], copies: Iterable[Gathered], same: Collection[str]) -> list[str]:
    """The files that count, with a copy for those that it was made from; `same` are those that are unchanged."""
    left, chosen = dict.fromkeys(files), []
    for copy in copies:
        if all(path in left and path in same for path in copy.made_from):
            for path in copy.made_from:
                del left[path]
            chosen.append(copy.path)
    return [*left, *chosen]


def stamp_of(path: str) -> Stamp | None:
    """What changes with a file; None where it is not there."""
    try:
        stat = os.stat(path)  # noqa: PTH116  # 6,000 Path objects would show
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def attempt_of(path: str) -> Attempt:
    """Whose metrics file it is."""
    _, id12, replicate, _, attempt, _ = path.rsplit("/", 5)
    return id12, int(replicate[1:]), int(attempt)


def clear(layout: Layout) -> None:
    """Remove copies that hold rows of files that are no longer there."""
    whole = {copy.path for copy in read(layout) if len(unchanged([copy])) == len(copy.made_from)}
    for name in names(layout):
        if str(layout.compacted_metrics(name)) not in whole:
            remove(layout, name)


def remove(layout: Layout, name: str) -> None:
    """Remove a copy; readers that have it open look again."""
    layout.manifest(name).unlink(missing_ok=True)
    layout.compacted_metrics(name).unlink(missing_ok=True)
