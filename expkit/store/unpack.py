"""Unpack: a bundle as a runs folder to read, or added to one that is there. A zip from anywhere is not believed.

Each file must have a name that a bundle of that sweep may have, stand in the head with its sha256, and be no larger
than text that was packed may be.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import zipfile
import zlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from expkit.errors import UsageError
from expkit.store.atomic import temporary
from expkit.store.bundle import BUNDLE_VERSION, MANIFEST, may_hold
from expkit.store.discard import discard
from expkit.store.find import trials
from expkit.store.layout import Layout
from expkit.store.place import cache_dir
from expkit.store.store import Store

MOST_TIMES = 1000
"""A text that is packed to less than this part of its size is no text of ours."""
_SMALL_BYTES = 1 << 20
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BAD_ZIP = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError,
            EOFError, ValueError, LookupError)  # fmt: skip
"""What zipfile raises for what is no zip, or a damaged one."""


@dataclass(frozen=True)
class Bundle:
    """A bundle that was unpacked."""

    folder: Path
    sweep: str
    made_utc: str
    expkit: str
    """The version that made it."""
    num_files: int

    @property
    def runs(self) -> Path:
        """Its runs folder."""
        return self.folder / "runs"

    @property
    def page(self) -> Path:
        """Its report."""
        return self.folder / "report" / "index.html"


def unpacked(path: Path) -> Bundle:
    """The bundle in a folder for caches, unpacked the first time; UsageError for what is none or is damaged."""
    try:
        stat = path.stat()
    except OSError as e:
        raise UsageError(f"{path} cannot be read ({e.strerror})") from None
    known = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    folder = cache_dir() / f"{path.stem[:60]}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"
    if not (folder / MANIFEST).is_file():
        discard(folder)  # half of it was cleared away: caches are
        beside = temporary(folder)
        try:
            _extract(path, beside)
            beside.rename(folder)
        except OSError:
            if not (folder / MANIFEST).is_file():  # else another process was quicker
                raise
        finally:
            discard(beside)
    head = json.loads((folder / MANIFEST).read_bytes())
    return Bundle(folder, head["sweep"], head["made_utc"], head["expkit"], len(head["files"]))


def add(bundle: Bundle, store: Store) -> list[str]:
    """Add what a bundle holds to a runs folder; what is there already stays, and is named where it is not the same.

    UsageError where a sweep of this name is there that is another one. Killed in between, it can be done again.
    """
    source, target = Layout(bundle.runs), store.layout
    own, there = (_content(layout.sweep_yaml(bundle.sweep)) for layout in (source, target))
    if there is not None and there != own:
        raise UsageError(f"{target.root} has another sweep {bundle.sweep!r}; use another --into")
    kept = []
    _merge(source.root / "provenance", target.root / "provenance")
    for id12 in trials(source):
        record = Store(source.root).read_trial(id12)
        if record is not None and record.id12 == id12 and source.recipe(id12).is_file():
            store.add_trial(record, source.recipe(id12).read_text(encoding="utf-8", errors="replace"))
        for replicate in Store(source.root).replicates(id12):
            ours, theirs = target.replicate(id12, replicate), source.replicate(id12, replicate)
            if not ours.exists():
                _copy_whole(theirs, ours)
            elif _content(target.status(id12, replicate)) != _content(source.status(id12, replicate)):
                kept.append(f"{id12} r{replicate}")
        _merge(source.trial(id12), target.trial(id12))
    _merge(source.sweep(bundle.sweep), target.sweep(bundle.sweep))
    return kept


def _extract(path: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(path) as bundle:
            for info in bundle.infolist():
                _check_size(info, path)
            files = _head(bundle, path)
            for name in bundle.namelist():
                if name not in files and name != MANIFEST:
                    raise UsageError(f"{path} holds {name!r}, which no bundle of expkit does")
            if missing := set(files) - set(bundle.namelist()):
                raise UsageError(f"{path} is damaged: {min(missing)} is not in it")
            made = _moment(bundle)
            for name in files:
                data = bundle.read(name)
                if hashlib.sha256(data).hexdigest() != files[name]:
                    raise UsageError(f"{path} is damaged: {name} is not as it was packed")
                _put(folder / name, data, made)
            _put(folder / MANIFEST, bundle.read(MANIFEST), made)
    except _BAD_ZIP as e:
        said = " ".join(str(e).split()) or type(e).__name__
        raise UsageError(
            f"{path} is no bundle, or a damaged one ({said}); expkit report SWEEP --bundle makes one"
        ) from None


def _head(bundle: zipfile.ZipFile, path: Path) -> dict[str, str]:
    try:
        head: Any = json.loads(bundle.read(MANIFEST))
        version, files = head["schema_version"], head["files"]
        texts = [head["sweep"], head["made_utc"], head["expkit"], *files, *files.values()]
    except (KeyError, ValueError, TypeError, AttributeError) as e:
        raise UsageError(f"{path} is no bundle of expkit ({MANIFEST}: {type(e).__name__})") from None
    if not isinstance(version, int) or version > BUNDLE_VERSION or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{path} has bundle version {version!r}, this expkit reads up to {BUNDLE_VERSION}")
    Layout(Path()).sweep(head["sweep"])  # a name that could lead out of the folder is refused
    known = may_hold(head["sweep"])
    for name in files:
        if not known.fullmatch(name):
            raise UsageError(f"{path} holds {name!r}, which no bundle of expkit does")
    return dict(files)


def _check_size(info: zipfile.ZipInfo, path: Path) -> None:
    if info.compress_type not in _PACKED:
        raise UsageError(f"{path} holds {info.filename!r}, packed in a way that no bundle of expkit is")
    if info.file_size > _SMALL_BYTES and info.file_size > MOST_TIMES * info.compress_size:
        raise UsageError(f"{path} holds {info.filename!r}, {info.file_size} bytes packed into {info.compress_size}")


def _moment(bundle: zipfile.ZipFile) -> float:
    """When the bundle was made: the time of all files, since what ran then must not seem to be running now."""
    try:
        return datetime.fromisoformat(json.loads(bundle.read(MANIFEST))["made_utc"]).timestamp()
    except ValueError:
        return 0.0


def _put(path: Path, data: bytes, changed_s: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (changed_s, changed_s))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # nothing of it has been written yet
        return None


def _copy_whole(source: Path, target: Path) -> None:
    beside = temporary(target)
    try:
        shutil.copytree(source, beside)
        beside.rename(target)
    finally:
        discard(beside)


def _merge(source: Path, target: Path) -> None:
    """Copy the files of one folder that the other does not have."""
    for path in sorted(source.iterdir()) if source.is_dir() else ():
        if path.is_file() and not (target / path.name).exists():
            target.mkdir(parents=True, exist_ok=True)
            beside = temporary(target / path.name)
            shutil.copy2(path, beside)
            beside.replace(target / path.name)
