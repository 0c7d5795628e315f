"""Layout: where inputs and targets stand in a batch, so that methods read and write them whatever its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from expkit.errors import ExpkitError
from expkit.trainer.batch import is_leaf, rebuilt

INPUTS = ("input_ids", "pixel_values", "inputs", "input", "image", "images", "x")
TARGETS = ("labels", "label", "targets", "target", "y")
Key = str | int | tuple[str | int, ...]
"""A key of a mapping, a place in a tuple, a name in a namedtuple, or several of them that lead inwards."""


@dataclass(frozen=True)
class Layout:
    """Which part of a batch is what.

    Where nothing is named: of a mapping or a namedtuple the first of the usual names that is there, of another tuple
    the first and the second part; a tensor is all inputs and has no targets.
    """

    inputs_at: Key | None = None
    targets_at: Key | None = None

    def inputs(self, batch: Any) -> Any:
        """What goes into the model; ExpkitError where it cannot be told."""
        if type(batch) is tuple and self.inputs_at is None:
            return batch[0]
        return _get(batch, self._inputs_path(batch), "inputs")

    def targets(self, batch: Any) -> Any:
        """What the outputs are compared with, None where a batch has none."""
        if type(batch) is tuple and self.targets_at is None:
            return batch[1] if len(batch) > 1 else None
        path = _path(batch, self.targets_at, TARGETS, 1)
        return None if path is None else _get(batch, path, "targets")

    def with_inputs(self, batch: Any, inputs: Any) -> Any:
        """A batch with other inputs; the one given stays as it is."""
        return _put(batch, self._inputs_path(batch), inputs, "inputs")

    def with_targets(self, batch: Any, targets: Any) -> Any:
        """A batch with other targets; the one given stays as it is. ExpkitError where it has none."""
        path = _path(batch, self.targets_at, TARGETS, 1)
        if path is None:
            raise ExpkitError(f"the batch has no targets to replace; {_hint(batch, 'targets')}")
        return _put(batch, path, targets, "targets")

    def inputs_if_any(self, batch: Any) -> Any:
        """What goes into the model, None where it cannot be told."""
        if type(batch) is tuple and self.inputs_at is None:
            return batch[0]
        path = _path(batch, self.inputs_at, INPUTS, 0)
        return None if path is None else _get(batch, path, "inputs")

    def _inputs_path(self, batch: Any) -> tuple[str | int, ...]:
        path = _path(batch, self.inputs_at, INPUTS, 0)
        if path is None:
            raise ExpkitError(f"the batch has nothing that is called like inputs; {_hint(batch, 'inputs')}")
        return path


def _path(batch: Any, key: Key | None, usual: tuple[str, ...], place: int) -> tuple[str | int, ...] | None:
    if key is not None:
        return key if isinstance(key, tuple) else (key,)
    if is_leaf(batch):
        return () if place == 0 else None
    names = batch if isinstance(batch, Mapping) else getattr(batch, "_fields", ())
    named = next(((name,) for name in usual if name in names), None)
    if named or isinstance(batch, Mapping):
        return named
    return (place,) if len(batch) > place else None


def _get(batch: Any, path: tuple[str | int, ...], what: str) -> Any:
    part = batch
    for key in path:
        try:
            part = getattr(part, key) if isinstance(key, str) and isinstance(part, tuple) else part[key]
        except (KeyError, IndexError, AttributeError, TypeError):
            raise ExpkitError(
                f"the batch has no {key!r}, where its {what} are said to be; {_hint(part, what)}"
            ) from None
    return part


def _put(batch: Any, path: tuple[str | int, ...], value: Any, what: str) -> Any:
    if not path:
        return value
    key, *rest = path
    new = _put(_get(batch, (key,), what), tuple(rest), value, what)
    if isinstance(batch, Mapping):
        return rebuilt(batch, {**batch, key: new})
    place = batch._fields.index(key) if isinstance(key, str) else key
    content = list(batch)
    content[place] = new
    return rebuilt(batch, content)


def _hint(batch: Any, what: str) -> str:
    has = ", ".join(map(str, batch)) if isinstance(batch, Mapping) else f"the type {type(batch).__name__}"
    return f"it has {has}, and DataSpec(dataloader, {what}=...) says where they are"
