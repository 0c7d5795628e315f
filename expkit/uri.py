"""Addresses of files: a path, or a URI that fsspec has a file system for; and how one is shown without its secrets."""

from __future__ import annotations

import os
import re
from typing import Any

from expkit.errors import EnvironmentFault, UsageError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_USERINFO = re.compile(r"(?<=://)[^/\s]+@")  # to the last @ before the path: a password may hold one
_SIGNED = re.compile(r"(?P<name>[?&][^=&\s]*(?:token|key|secret|pass|cred|sig)[^=&\s]*=)[^&#\s]+", re.IGNORECASE)
_EXTRAS = {"s3fs": "s3"}
"""By package the extra of ours that installs it."""


def is_remote(address: str) -> bool:
    """Whether this is no path on this machine."""
    return bool(_URI.match(address)) and not address.startswith("file://")


def local_path(address: str) -> str:
    """The path of an address that is not remote; `~` is the user's folder."""
    return os.path.expanduser(address.removeprefix("file://"))  # noqa: PTH111  # what is no path stays as it is


def without_userinfo(address: str) -> str:
    """`https://user:token@host/x?sig=abc` -> `https://host/x?sig=***`, wherever it stands in the text."""
    return _SIGNED.sub(r"\g<name>***", _USERINFO.sub("", address))


def file_system(uri: str) -> tuple[Any, str]:
    """The file system behind a URI and the path in it; the package that is missing is named."""
    from fsspec.core import url_to_fs

    try:
        fs, root = url_to_fs(uri)
    except ImportError as e:
        extra = next((f"; pip install 'expkit[{x}]'" for package, x in _EXTRAS.items() if package in str(e)), "")
        raise EnvironmentFault(f"{without_userinfo(uri)} needs a package that is not installed: {e}{extra}") from None
    except ValueError as e:
        raise UsageError(f"{without_userinfo(uri)} is no address of files: {e}") from None
    return fs, root.rstrip("/")
