"""Removing files and folders so that no reader sees half of one: out of sight by one rename, then file by file.

What a kill leaves behind has a name that no listing takes for anything; `expkit gc` finishes the work.
"""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

from expkit.store.atomic import sync_folder

REMOVED = ".removed-"
"""How names of what is being removed begin."""
_counter = itertools.count()


def discard(path: Path) -> None:
    """Remove a file or a folder with all in it; nothing where there is none. The name is free at once."""
    if path.name.startswith(REMOVED):
        erase(path)
        return
    gone = path.with_name(f"{REMOVED}{path.name}-{os.getpid()}-{next(_counter)}")
    try:
        path.rename(gone)
    except FileNotFoundError:
        return
    sync_folder(path.parent)
    erase(gone)


def erase(path: Path) -> None:
    """Remove what is out of sight already; another process may be at it too."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_missing)
    else:
        path.unlink(missing_ok=True)


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; links are not followed."""
    if not path.is_dir() or path.is_symlink():
        return _bytes(path)
    return sum(_bytes(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)


def _bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _missing(_: object, __: object, raised: tuple[type[BaseException], BaseException, object]) -> None:
    if not isinstance(raised[1], FileNotFoundError):
        raise raised[1]
