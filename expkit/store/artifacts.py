"""Artifacts: images, histograms, texts and small tables of an attempt, a file each, told of by a row of `events`.

`artifacts/<name>/<batch>.png` beside the metrics, `.json` for histograms and tables, `.txt` for texts. Images of one
moment become one file, side by side: a file each would be thousands. Files of others' making keep their names. A row
has the sha256 of its file, so `expkit verify` sees whether it is still what was written.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from expkit.store.atomic import temporary, write_bytes
from expkit.store.layout import Layout
from expkit.store.space import when_there_is_space
from expkit.store.strict import strict

GAP = 2
"""Pixels of grey between two images."""
MOST_CHARACTERS = 96
PROFILE = "profile"
"""Folder of traces."""
_SAFE = re.compile(r"[^\w.+=@ -]")


class Artifacts:
    """Those of one rank of one attempt; each method gives what its event says, `path` as seen from its folder."""

    def __init__(self, attempt_dir: Path, rank: int = 0) -> None:
        self._dir = attempt_dir
        self._rank = rank

    def images(self, name: str, batch: int, images: Any) -> dict[str, Any]:
        """Images (N, C, H, W), (C, H, W) or (H, W) with C 1, 3 or 4; floats 0 to 1 or bytes, as one PNG.

        Values outside 0 to 1 are cut off, NaN is black. ValueError for another shape.
        """
        pixels_NHWC = _pixels(np.asarray(images))
        mosaic_HWC, columns = _side_by_side(pixels_NHWC)
        n, height, width, channels = pixels_NHWC.shape
        facts = {"images": n, "columns": columns, "height": height, "width": width, "channels": channels}
        return self._keep(name, "image", batch, ".png", _png(mosaic_HWC), facts)

    def histogram(self, name: str, batch: int, values: Any, bins: int = 64) -> dict[str, Any]:
        """Counts of the finite values between `bins` + 1 even edges; how many were not finite stands beside."""
        flat = np.asarray(values, dtype=np.float64).ravel()
        finite = flat[np.isfinite(flat)]
        counts, edges = np.histogram(finite, bins=bins) if len(finite) else (np.zeros(0, int), np.zeros(0))
        facts = {"n": len(flat), "not_finite": len(flat) - len(finite)}
        document = {"counts": counts.tolist(), "edges": edges.tolist(), **facts}
        return self._keep(name, "histogram", batch, ".json", _json(document), facts)

    def text(self, name: str, batch: int, text: str) -> dict[str, Any]:
        """A text, UTF-8."""
        return self._keep(name, "text", batch, ".txt", text.encode("utf-8", "backslashreplace"), {})

    def table(self, name: str, batch: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """A small table of JSON values."""
        document = {"columns": list(columns), "rows": [list(row) for row in rows]}
        return self._keep(name, "table", batch, ".json", _json(document), {"rows": len(rows)})

    def file(self, name: str, batch: int, source: Path) -> dict[str, Any]:
        """A copy of a file under its own name, `profile/...` there and all others in artifacts; a later one of that
        name takes its place."""
        first, _, rest = name.partition("/")
        inside = first == PROFILE and rest.strip("/")
        path = _folder(self._dir / PROFILE if inside else Layout.artifacts(self._dir), rest if inside else name)
        when_there_is_space(lambda: _copy(source, path), self._dir)
        return self._told(name, "file", path, digest_of(path), {"bytes": path.stat().st_size})

    def _keep(
        self, name: str, kind: str, batch: int, suffix: str, data: bytes, facts: dict[str, Any]
    ) -> dict[str, Any]:
        path = self._free(_folder(Layout.artifacts(self._dir), name), batch, suffix)
        when_there_is_space(lambda: write_bytes(path, data, durable=False), self._dir)
        return self._told(name, kind, path, hashlib.sha256(data).hexdigest(), facts)

    def _told(self, name: str, kind: str, path: Path, sha256: str, facts: dict[str, Any]) -> dict[str, Any]:
        place = path.relative_to(self._dir).as_posix()
        return {"name": name, "kind": kind, "path": place, "sha256": sha256, **facts}

    def _free(self, folder: Path, batch: int, suffix: str) -> Path:
        """A name for this moment; a second thing of it gets a number."""
        stem = f"{batch:09d}" if self._rank == 0 else f"{batch:09d}-r{self._rank}"
        path, number = folder / f"{stem}{suffix}", 1
        while path.exists():
            number += 1
            path = folder / f"{stem}-{number}{suffix}"
        return path


def digest_of(path: Path) -> str:
    """sha256 of a file of any size."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _copy(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = temporary(path)
    try:
        shutil.copyfile(source, beside)
        os.replace(beside, path)  # noqa: PTH105  # atomic: a reader sees the old file or the new one
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _folder(root: Path, name: str) -> Path:
    """`eval/sample images` is a folder in a folder; no name leads out of the root, and none is too long for a disk."""
    for word in name.split("/"):
        safe = _SAFE.sub(lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode("utf-8", "backslashreplace")), word)
        safe = f"%2E{safe[1:]}" if safe.startswith(".") else safe or "%"
        if len(safe.encode()) > MOST_CHARACTERS:
            safe = f"{safe[:24]}~{hashlib.sha256(word.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}"
        root /= safe
    return root


def _pixels(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    shape = images.shape
    if images.ndim == 2:
        images = images[None, None]
    elif images.ndim == 3:
        images = images[None]
    if images.ndim != 4 or images.shape[1] not in (1, 3, 4) or 0 in images.shape:
        raise ValueError(f"images are (N, C, H, W), (C, H, W) or (H, W) with C 1, 3 or 4, but got {shape}")
    if images.dtype != np.uint8:
        images = (np.nan_to_num(images.astype(np.float64)).clip(0, 1) * 255).round().astype(np.uint8)
    return images.transpose(0, 2, 3, 1)


def _side_by_side(pixels_NHWC: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    n, height, width, channels = pixels_NHWC.shape
    columns = math.ceil(math.sqrt(n))
    rows = math.ceil(n / columns)
    size = (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, channels)
    mosaic_HWC = np.full(size, 128, dtype=np.uint8)
    for i, image_HWC in enumerate(pixels_NHWC):
        top, left = i // columns * (height + GAP), i % columns * (width + GAP)
        mosaic_HWC[top : top + height, left : left + width] = image_HWC
    return mosaic_HWC, columns


def _png(pixels_HWC: np.ndarray[Any, Any]) -> bytes:
    """PNG, 8 bits a channel (W3C, Portable Network Graphics, third edition, 5 and 9)."""
    height, width, channels = pixels_HWC.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]  # grey, RGB, RGB with alpha
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels_HWC.reshape(height, -1)], axis=1)  # filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, chunks))


def _chunk(chunk: tuple[bytes, bytes]) -> bytes:
    name, data = chunk
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(strict(document), ensure_ascii=False, allow_nan=False).encode() + b"\n"
