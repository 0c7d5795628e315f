"""What many replicates were run with, stored once: the document under its hash, a patch of its code beside it.

The patch is a file that `git apply` takes, and equal for all drivers that ran the same uncommitted code.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from expkit.store.atomic import Unreadable, read_json, write_text
from expkit.store.layout import Layout
from expkit.store.strict import strict

_DIGEST = re.compile(r"[0-9a-f]{16}")


def write(layout: Layout, document: Mapping[str, Any]) -> str:
    """Write what is not there yet, and give the hash to refer to it by."""
    git = document.get("git")
    if isinstance(git, Mapping) and git.get("patch"):
        patch = str(git["patch"])
        name = _hash(patch)
        _write(layout.shared_patch(name), patch)
        document = {**document, "git": {**{k: v for k, v in git.items() if k != "patch"}, "patch_file": name}}
    text = json.dumps(strict(document), sort_keys=True, ensure_ascii=False, allow_nan=False, indent=1)
    digest = _hash(text)
    _write(layout.shared_provenance(digest), text + "\n")
    return digest


def read(layout: Layout, digest: object, set_aside: list[Unreadable]) -> dict[str, Any]:
    """The document with its patch in it again; empty for what is no hash, or where nothing is."""
    if not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        return {}
    document = read_json(layout.shared_provenance(digest), set_aside) or {}
    for path in _patch(layout, document):
        try:
            document["git"]["patch"] = path.read_text(encoding="utf-8", errors="replace")
        except OSError as e:
            set_aside.append(Unreadable(path, f"cannot be read ({e.strerror})"))
    return document


def files(layout: Layout, digests: Iterable[object]) -> list[Path]:
    """The files behind references, those that are there."""
    found: list[Path] = []
    for digest in sorted({d for d in digests if isinstance(d, str) and _DIGEST.fullmatch(d)}):
        path = layout.shared_provenance(digest)
        found += [path, *_patch(layout, read_json(path, []) or {})]
    return [path for path in dict.fromkeys(found) if path.is_file()]


def damaged(layout: Layout) -> Iterator[tuple[Path, str | None]]:
    """(a document or patch, how it is damaged or None): each is called by the hash of its text."""
    folder = layout.root / "provenance"
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if not _DIGEST.fullmatch(path.stem) or path.suffix not in (".json", ".patch"):
            continue
        try:
            text = path.read_bytes()
        except OSError as e:
            yield path, f"cannot be read ({e.strerror})"
            continue
        own = text.removesuffix(b"\n") if path.suffix == ".json" else text
        same = hashlib.sha256(own).hexdigest().startswith(path.stem)
        yield path, None if same else "was changed since it was written: it is called by the hash of another text"


def _patch(layout: Layout, document: Mapping[str, Any]) -> list[Path]:
    git = document.get("git")
    name = git.get("patch_file") if isinstance(git, dict) else None
    return [layout.shared_patch(name)] if isinstance(name, str) and _DIGEST.fullmatch(name) else []


def _write(path: Path, text: str) -> None:
    if not path.exists():
        write_text(path, text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
