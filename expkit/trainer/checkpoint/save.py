"""Save: the state of all ranks becomes one checkpoint. The seconds it takes are on a clock of their own, unbilled.

Rank 0 writes everything; another rank writes only what it holds otherwise, such as its generators.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from expkit import __version__, dist
from expkit.errors import CheckpointError, EnvironmentFault, ExpkitError
from expkit.trainer.checkpoint.config import config_of
from expkit.trainer.checkpoint.files import write_files
from expkit.trainer.checkpoint.keep import Keep
from expkit.trainer.checkpoint.manifest import FILE, Manifest, sha256_of
from expkit.trainer.checkpoint.tree import Packing

if TYPE_CHECKING:
    from expkit.trainer.checkpoint.folders import Folder
    from expkit.trainer.state import State

WHOLE = "$whole"
"""Marks a part that a rank holds altogether otherwise than rank 0."""


def save(state: State, folder: Folder, name: str, keep: Keep | None = None, *, weights_only: bool = False) -> str:
    """Write the checkpoint `name`, called on all ranks at the end of a batch; gives its address.

    `keep`: which ones stay beside it; without, it is one that was asked for and that no rotation takes away.
    EnvironmentFault where the disk is in the way; what was there before is still there then.
    """
    with on_its_clock(state), _sentence(folder.address(name)):
        tree = _captured(state, weights_only)
        with contextlib.ExitStack() as stack:
            staged = _agree(lambda: str(stack.enter_context(folder.staged())))
            files = _written(Path(staged), state.rank, tree)
            _agree(lambda: _commit(state, folder, Path(staged), name, keep, files, weights_only))
    return folder.address(name)


@contextlib.contextmanager
def on_its_clock(state: State) -> Iterator[None]:
    """What is done inside is on `checkpoint_s`."""
    clocks = state.stateful["clocks"]
    before = clocks.switch("checkpoint_s")
    try:
        yield
    finally:
        clocks.switch(before)


def _captured(state: State, weights_only: bool) -> dict[str, Any]:
    parts = {"model": state.stateful["model"]} if weights_only else state.stateful
    tree = {name: dict(part.state_dict()) for name, part in parts.items()}
    return {name: content for name, content in tree.items() if content}


def _written(staged: Path, rank: int, tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every rank writes its files; gives the facts of all of them, or raises on all ranks."""
    own = tree if dist.world_size() == 1 else _own_part(tree)
    said = _saying("files", lambda: write_files(staged, rank, own) if rank == 0 or own else {})
    return {name: facts for rank_said in _all_well(said) for name, facts in rank_said["files"].items()}


def _commit(
    state: State,
    folder: Folder,
    staged: Path,
    name: str,
    keep: Keep | None,
    files: dict[str, dict[str, Any]],
    weights_only: bool,
) -> None:
    if missing := [file for file in files if not (staged / file).is_file()]:
        raise EnvironmentFault(f"rank 0 does not see {missing[0]}, which another rank wrote to {staged}; all ranks "
                               f"must write to one and the same folder")  # fmt: skip
    config = config_of(state)
    manifest = Manifest(
        number=folder.next_number(),
        timestamp=state.timestamp,
        files=files,
        world_size=state.world_size,
        weights_only=weights_only,
        kept=keep is None,
        run_name=state.run_name,
        saved_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        metrics=dict(state.metrics),
        evaluated=sorted(label for label, batch in state.evaluated_at.items() if batch == state.timestamp.batch),
        config=config,
        config_sha256=sha256_of(config),
        versions={"expkit": __version__, "torch": torch.__version__},
    )
    with (staged / FILE).open("w", encoding="utf-8", errors="surrogatepass") as f:
        f.write(manifest.text())
        f.flush()
        os.fsync(f.fileno())
    folder.commit(staged, name, keep or Keep())


def _own_part(tree: dict[str, Any]) -> dict[str, Any]:
    """All of it on rank 0; elsewhere those entries of each part that rank 0 holds otherwise."""
    said = _saying("sums", lambda: {part: _sums(part, content) for part, content in tree.items()})
    first = _all_well(said)[0]["sums"]
    if dist.rank() == 0:
        return tree
    sums, own = said["sums"], {}
    for part, content in tree.items():
        if sums[part].keys() != first.get(part, {}).keys():
            own[part] = {WHOLE: True, **content}
        elif changed := {key: value for key, value in content.items() if sums[part][str(key)] != first[part][str(key)]}:
            own[part] = changed
    return own


def _sums(part: str, content: dict[str, Any]) -> dict[str, str]:
    """The hash of each entry with its tensors, by its key."""
    return {str(key): _sum(value, (part, str(key))) for key, value in content.items()}


def _sum(value: Any, path: tuple[str, ...]) -> str:
    packing = Packing()
    made = hashlib.sha256(json.dumps(packing.pack(value, path)).encode())
    for tensor in packing.tensors.values():
        made.update(str(tensor.dtype).encode())
        made.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return made.hexdigest()


def _agree(action: Callable[[], Any]) -> Any:
    """Rank 0 acts; what comes of it, or its error, comes to all."""
    said = _saying("gave", action) if dist.rank() == 0 else {}
    return _all_well(said)[0]["gave"]


def _saying(what: str, action: Callable[[], Any]) -> dict[str, Any]:
    """What comes of it, or its error: others wait to hear."""
    try:
        return {what: action()}
    except (OSError, ExpkitError) as e:
        return {"error": _first_line(e), "errno": getattr(e, "errno", None)}


def _all_well(said: dict[str, Any]) -> list[dict[str, Any]]:
    everybody = dist.all_gather_json(said)
    for rank, one in enumerate(everybody):
        if "error" in one:
            where = f" (on rank {rank})" if len(everybody) > 1 else ""
            disk = OSError(one["errno"], one["error"]) if one["errno"] else None  # whoever asks for the cause finds it
            raise CheckpointError(f"{one['error']}{where}") from disk
    return everybody


@contextlib.contextmanager
def _sentence(address: str) -> Iterator[None]:
    try:
        yield
    except (OSError, CheckpointError) as e:
        raise EnvironmentFault(f"checkpoint {address} could not be written: {_first_line(e)}") from e


def _first_line(error: BaseException) -> str:
    strerror = getattr(error, "strerror", None)
    return strerror or (str(error).splitlines() or [type(error).__name__])[0]
