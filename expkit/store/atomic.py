"""Writes that a crash cannot tear: beside, fsync, rename. Reads that a torn or foreign file cannot stop.

A file that is being written has a name beginning with a dot, so that no listing takes it for a record.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expkit.store.owner import Owner, boot_id, host_name
from expkit.store.strict import strict

_counter = itertools.count()
_TEMPORARY = re.compile(r"\.(?P<writer>(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-\d+)-\d+\.tmp$")


def write_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file as a whole; a reader sees the old content or the new.

    After a power cut as well, if `durable`; which of the two it is then, is settled by `sync_folder` alone. A sync
    costs 0.3 to 20 ms, so what only matters while its writer lives does without.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = temporary(path)
    try:
        with beside.open("wb") as f:
            f.write(data)
            if durable:
                f.flush()
                os.fsync(f.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Replace a text file as a whole, UTF-8."""
    write_bytes(path, text.encode(), durable=durable)


def write_json(path: Path, value: Mapping[str, Any], *, durable: bool = True, indent: int | None = 1) -> None:
    """Replace a record as a whole; strict JSON, NaN and inf as the texts "nan", "inf", "-inf"."""
    text = json.dumps(strict(value), ensure_ascii=False, allow_nan=False, indent=indent)
    write_text(path, text + "\n", durable=durable)


@dataclass(frozen=True)
class Unreadable:
    """A file that was set aside while reading, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def read_json(path: Path, set_aside: list[Unreadable]) -> dict[str, Any] | None:
    """A record, None where there is none. A file that is no JSON object goes onto `set_aside`, and None comes back."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except (OSError, ValueError, RecursionError) as e:
        set_aside.append(Unreadable(path, f"cannot be read ({_first_line(e)})"))
        return None
    if not isinstance(value, dict):
        set_aside.append(Unreadable(path, f"holds no record but {type(value).__name__}"))
        return None
    return value


def temporary(path: Path) -> Path:
    """A name beside `path` that nobody else uses and no listing matches; it tells whose it is."""
    return path.with_name(f".{path.name}.{_mark(Owner.this_process())}-{next(_counter)}.tmp")


def is_abandoned(name: str) -> bool:
    """Whether a file's name is one that `temporary` gave to a process of this machine that has ended since."""
    match = _TEMPORARY.search(name)
    return match is not None and match["host"] == _host() and match["writer"] != _mark(Owner.of(int(match["pid"])))


def _mark(owner: Owner) -> str:
    return f"{_host()}-{owner.pid}-{owner.process_start:.0f}"


@functools.cache
def _host() -> str:
    """This boot of this machine as seen from this container, in short."""
    return hashlib.sha256(f"{host_name()}/{boot_id()}".encode()).hexdigest()[:8]


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # not every system opens folders
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # nor can every file system sync them
    finally:
        os.close(descriptor)


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
