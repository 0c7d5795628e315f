"""Seal: two checksums inside a metrics file, between its data and its footer, where no reader of parquet looks.

`data | MARK, sha256 of the data, sha256 of the footer | footer, its length, PAR1`. The footer says where its columns
lie counted from the file's start, so what stands between is in nobody's way. The second checksum is looked at whenever
a store is opened (5 microseconds a file), so a footer that changed on disk misleads no query; the first takes all bytes
(1 GB/s), so it is looked at when files are folded, and by `expkit verify`.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

MARK = b"expkit.seal.v01\n"
SIZE = len(MARK) + 2 * hashlib.sha256().digest_size
MAGIC = b"PAR1"
_TAIL = len(MAGIC) + 4
_AT_ONCE = 16384
"""Bytes from the end that are read first; the footer of a part has about 5,000."""


def sealed(parquet: bytes) -> bytes:
    """The same file with its seal; `parquet` is a whole one that has none."""
    begin = len(parquet) - _TAIL - _footer_length(parquet)
    data, footer = memoryview(parquet)[:begin], memoryview(parquet)[begin:]
    return b"".join((data, MARK, hashlib.sha256(data).digest(), hashlib.sha256(footer).digest(), footer))


def tail(path: str | Path) -> tuple[bytes, int]:
    """(seal and footer of a file up to its end, its size); ValueError, as a sentence's end, where it has no footer.

    A file without a seal gives the bytes that lie in its place.
    """
    with open(path, "rb", buffering=0) as f:  # noqa: PTH123  # 2,000 Path objects would show
        size = os.fstat(f.fileno()).st_size
        if size < 12:
            raise ValueError(f"is {size} bytes long, too short for a parquet file")
        if f.read(4) != MAGIC:
            raise ValueError("is no parquet file")
        f.seek(max(0, size - _AT_ONCE))
        end = f.read()
        length = _footer_length(end)
        if end[-4:] != MAGIC or length > size - 12:
            raise ValueError("has no footer: its writer was interrupted, or it was cut off")
        wanted = min(size, length + _TAIL + SIZE)
        if len(end) < wanted:
            f.seek(size - wanted)
            end = f.read()
    return end[-wanted:], size


def footer_is_whole(end: bytes) -> bool:
    """Whether what `tail` gave has a seal and a footer that agrees with it."""
    seal, footer = end[:SIZE], memoryview(end)[SIZE:]
    return seal.startswith(MARK) and seal.endswith(hashlib.sha256(footer).digest())


def has_seal(parquet: bytes) -> bool:
    """Whether a whole file has a seal, right or wrong."""
    begin = len(parquet) - _TAIL - _footer_length(parquet) - SIZE
    return begin > 0 and parquet[begin:].startswith(MARK)


def data_is_whole(parquet: bytes) -> bool:
    """Whether the bytes before the seal of a sealed file are those that it was made for."""
    begin = len(parquet) - _TAIL - _footer_length(parquet) - SIZE
    checksum = hashlib.sha256(memoryview(parquet)[: max(0, begin)]).digest()
    return begin > 0 and parquet[begin:].startswith(MARK + checksum)


def is_whole(parquet: bytes) -> bool:
    """Whether no byte of a sealed file has changed."""
    begin = len(parquet) - _TAIL - _footer_length(parquet) - SIZE
    return begin > 0 and footer_is_whole(parquet[begin:]) and data_is_whole(parquet)


def _footer_length(end: bytes) -> int:
    return int.from_bytes(end[-_TAIL:-4], "little")
