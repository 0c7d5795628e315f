"""Place: where results are read from: a runs folder here, one behind a URL, or a bundle; each as a folder to read.

What lies elsewhere is looked at through a copy in EXPKIT_CACHE (default: the user's folder for caches). Nothing is ever
written back.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from expkit.uri import is_remote, local_path, without_userinfo

ZIP = ".zip"
"""How the name of a bundle ends."""


def opened(where: str | os.PathLike[str], *, logs: bool = False) -> Path:
    """A folder to read; what is elsewhere is fetched first, the logs of ranks only where `logs` asks for them."""
    address = os.fspath(where)
    if is_remote(address):
        from expkit.store.remote import fetched, mirrored

        if not address.endswith(ZIP):
            return mirrored(address, logs=logs)
        return _unpacked(fetched(address))
    path = Path(local_path(address))
    return _unpacked(path) if path.suffix == ZIP and path.is_file() else path


def _unpacked(path: Path) -> Path:
    from expkit.store.unpack import unpacked

    return unpacked(path).runs


def closed(where: str | os.PathLike[str]) -> Path:
    """The folder that `opened` would give, without fetching anything; for completion."""
    address = os.fspath(where)
    return view_of(address) if is_remote(address) else Path(local_path(address))


def view_of(address: str) -> Path:
    """Where the copy of what lies at an address is kept."""
    shown = re.sub(r"[^\w.]+", "-", without_userinfo(address)).strip("-")[:60]
    return cache_dir() / f"{shown}-{hashlib.sha256(address.encode()).hexdigest()[:12]}" / "runs"


def is_view(folder: Path) -> bool:
    """Whether a folder is the copy of what lies elsewhere."""
    return folder.absolute().is_relative_to(cache_dir().absolute())


def cache_dir() -> Path:
    """EXPKIT_CACHE, or `expkit` in the user's folder for caches."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "expkit"
    return Path(os.environ.get("EXPKIT_CACHE") or usual)
