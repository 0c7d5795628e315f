"""Folders of checkpoints, on a disk or behind a URI."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from expkit.errors import CheckpointError, UsageError
from expkit.trainer.checkpoint.keep import Found, Keep
from expkit.trainer.checkpoint.local import LocalFolder
from expkit.uri import is_remote, local_path


class Folder(Protocol):
    """The checkpoints of one run, wherever they are."""

    def address(self, name: str) -> str:
        """How a user names one of them."""
        ...

    def holds(self, name: str) -> bool:
        """Whether there is something of this name that says it is a checkpoint."""
        ...

    def found(self) -> tuple[list[Found], list[CheckpointError]]:
        """Checkpoints, oldest first, and what is wrong with each folder that once was one."""
        ...

    def next_number(self) -> int:
        """One more than the highest there is."""
        ...

    def staged(self) -> AbstractContextManager[Path]:
        """A new folder on this machine to write into."""
        ...

    def commit(self, staged: Path, name: str, keep: Keep) -> None:
        """What was staged becomes the newest checkpoint; then those go that need not be kept."""
        ...

    def fetched(self, name: str) -> AbstractContextManager[Path]:
        """One of them on this machine, verified."""
        ...

    def claim(self) -> None:
        """Nobody else saves here until `release`; EnvironmentFault where somebody does, or where nobody can."""
        ...

    def release(self) -> None:
        """Others may save here."""
        ...

    def raise_errors(self) -> None:
        """EnvironmentFault for what went wrong in the background."""
        ...

    def close(self) -> None:
        """Wait for what is under way."""
        ...


def open_folder(address: str) -> Folder:
    """The folder at a path or a URI; it need not be there yet."""
    if "\0" in address or not _is_unicode(address):
        raise UsageError(f"{address!r} is no address of checkpoints: it is not valid UTF-8, or has a NUL in it")
    if is_remote(address):
        from expkit.trainer.checkpoint.remote import RemoteFolder  # fsspec: only where it is asked for

        return RemoteFolder(address)
    return LocalFolder(Path(local_path(address)))


def _is_unicode(text: str) -> bool:
    """A name of other bytes is no path to safetensors."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
