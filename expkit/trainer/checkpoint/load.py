"""Load: take up a checkpoint. What does not fit is said in one sentence, before anything is changed.

    load(state, "runs/a/checkpoints")                      # the newest that can be used
    load(state, "runs/a/checkpoints/ep1-ba120", weights_only=True)

Nothing in a checkpoint is executed; see tree.py for all that may stand in one.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expkit import dist
from expkit.errors import CheckpointError, ExpkitError
from expkit.provenance import without_userinfo
from expkit.trainer.checkpoint import checks
from expkit.trainer.checkpoint.config import own_difference
from expkit.trainer.checkpoint.files import read_files
from expkit.trainer.checkpoint.folders import Folder, open_folder
from expkit.trainer.checkpoint.manifest import Manifest, read_manifest
from expkit.trainer.checkpoint.save import WHOLE
from expkit.trainer.checkpoint.stateful import Differences
from expkit.trainer.checkpoint.uri import is_remote, local_path

if TYPE_CHECKING:
    from expkit.trainer.state import State

_NAMED = 8
"""So many names stand in a sentence, the rest is counted."""
_OF_ONE_RANK = ("rng", "loader")
"""Parts that mean nothing on a rank that did not save them."""
_MAY_DIFFER = ("callbacks/", "loggers/", "rng", "scaler", "clocks", "loader")
"""Parts that may be here and not there: they change no training, or depend on the machine."""


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
    ignored = _Ignored(ignore_keys)
    with checks.calling(str(folder), address):
        tree = ignored.without(_read(folder, manifest, state.rank))
    found = own_difference(state, manifest.config, seed=False)  # before anything is changed
    parts = {"model": state.stateful["model"]} if weights_only else state.stateful
    saved = {name: content for name, content in tree.items() if name in parts}
    what = _what_does_not_fit(parts, tree, address, strict=strict, ignored=ignored, weights_only=weights_only)
    if what:
        raise CheckpointError(f"checkpoint {address} does not fit: {what}{_methods(state, manifest)}")
    ignored.warn(address)
    for name, content in saved.items():
        with _naming(f"checkpoint {address} cannot be taken up: {name}"):
            parts[name].load_state_dict(content)
    if found and not weights_only:
        warnings.warn(f"checkpoint {address} is of a training set up otherwise: {found}; the optimizer goes on with "
                      f"the settings it was saved with", stacklevel=2)  # fmt: skip
    return Loaded(address, manifest, weights_only)


@contextlib.contextmanager
def opened(address: str) -> Iterator[tuple[Path, str]]:
    """The verified folder of a checkpoint, and its address; from a folder of checkpoints the newest that is whole."""
    parent, name = split_address(address)
    folder = open_folder(parent)
    if not decided(lambda: folder.holds(name)):
        folder = open_folder(address)
        name = decided(lambda: newest_whole(folder) or _refuse(address))
    with fetched(folder, name) as place:
        yield place, folder.address(name)


def newest_whole(folder: Folder, *, weights_only: bool = True) -> str | None:
    """The newest checkpoint whose every byte is as it was written; a warning says which newer ones are passed over.

    `weights_only`: whether one that holds nothing else will do.
    """
    found, wrong = folder.found()
    passed_over = list(wrong)
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


def _refuse(address: str) -> str:
    if not is_remote(address):
        read_manifest(Path(local_path(address)))  # says why it is none
    raise CheckpointError(f"there is no checkpoint at {without_userinfo(address)}")


def decided(question: Callable[[], Any]) -> Any:
    """Rank 0 looks, all know; its error is everybody's."""
    said: dict[str, Any] = {}
    if dist.rank() == 0:
        try:
            said["answer"] = question()
        except ExpkitError as e:
            if dist.world_size() == 1:
                raise
            said["error"] = str(e)
    said = dist.broadcast_json(said)
    if "error" in said:
        raise CheckpointError(said["error"])
    return said["answer"]


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


class _Ignored:
    """Globs over paths, joined by slashes; what one matches is ignored with all below it."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._used: set[str] = set()

    def without(self, tree: dict[str, Any], path: str = "") -> dict[str, Any]:
        """A tree without what is ignored."""
        kept = {}
        for key, value in tree.items():
            below = f"{path}/{key}" if path else str(key)
            if not self._match(below):
                kept[key] = self.without(value, below) if isinstance(value, dict) else value
        return kept

    def covers(self, path: str) -> bool:
        """Whether a path, or one above it, is ignored."""
        steps = path.split("/")
        return any(self._match("/".join(steps[: i + 1])) for i in range(len(steps)))

    def warn(self, address: str) -> None:
        """Say which patterns matched nothing, neither there nor here."""
        for pattern in self._patterns:
            if pattern not in self._used:
                warnings.warn(f"load_ignore_keys: nothing in {address} matches {pattern!r}", stacklevel=2)

    def _match(self, path: str) -> bool:
        hits = [pattern for pattern in self._patterns if fnmatchcase(path, pattern)]
        self._used.update(hits)
        return bool(hits)


def _what_does_not_fit(
    parts: Mapping[str, Any],
    tree: Mapping[str, Any],
    address: str,
    *,
    strict: bool,
    ignored: _Ignored,
    weights_only: bool,
) -> str:
    """What can never fit, and under `strict` what only one side has; empty where all is well."""
    absent = [name for name, part in parts.items() if name not in tree and _says(part)]
    missing = [name for name in absent if not ignored.covers(name)]
    unexpected = [] if weights_only else sorted(tree.keys() - parts.keys())
    one_sided = _sentences("it", *(_that_matter(names) for names in (missing, unexpected)))
    never = []
    for name in sorted(parts.keys() & tree.keys()):
        with _naming(f"checkpoint {address} cannot be taken up: {name}"):
            found = parts[name].differences(tree[name]) if hasattr(parts[name], "differences") else Differences()
        lacking = [key for key in found.missing if not ignored.covers(f"{name}/{key}")]
        one_sided += _sentences(f"its {name}", lacking, found.unexpected)
        never += [f"{name}: {sentence}" for sentence in found.wrong]
    if not strict:
        return "; ".join(never[:_NAMED])
    hint = ["load_strict=False takes what fits"] if one_sided and not never else []
    return "; ".join([*never[:_NAMED], *one_sided, *hint])


def _that_matter(names: Sequence[str]) -> list[str]:
    return [name for name in names if not name.startswith(_MAY_DIFFER)]


def _sentences(whose: str, missing: list[str], unexpected: list[str]) -> list[str]:
    said = []
    if missing:
        said.append(f"{whose} lacks {_listed(missing)}")
    if unexpected:
        said.append(f"{whose} has {_listed(unexpected)}, unknown here")
    return said


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _methods(state: State, manifest: Manifest) -> str:
    """The likeliest reason, where there is one: other methods."""
    saved, here = manifest.config.get("algorithms"), set(state.algorithms)
    there = set(saved) if isinstance(saved, dict) else here
    if here == there:
        return ""
    saved_with, now = (_listed(sorted(labels)) or "none" for labels in (there, here))
    return f"; it was saved with the methods {saved_with}, here are {now}"


def _says(part: Any) -> bool:
    return bool(part.state_dict())


@contextlib.contextmanager
def _naming(what: str) -> Iterator[None]:
    """Whatever a part says to a state that it cannot take becomes one sentence."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as e:
        said = (str(e).splitlines() or [""])[0]
        raise CheckpointError(f"{what}: {said if type(e) is ValueError else f'{type(e).__name__} {said}'}") from e
