"""Tidy: what writers left that were killed between writing a file and renaming it; removed where the next one writes.

A look at the few folders that a sweep writes to anyway, so it costs no walk over the store. What lies where nobody
writes any more is for `expkit gc`.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from expkit.store.atomic import is_abandoned
from expkit.store.layout import Layout


def shared(layout: Layout, sweep: str) -> None:
    """Of the folders of a sweep, and of those that all trials share."""
    files = layout.shared_provenance("0")
    for path in (layout.sweep(sweep), layout.report(sweep), files.parent, layout.compacted):
        folder(path)


def folder(path: Path) -> None:
    """Files of one folder whose writer has ended."""
    for name in _names(path):
        if is_abandoned(name):
            (path / name).unlink(missing_ok=True)


def replicate(layout: Layout, id12: str, number: int) -> None:
    """All of a replicate that we have claimed, whoever wrote it, for nobody else has a right to."""
    for path, _, names in os.walk(layout.replicate(id12, number)):
        for name in names:
            if name.startswith(".") and name.endswith((".tmp", ".unread")):
                Path(path, name).unlink(missing_ok=True)


def _names(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(path)  # noqa: PTH208
    return []
