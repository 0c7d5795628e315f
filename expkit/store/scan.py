"""What lies in a runs folder: replicates, attempts and metrics files, by listing alone; no record is opened here.

Costs about 60 microseconds a replicate and 25 a metrics file. Metrics files are looked at from both ends, because one
file without a footer would fail every query over all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from expkit.store.atomic import Unreadable
from expkit.store.layout import METRICS, Layout

_ID12 = re.compile(r"[0-9a-f]{12}")
_MAGIC = b"PAR1"
_VERSION = re.compile(rb"expkit\.metrics\.schema_version\x18.(\d+)")
"""Our key and its value as they stand in a footer; a file of another program lacks them."""


@dataclass(frozen=True)
class Found:
    """One replicate's folder."""

    id12: str
    replicate: int
    attempts: tuple[int, ...]
    """Numbers of the attempts, in order."""
    metrics: tuple[str, ...]
    """Closed metrics files of all attempts, not yet checked."""


def scan(layout: Layout) -> Iterator[Found]:
    """All replicates, by id and number. Folders that vanish meanwhile are passed over."""
    for id12 in sorted(name for name in _names(layout.trials) if _ID12.fullmatch(name)):
        folder = f"{layout.trials}/{id12}"
        replicates = [int(name[1:]) for name in _names(folder) if name[0] == "r" and name[1:].isdigit()]
        for replicate in sorted(replicates):
            yield found_in(layout, id12, replicate)


def found_in(layout: Layout, id12: str, replicate: int) -> Found:
    """One replicate, as it is listed now."""
    attempts_dir = f"{layout.trials}/{id12}/r{replicate}/attempts"
    attempts = sorted(int(name) for name in _names(attempts_dir) if name.isdigit())
    files = tuple(path for k in attempts for path in _metrics(f"{attempts_dir}/{k}"))
    return Found(id12, replicate, tuple(attempts), files)


def usable(path: str, newest_schema: int) -> str | None:
    """None where DuckDB can read this metrics file, else why not."""
    try:
        with open(path, "rb", buffering=0) as f:  # noqa: PTH123  # 2,000 Path objects would show
            size = os.fstat(f.fileno()).st_size
            if size < 12:
                return f"is {size} bytes long, too short for a parquet file"
            if f.read(4) != _MAGIC:
                return "is no parquet file"
            f.seek(max(0, size - 16384))
            tail = f.read()
    except OSError as e:
        return f"cannot be read ({e.strerror})"
    footer = int.from_bytes(tail[-8:-4], "little")
    if tail[-4:] != _MAGIC or footer > size - 12:
        return "has no footer: its writer was interrupted, or it was cut off"
    version = _VERSION.search(tail, max(0, len(tail) - 8 - footer))
    if version is None:
        return "was not written by expkit"
    if int(version[1]) > newest_schema:
        return f"has metrics schema {int(version[1])}, this expkit reads up to {newest_schema}"
    return None


def checked(found: list[Found], newest_schema: int, set_aside: list[Unreadable]) -> list[str]:
    """The metrics files that can be read, in order; the others go onto `set_aside`."""
    good = []
    for path in (path for f in found for path in f.metrics):
        reason = usable(path, newest_schema)
        if reason is None:
            good.append(path)
        else:
            set_aside.append(Unreadable(Path(path), reason))
    return good


def _metrics(attempt_dir: str) -> list[str]:
    return [f"{attempt_dir}/{name}" for name in sorted(_names(attempt_dir)) if METRICS.fullmatch(name)]


def _names(folder: str | Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
