"""Addresses of checkpoints: a path, or a URI that fsspec has a file system for."""

from __future__ import annotations

import re
from typing import Any

from expkit.errors import EnvironmentFault, UsageError
from expkit.provenance import without_userinfo

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_remote(address: str) -> bool:
    """Whether this is no path on this machine."""
    return bool(_URI.match(address)) and not address.startswith("file://")


def local_path(address: str) -> str:
    """The path of an address that is not remote."""
    return address.removeprefix("file://")


def file_system(uri: str) -> tuple[Any, str]:
    """The file system behind a URI and the path in it; the package that is missing is named."""
    from fsspec.core import url_to_fs

    try:
        fs, root = url_to_fs(uri)
    except ImportError as e:
        raise EnvironmentFault(f"{without_userinfo(uri)} needs a package that is not installed: {e}") from None
    except ValueError as e:
        raise UsageError(f"{without_userinfo(uri)} is no address of files: {e}") from None
    return fs, root.rstrip("/")
