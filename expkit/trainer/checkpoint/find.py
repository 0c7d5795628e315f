"""Find: which checkpoint is meant by an address, and which of several is the newest that is whole."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from expkit import dist
from expkit.errors import CheckpointError, EnvironmentFault, ExpkitError
from expkit.trainer.checkpoint.folders import Folder, open_folder
from expkit.trainer.checkpoint.manifest import LATEST, NewerFormat, read_manifest
from expkit.uri import is_remote, local_path, without_userinfo


@contextlib.contextmanager
def opened(address: str) -> Iterator[tuple[Path, str]]:
    """The verified folder of a checkpoint, and its address.

    From a folder of checkpoints, or the file `latest` in it, the newest that is whole.
    """
    parent, name = split_address(address)
    folder = open_folder(parent)
    if not decided(lambda: folder.holds(name)):
        folders = [open_folder(address), *([folder] if name == LATEST else [])]
        which, name = decided(lambda: _newest_of(folders) or _refuse(address))
        folder = folders[which]
    with fetched(folder, name) as place:
        yield place, folder.address(name)


def newest_whole(folder: Folder, *, weights_only: bool = True) -> str | None:
    """The newest checkpoint whose every byte is as it was written; a warning says which newer ones are passed over.

    One of a newer format is not damaged, so nothing goes on from an older one. `weights_only`: whether one that holds
    nothing else will do.
    """
    found, wrong = folder.found()
    refuse_newer(wrong)
    passed_over = [str(error) for error in wrong]
    for one in reversed(found):
        if one.manifest.weights_only and not weights_only:
            continue
        try:
            with folder.fetched(one.name):
                if passed_over:
                    warnings.warn(f"{'; '.join(passed_over)}; so {folder.address(one.name)} is taken", stacklevel=2)
                return one.name
        except CheckpointError as e:
            passed_over.append(str(e))
    if passed_over:
        raise CheckpointError(f"no checkpoint can be used: {'; '.join(passed_over)}")
    return None


def refuse_newer(wrong: Iterable[CheckpointError]) -> None:
    """NewerFormat where one of them is that."""
    for error in wrong:
        if isinstance(error, NewerFormat):
            raise error


@contextlib.contextmanager
def fetched(folder: Folder, name: str) -> Iterator[Path]:
    """One checkpoint on this machine, verified; one rank of each machine fetches it for the others there."""
    said: dict[str, Any] = {"node": dist.node_rank()}
    with contextlib.ExitStack() as stack:
        if dist.local_rank() == 0:
            try:
                said["place"] = str(stack.enter_context(folder.fetched(name)))
            except (ExpkitError, OSError) as e:
                said["error"] = str(e)
        everybody = dist.all_gather_json(said)
        if error := next((one["error"] for one in everybody if "error" in one), None):
            raise CheckpointError(error)
        yield Path(next(one["place"] for one in everybody if "place" in one and one["node"] == said["node"]))


def split_address(address: str) -> tuple[str, str]:
    """The folder that a checkpoint is in, and its name."""
    parent, slash, name = address.rstrip("/").rpartition("/")
    return (parent or slash or ".", name) if not parent.endswith(":/") else (address, "")


def decided(question: Callable[[], Any]) -> Any:
    """Rank 0 looks, all know; its error is everybody's."""
    said: dict[str, Any] = {}
    if dist.rank() == 0:
        try:
            said["answer"] = question()
        except ExpkitError as e:
            if dist.world_size() == 1:
                raise
            said |= {"error": str(e), "fault": isinstance(e, EnvironmentFault)}
    said = dist.broadcast_json(said)
    if "error" in said:
        raise (EnvironmentFault if said["fault"] else CheckpointError)(said["error"])
    return said["answer"]


def _newest_of(folders: Sequence[Folder]) -> tuple[int, str] | None:
    """Which of them is the first to have a checkpoint, and the name of that."""
    return next(((i, name) for i, folder in enumerate(folders) if (name := newest_whole(folder))), None)


def _refuse(address: str) -> NoReturn:
    if not is_remote(address):
        read_manifest(Path(local_path(address)))  # says why it is none
    raise CheckpointError(f"there is no checkpoint at {without_userinfo(address)}")
