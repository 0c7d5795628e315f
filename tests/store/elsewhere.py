"""A runs folder put behind a URL, as a sync of it would."""

from __future__ import annotations

from pathlib import Path

import fsspec


def put(folder: Path, url: str) -> None:
    """Upload what a sync of the runs folder would."""
    fs, root = fsspec.core.url_to_fs(url)
    for path in folder.rglob("*"):
        if path.is_file():
            fs.pipe_file(f"{root}/{path.relative_to(folder)}", path.read_bytes())
