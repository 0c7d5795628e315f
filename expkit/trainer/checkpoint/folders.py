"""Folders of checkpoints, on a disk or behind a URI."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

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

    def found(self) -> tuple[list[Found], list[str]]:
        """Checkpoints, oldest first, and a sentence for each folder that once was one."""
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

    def sweep(self) -> None:
        """Remove what a process that was killed left half done."""
        ...

    def raise_errors(self) -> None:
        """EnvironmentFault for what went wrong in the background."""
        ...

    def close(self) -> None:
        """Wait for what is under way."""
        ...


def open_folder(address: str) -> Folder:
    """The folder at a path or a URI; it need not be there yet."""
    if is_remote(address):
        from expkit.trainer.checkpoint.remote import RemoteFolder  # fsspec: only where it is asked for

        return RemoteFolder(address)
    return LocalFolder(Path(local_path(address)))
