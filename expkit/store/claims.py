"""Claims: which driver runs a replicate; one exclusive creation decides, also between two heirs of a dead one.

Claims are numbered and the highest number counts. Who wants the replicate creates the next number (O_EXCL: one
succeeds), then looks whether a higher one appeared meanwhile. The highest is never removed, only marked as released,
so a driver with an old listing cannot win twice.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from expkit.store.atomic import read_json, write_json
from expkit.store.layout import Layout
from expkit.store.owner import Owner

UNSEEN_LOST_S = 90.0
"""How long the heartbeat of a process that cannot be seen from here may be silent."""
HEARTBEAT_S = 10.0
"""How often a worker should send one."""


@dataclass(frozen=True)
class Claim:
    """A driver's right to run one replicate, until it is released or its process is gone."""

    path: Path
    owner: Owner
    driver: str

    def release(self) -> None:
        """Give the replicate back; its status says how it went."""
        write_json(self.path, {**_content(self.owner, self.driver), "released": True}, durable=False)


def take(layout: Layout, id12: str, replicate: int, driver: str) -> Claim | None:
    """Claim a replicate for this process; None where another living driver has it or was quicker."""
    number, held = newest(layout, id12, replicate)
    if held:
        return None
    path = layout.claim(id12, replicate, number + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    owner = Owner.this_process()
    if not _create(path, json.dumps(_content(owner, driver)).encode()):
        return None
    if newest(layout, id12, replicate)[0] != number + 1:
        path.unlink(missing_ok=True)  # our listing was old: somebody went past us
        return None
    for older in _numbers(layout, id12, replicate):
        if older <= number:
            layout.claim(id12, replicate, older).unlink(missing_ok=True)
    return Claim(path, owner, driver)


def newest(layout: Layout, id12: str, replicate: int) -> tuple[int, bool]:
    """The highest claim's number, 0 where there is none, and whether somebody living holds it."""
    number = max(_numbers(layout, id12, replicate), default=0)
    return number, number > 0 and _held(layout.claim(id12, replicate, number))


def _held(path: Path) -> bool:
    content = read_json(path, [])
    try:
        changed = path.stat().st_mtime
    except FileNotFoundError:
        return True  # went while we looked: somebody is at it
    if content is None:
        return time.time() - changed < UNSEEN_LOST_S  # being written, or its writer died in between
    if content.get("released"):
        return False
    try:
        alive = Owner(**{f.name: content[f.name] for f in dataclasses.fields(Owner)}).alive()
    except (KeyError, AttributeError):
        return False
    return time.time() - changed < UNSEEN_LOST_S if alive is None else alive


def touch(claim: Claim) -> None:
    """Heartbeat of a driver, for drivers on other hosts."""
    os.utime(claim.path)


def _numbers(layout: Layout, id12: str, replicate: int) -> list[int]:
    try:
        names = os.listdir(layout.replicate(id12, replicate))  # noqa: PTH208  # iterdir would build a Path a file
    except FileNotFoundError:
        return []
    return [int(n[6:-5]) for n in names if n.startswith("claim-") and n.endswith(".json") and n[6:-5].isdigit()]


def _create(path: Path, content: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
    return True


def _content(owner: Owner, driver: str) -> dict[str, object]:
    return {"schema_version": 1, **dataclasses.asdict(owner), "driver": driver}
