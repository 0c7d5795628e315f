"""Load: take up a checkpoint. What does not fit is said in one sentence, before anything is changed.

    load(state, "runs/a/checkpoints")                      # the newest that can be used
    load(state, "runs/a/checkpoints/ep1-ba120", weights_only=True)

Nothing in a checkpoint is executed; see tree.py for all that may stand in one.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expkit import dist
from expkit.errors import CheckpointError
from expkit.trainer.checkpoint import checks
from expkit.trainer.checkpoint.config import own_difference
from expkit.trainer.checkpoint.files import read_files
from expkit.trainer.checkpoint.find import opened
from expkit.trainer.checkpoint.fitting import Ignored, fit_of, listed, naming
from expkit.trainer.checkpoint.manifest import Manifest, read_manifest
from expkit.trainer.checkpoint.save import WHOLE

if TYPE_CHECKING:
    from expkit.trainer.state import State

_OF_ONE_RANK = ("rng", "loader")
"""Parts that mean nothing on a rank that did not save them."""


@dataclass(frozen=True)
class Loaded:
    """What was taken up."""

    address: str
    manifest: Manifest
    weights_only: bool


def load(
    state: State, address: str, *, weights_only: bool = False, strict: bool = True, ignore_keys: Sequence[str] = ()
) -> Loaded:
    """Take up the checkpoint at a path or URI, or the newest usable one of a folder of them; called on all ranks.

    `strict`: whether names that only one side has are refused; without it, what fits is taken. Shapes must fit always.
    `ignore_keys`: globs over paths such as `model/head.*` or `optimizer`; what they match is left as it is here.
    """
    with opened(address) as (folder, found):
        return take_up(state, folder, found, weights_only=weights_only, strict=strict, ignore_keys=ignore_keys)


def take_up(
    state: State, folder: Path, address: str, *, weights_only: bool, strict: bool, ignore_keys: Sequence[str] = ()
) -> Loaded:
    """Take up a checkpoint whose files have been verified; on all ranks or, where one of them cannot, on none."""
    error, loaded = None, None
    try:
        loaded = _taken(state, folder, address, weights_only, strict, ignore_keys)
    except CheckpointError as e:
        if dist.world_size() == 1:
            raise
        error = str(e)
    for rank, said in enumerate(dist.all_gather_json(error)):
        if said is not None:
            raise CheckpointError(f"{said} (on rank {rank})")
    assert loaded is not None
    return loaded


def _taken(
    state: State, folder: Path, address: str, weights_only: bool, strict: bool, ignore_keys: Sequence[str]
) -> Loaded:
    manifest = read_manifest(folder)
    if manifest.weights_only and not weights_only:
        raise CheckpointError(f"checkpoint {address} holds weights only; load_weights_only=True takes them")
    ignored = Ignored(ignore_keys)
    with checks.calling(str(folder), address):
        tree = ignored.without(_read(folder, manifest, state.rank))
    found = own_difference(state, manifest.config, seed=False)  # before anything is changed
    parts = {"model": state.stateful["model"]} if weights_only else state.stateful
    saved = {name: content for name, content in tree.items() if name in parts}
    fit = fit_of(parts, tree, address, ignored=ignored, weights_only=weights_only)
    if what := fit.refusal(strict=strict):
        raise CheckpointError(f"checkpoint {address} does not fit: {what}{_methods(state, manifest)}")
    if state.rank == 0:
        ignored.warn(address, parts)
        if fit.one_sided:
            warnings.warn(f"checkpoint {address} is taken up in part: {'; '.join(fit.one_sided)}", stacklevel=2)
    for name, content in saved.items():
        with naming(f"checkpoint {address} cannot be taken up: {name}"):
            parts[name].load_state_dict(content)
    if found and not weights_only and state.rank == 0:
        warnings.warn(f"checkpoint {address} is of a training set up otherwise: {found}; the optimizer goes on with "
                      f"the settings it was saved with", stacklevel=2)  # fmt: skip
    return Loaded(address, manifest, weights_only)


def _read(folder: Path, manifest: Manifest, rank: int) -> dict[str, Any]:
    """What this rank saved; a rank that there was not has what rank 0 had, but for its generators."""
    tree = read_files(folder, 0)
    for name, content in tree.items():
        if not isinstance(content, dict):
            raise CheckpointError(f"{folder / 'rank0.json'} cannot be used: {name} must be a map")
    if rank >= manifest.world_size:
        return {name: content for name, content in tree.items() if name not in _OF_ONE_RANK}
    if rank == 0 or f"rank{rank}.json" not in manifest.files:
        return tree
    for name, content in read_files(folder, rank).items():
        if not isinstance(content, dict):
            raise CheckpointError(f"{folder / f'rank{rank}.json'} cannot be used: {name} must be a map")
        whole = content.pop(WHOLE, False)
        tree[name] = content if whole else {**tree.get(name, {}), **content}
    return tree


def _methods(state: State, manifest: Manifest) -> str:
    """The likeliest reason, where there is one: other methods."""
    saved, here = manifest.config.get("algorithms"), set(state.algorithms)
    there = set(saved) if isinstance(saved, dict) else here
    if here == there:
        return ""
    saved_with, now = (listed(sorted(labels)) or "none" for labels in (there, here))
    return f"; it was saved with the methods {saved_with}, here are {now}"
