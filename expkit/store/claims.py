"""Claims: which driver runs a replicate; one exclusive creation decides, also between two heirs of a dead one.

Claims are numbered without a gap, and the highest number counts. Who wants the replicate looks the numbers up one by
one, since a listing may be old, and creates the next (O_EXCL: one succeeds). None is ever removed, only marked as
released, so a number that was taken is never taken twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path

from expkit.store.atomic import read_json
from expkit.store.layout import Layout
from expkit.store.owner import Owner
from expkit.store.pulse import PULSE

HEARTBEAT_S = 10.0
"""How often a driver touches the claims that it holds."""


@dataclass(frozen=True)
class Claim:
    """A driver's right to run one replicate, until it is released or its process is gone."""

    path: Path
    owner: Owner
    driver: str

    def release(self) -> None:
        """Give the replicate back; its status says how it went. Needs no space on the disk, and leaves no file."""
        with contextlib.suppress(FileNotFoundError):  # the trial was removed
            descriptor = os.open(self.path, os.O_WRONLY)
            try:
                os.pwrite(descriptor, _content(self.owner, self.driver, released=True), 0)  # as long as what it covers
            finally:
                os.close(descriptor)


def take(layout: Layout, id12: str, replicate: int, driver: str) -> Claim | None:
    """Claim a replicate for this process; None where another living driver has it or was quicker."""
    number, held = newest(layout, id12, replicate)
    if held:
        return None
    path = layout.claim(id12, replicate, number + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    owner = Owner.this_process()
    return Claim(path, owner, driver) if _create(path, _content(owner, driver)) else None


def newest(layout: Layout, id12: str, replicate: int, *, sure: bool = True) -> tuple[int, bool]:
    """The highest claim's number, 0 where there is none, and whether somebody living holds it.

    `sure`: one whom nobody can see from here is taken for living until he was silent while we watched.
    """
    number = 0
    while os.path.lexists(layout.claim(id12, replicate, number + 1)):
        number += 1
    return number, number > 0 and _held(layout.claim(id12, replicate, number), sure)


def _held(path: Path, sure: bool) -> bool:
    content = read_json(path, [])
    if content is None:
        return PULSE.beats(path, sure=sure)  # being written, or its writer died in between
    if content.get("released"):
        return False
    try:
        alive = Owner(**{f.name: content[f.name] for f in dataclasses.fields(Owner)}).alive()
    except (KeyError, AttributeError):
        return False
    return PULSE.beats(path, sure=sure) if alive is None else alive


def touch(claim: Claim) -> None:
    """Heartbeat of a driver, for drivers that cannot see its process; call it every HEARTBEAT_S."""
    with contextlib.suppress(OSError):  # removed, or out of reach at the moment
        os.utime(claim.path)


def _create(path: Path, content: bytes) -> bool:
    """Whether we have made it; none is left where it cannot be written."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        if os.write(descriptor, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(descriptor)
    return True


def _content(owner: Owner, driver: str, *, released: bool = False) -> bytes:
    record = {"schema_version": 1, **dataclasses.asdict(owner), "driver": driver, "released": released}
    return json.dumps(record).replace("true}", "true }").encode()
