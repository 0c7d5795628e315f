"""Start: what a trainer knows of checkpoints: the parts it registers, and where it begins."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expkit import dist
from expkit.duration import Time
from expkit.errors import CheckpointError, UsageError
from expkit.trainer.checkpoint.config import own_difference
from expkit.trainer.checkpoint.find import decided, fetched, newest_whole, split_address
from expkit.trainer.checkpoint.folders import Folder, open_folder
from expkit.trainer.checkpoint.load import Loaded, load, take_up
from expkit.trainer.checkpoint.manifest import read_manifest
from expkit.trainer.checkpoint.moment import Generators, TrainingState
from expkit.trainer.checkpoint.names import folder_of, name_of, path_of, uses
from expkit.trainer.checkpoint.save import save
from expkit.trainer.checkpoint.saver import Saver
from expkit.trainer.checkpoint.stateful import ModelState, OptimizerState, ScalerState
from expkit.trainer.parts import parse_time

if TYPE_CHECKING:
    from expkit.trainer.clock import Clocks
    from expkit.trainer.logger import Logger
    from expkit.trainer.state import State


def saver_of(folder: str | Path | None, interval: str | Time | None) -> list[Saver]:
    """The callback that saves; none where there is no folder."""
    every = None if interval is None else parse_time("save_interval", interval)
    return [] if folder is None else [Saver(folder=str(folder), save_interval=every)]


def new_run_name() -> str:
    """A name that no other run has, the same on all ranks."""
    return str(dist.broadcast_json(f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"))


def register(
    state: State, clocks: Clocks, scaler: Any, loader: Any, loggers: Mapping[str, Any], *, searches: bool
) -> None:
    """Everything a checkpoint holds, by its stable name; `searches`: for a size of microbatches."""
    state.stateful |= {
        "model": ModelState(state),
        "optimizer": OptimizerState(state),
        "scaler": ScalerState(scaler),
        "clocks": clocks,
        "training": TrainingState(state, searches=searches),
        "loader": loader,
        "rng": Generators(state.device),
        **{f"algorithms/{label}": algorithm for label, algorithm in state.algorithms.items()},
        **{f"callbacks/{label}": callback for label, callback in state.callbacks.items()},
        **{f"loggers/{label}": logger for label, logger in loggers.items()},
    }


def begin(
    state: State,
    logger: Logger,
    load_path: str | Path | None,
    *,
    weights_only: bool,
    strict: bool,
    ignore_keys: Sequence[str],
    autoresume: bool,
    named: bool,
) -> None:
    """Take up what a training begins with: with `autoresume` its own newest checkpoint, else that at `load_path`.

    `named`: whether the run has a name of its own rather than a new one in each process.
    """
    if autoresume:
        _check_autoresume(state, named)
    loaded = _resumed(state, strict) if autoresume else None
    if loaded is None and load_path is not None:
        path = folder_of(str(load_path), state)
        loaded = load(state, path, weights_only=weights_only, strict=strict, ignore_keys=ignore_keys)
    if loaded is not None:
        logger.log_event("load", {"address": loaded.address, "batch": loaded.manifest.timestamp.batch})


def _check_autoresume(state: State, named: bool) -> None:
    """UsageError where a new process could not find what an old one saved."""
    savers = [saver for saver in _savers(state) if not saver.weights_only]
    if not savers:
        raise UsageError("autoresume needs save_folder, or a callback that saves whole checkpoints")
    if not named and any(uses(saver.folder, "run_name") for saver in savers):
        raise UsageError("autoresume needs run_name, or a folder without {run_name}: else each process has its own")


def save_at(state: State, path: str, *, weights_only: bool) -> str:
    """Write one checkpoint at a path or URI."""
    parent, name = split_address(path_of(path, state))
    folder = open_folder(parent)
    address = save(state, folder, name_of(name, state), weights_only=weights_only)
    folder.close()
    return address


def saved_checkpoints(state: State) -> list[str]:
    """Addresses of what all savers have saved, oldest first."""
    folders = [saver.place(state) for saver in _savers(state)]
    return [folder.address(one.name) for folder in folders for one in folder.found()[0]]


def _savers(state: State) -> list[Saver]:
    return [callback for callback in state.callbacks.values() if isinstance(callback, Saver)]


def _resumed(state: State, strict: bool) -> Loaded | None:
    """From the folder in which training has come farthest; None where there is nothing yet."""
    newest: tuple[int, Folder, str] | None = None
    for folder in (saver.place(state) for saver in _savers(state) if not saver.weights_only):
        name = decided(lambda folder=folder: newest_whole(folder, weights_only=False))  # type: ignore[misc]
        if name is None:
            continue
        batch = decided(lambda folder=folder, name=name: _batch_of(folder, name))  # type: ignore[misc]
        if newest is None or batch > newest[0]:
            newest = batch, folder, name
    if newest is None:
        return None
    _, folder, name = newest
    with fetched(folder, name) as place:
        manifest, address = read_manifest(place), folder.address(name)
        if strict and (found := own_difference(state, manifest.config, seed=True)):
            raise CheckpointError(f"{address} is of another training: {found}; choose another run_name or save_folder, "
                                  f"or go on from it all the same with load_strict=False")  # fmt: skip
        loaded = take_up(state, place, address, weights_only=False, strict=strict)
    state.resumed_from = address
    return loaded


def _batch_of(folder: Folder, name: str) -> int:
    return next(one.manifest.timestamp.batch for one in folder.found()[0] if one.name == name)
