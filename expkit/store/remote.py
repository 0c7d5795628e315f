"""A runs folder behind a URL that fsspec knows (`s3://`, `gs://`, `memory://`), kept as a copy on this machine.

Only what has changed is fetched: of closed metrics files nothing but the new ones. DuckDB stays locked to the copy and
needs no network. Listings of others' stores are no snapshots, so the order matters: first the records, then the metrics
files of trials, then the store-wide ones, each listed after what came before was fetched. So whatever is complete has
all its rows, and rows that were folded meanwhile are found where they went.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from expkit.errors import EnvironmentFault, ExpkitError, UsageError
from expkit.store.atomic import temporary, write_json
from expkit.store.discard import discard
from expkit.store.place import view_of
from expkit.uri import file_system, without_userinfo

_PASSED_OVER = frozenset({"checkpoints", "profile", "artifacts", "report"})
"""Folders of which no question needs anything."""
_VERSION = ("ETag", "etag", "md5Hash", "content_md5", "generation", "LastModified", "last_modified", "updated", "mtime",
            "created")  # fmt: skip
"""What file systems say that changes with a file's content."""
_TRIES = 3
_AT_ONCE = 256


def mirrored(url: str, *, logs: bool = False) -> Path:
    """Bring the copy up to date and give its folder.

    UsageError where nothing is there; EnvironmentFault where it cannot be reached, and the copy stays as it was then.
    """
    folder = view_of(url)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent / "lock"), _reaching(url):
        for _ in range(_TRIES):
            try:
                _Mirror(url, folder, logs).update()
                return folder
            except FileNotFoundError:  # went between listing and fetching: somebody compacts or removes
                continue
    raise EnvironmentFault(f"{without_userinfo(url)} changes faster than it can be read; try again")


def fetched(url: str) -> Path:
    """A copy of one file, fetched again where it has changed; UsageError where it is not there."""
    folder = view_of(url).parent
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / "lock"), _reaching(url):
        fs, path = file_system(url)
        try:
            entry = _entry(path, fs.info(path))
        except FileNotFoundError:
            raise UsageError(f"there is no {without_userinfo(url)}") from None
        target = folder / path.rpartition("/")[2]
        known = _read(folder / "index.json").get(target.name)
        if not (target.exists() and entry.version and known == [entry.size, entry.version]):
            beside = temporary(target)
            fs.get_file(path, str(beside))
            beside.replace(target)
            write_json(folder / "index.json", {target.name: [entry.size, entry.version]}, durable=False)
        return target


@dataclass(frozen=True)
class _Entry:
    """A file there."""

    path: str
    size: int
    version: str
    """Empty where the file system does not say."""
    changed_s: float | None


class _Mirror:
    def __init__(self, url: str, folder: Path, logs: bool) -> None:
        self._url = url
        self._fs, self._root = file_system(url)
        self._folder = folder
        self._logs = logs
        self._index = folder.parent / "index.json"
        self._have: dict[str, list[Any]] = _read(self._index)
        self._incoming = folder.parent / "incoming"

    def update(self) -> None:
        """Fetch in the order that the module's head explains, then drop what is no longer there."""
        there = {name: e for name, e in self._listed("").items() if not _is_metrics(name)}
        self._fetch(there)
        for part in ("trials", "metrics"):
            rows = {name: e for name, e in self._listed(part).items() if _is_metrics(name)}
            self._fetch(rows)
            there |= rows
        for name in sorted(set(self._have) - set(there)):
            if self._logs or not name.endswith(".log"):
                discard(self._folder / name)
                del self._have[name]
        self._save()
        if not there:
            raise UsageError(f"there are no results at {without_userinfo(self._url)}")

    def _listed(self, part: str) -> dict[str, _Entry]:
        """Files there by their path below the root, those that no question needs left out."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.find(f"{self._root}/{part}".rstrip("/"), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        entries = {_below(path, self._root): _entry(path, info) for path, info in found.items()}
        return {name: e for name, e in entries.items() if name and self._needed(name)}

    def _needed(self, name: str) -> bool:
        parts = PurePosixPath(name).parts
        copy = parts[0] == "metrics" and parts[-1].startswith("gathered-")  # of files as old as they are there
        hidden = copy or any(part.startswith(".") or part in ("..", "/") for part in parts)
        return not hidden and not _PASSED_OVER & set(parts[:-1]) and (self._logs or not name.endswith(".log"))

    def _fetch(self, wanted: Mapping[str, _Entry]) -> None:
        stale = [(name, e) for name, e in wanted.items() if not self._is_fresh(name, e)]
        for at in range(0, len(stale), _AT_ONCE):
            self._fetch_some(stale[at : at + _AT_ONCE])

    def _is_fresh(self, name: str, entry: _Entry) -> bool:
        unchanging = name.endswith(".parquet") and not name.startswith("sweeps/")  # metrics files are never rewritten
        known = [entry.size, entry.version]
        return self._have.get(name) == known and bool(entry.version or unchanging) and (self._folder / name).exists()

    def _fetch_some(self, some: list[tuple[str, _Entry]]) -> None:
        discard(self._incoming)
        self._incoming.mkdir()
        beside = [self._incoming / str(i) for i in range(len(some))]
        try:
            self._fs.get([entry.path for _, entry in some], [str(path) for path in beside])
        except FileNotFoundError:
            self._fetch_one_by_one(some, beside)
        for path, (name, entry) in zip(beside, some, strict=True):
            if not path.exists():
                continue
            if entry.changed_s is not None:
                os.utime(path, (entry.changed_s,) * 2)  # heartbeats speak by their time
            target = self._folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            self._have[name] = [entry.size, entry.version]
        self._save()
        discard(self._incoming)

    def _fetch_one_by_one(self, some: list[tuple[str, _Entry]], beside: list[Path]) -> None:
        """Records come and go while trials run; metrics files go only where their rows have gone to others."""
        for path, (name, entry) in zip(beside, some, strict=True):
            try:
                self._fs.get_file(entry.path, str(path))
            except FileNotFoundError:
                path.unlink(missing_ok=True)
                if _is_metrics(name):
                    raise

    def _save(self) -> None:
        write_json(self._index, self._have, durable=False)


def _is_metrics(name: str) -> bool:
    return name.startswith("metrics/") or (name.startswith("trials/") and name.endswith(".parquet"))


def _below(path: str, root: str) -> str:
    """The part of a path below the root; empty for the root itself."""
    return path.rstrip("/").removeprefix(root).lstrip("/")


def _entry(path: str, info: Mapping[str, Any]) -> _Entry:
    version = json.dumps([str(info[key]) for key in _VERSION if info.get(key) is not None])
    return _Entry(path, int(info.get("size") or 0), "" if version == "[]" else version, _changed(info))


def _changed(info: Mapping[str, Any]) -> float | None:
    for key in ("LastModified", "last_modified", "mtime", "updated", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return None


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time brings a copy up to date; the lock ends with the process."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _reaching(url: str) -> Iterator[None]:
    """Whatever a file system says that cannot be asked becomes one sentence; each has errors of its own."""
    try:
        yield
    except ExpkitError:
        raise
    except Exception as e:
        said = (str(e).splitlines() or [""])[0]
        raise EnvironmentFault(f"{without_userinfo(url)} cannot be read: {type(e).__name__} {said}") from e
