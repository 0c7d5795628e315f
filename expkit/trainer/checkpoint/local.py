"""A folder of checkpoints on a disk: written aside, renamed into place, removed by rename first.

A crash at any moment leaves what was there before, and at most a hidden folder that the next run sweeps away.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from expkit.errors import CheckpointError, EnvironmentFault
from expkit.store.atomic import sync_folder, write_text
from expkit.trainer.checkpoint.holding import hold, is_held, release
from expkit.trainer.checkpoint.keep import Found, Keep, to_remove
from expkit.trainer.checkpoint.manifest import FILE, LATEST, read_manifest, refuse_others
from expkit.trainer.checkpoint.verify import verify

_LEFT = re.compile(r"\.(?:tmp|old)-[0-9a-f]{32}")
"""Names of ours that a kill may leave; a folder of the user's own may begin with .old- too."""


class LocalFolder:
    """The checkpoints of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: int | None = None

    def address(self, name: str) -> str:
        """How a user names one of them."""
        return str(self.path / name)

    def holds(self, name: str) -> bool:
        """Whether there is something of this name that says it is a checkpoint."""
        try:
            return (self.path / name / FILE).is_file()
        except OSError:
            return False

    def found(self) -> tuple[list[Found], list[CheckpointError]]:
        """Checkpoints, oldest first, and what is wrong with each folder that once was one."""
        found, wrong = [], []
        for folder in self._folders():
            try:
                found.append(Found(folder.name, read_manifest(folder)))
            except CheckpointError as e:
                if _was_one(folder):
                    wrong.append(e)
        return sorted(found, key=lambda one: one.manifest.number), wrong

    def next_number(self) -> int:
        """One more than the highest there is."""
        return 1 + max((one.manifest.number for one in self.found()[0]), default=0)

    @contextlib.contextmanager
    def staged(self) -> Iterator[Path]:
        """A new hidden folder to write into; held while we live, gone afterwards unless it was committed."""
        staged = self.path / f".tmp-{uuid.uuid4().hex}"
        staged.mkdir(parents=True)
        descriptor = hold(staged)
        try:
            yield staged
        finally:
            if descriptor is not None:
                release(descriptor)
            shutil.rmtree(staged, ignore_errors=True)

    def commit(self, staged: Path, name: str, keep: Keep) -> None:
        """What was staged becomes the newest checkpoint; then those go that need not be kept."""
        place(staged, self.path / name)
        with self.staged() as beside:  # where a kill leaves it to be swept away
            write_text(beside / LATEST, f"{name}\n")
            (beside / LATEST).replace(self.path / LATEST)
        for gone in to_remove(self.found()[0], keep):
            self.remove(gone)

    def remove(self, name: str) -> None:
        """Take one away; it is gone as a whole before its first file is. With a user's own files in it, it stays."""
        aside = self.path / f".old-{uuid.uuid4().hex}"
        with contextlib.suppress(CheckpointError, FileNotFoundError):  # or somebody else was faster
            _refuse_what_is_not_ours(self.path / name)
            (self.path / name).rename(aside)
        shutil.rmtree(aside, ignore_errors=True)

    @contextlib.contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        """The folder of one, verified."""
        folder = self.path / name
        verify(folder, read_manifest(folder))
        yield folder

    def claim(self) -> None:
        """Nobody else saves here until `release`; what a process that was killed left half done is removed."""
        self.release()
        try:
            with self.staged():  # before the first batch: whether one can
                self._held = hold(self.path)
        except OSError as e:
            raise EnvironmentFault(f"no checkpoint can be saved in {self.path}: {e.strerror or e}") from e
        if self._held is None:
            raise EnvironmentFault(f"checkpoints are being saved in {self.path} already, by another training or by "
                                   f"another saver of this one; each needs a folder of its own")  # fmt: skip
        for left in self.path.iterdir():
            if _LEFT.fullmatch(left.name) and not is_held(left):
                shutil.rmtree(left, ignore_errors=True)

    def release(self) -> None:
        """Others may save here."""
        if self._held is not None:
            release(self._held)
            self._held = None

    def raise_errors(self) -> None:
        """Nothing happens behind our back here."""

    def close(self) -> None:
        """Nothing is left to wait for."""

    def _folders(self) -> list[Path]:
        try:
            return sorted(p for p in self.path.iterdir() if p.is_dir() and not p.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as e:
            raise EnvironmentFault(f"{self.path} cannot be read: {e.strerror or e}") from None


def place(staged: Path, final: Path) -> None:
    """Move a staged folder to its name; another of that name is there until then, or not at all.

    CheckpointError, and nothing is moved, where what is there is no checkpoint.
    """
    sync_folder(staged)
    while not _put(staged, final):
        pass  # somebody else has put theirs there this very moment; ours is the later one
    sync_folder(final.parent)


def _put(staged: Path, final: Path) -> bool:
    _refuse_what_is_not_ours(final)
    aside = final.with_name(f".old-{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        final.rename(aside)
    try:
        os.rename(staged, final)  # noqa: PTH104  # says in one word what happens
    except OSError as e:
        if e.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        with contextlib.suppress(OSError):
            aside.rename(final)  # what was there is there again
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return True


def _refuse_what_is_not_ours(final: Path) -> None:
    if final.is_symlink():
        raise CheckpointError(f"{final} is a link, and a checkpoint is a folder; choose another path")
    if final.is_dir():
        with contextlib.suppress(FileNotFoundError):  # gone again
            refuse_others(str(final), (path.name for path in final.iterdir()))
    elif final.exists():
        raise CheckpointError(f"{final} is a file, and a checkpoint is a folder; choose another path")


def _was_one(folder: Path) -> bool:
    try:
        return any(path.name == FILE or path.name.startswith("rank") for path in folder.iterdir())
    except OSError:
        return True  # who may not look cannot say that it was none
