"""Batches: trees of samples. A batch is what the loader gives: a tensor, a pair, a longer tuple, a mapping, nested.

A leaf holds samples along its first axis: a tensor, an array, or a list of plain values such as texts. A leaf without
that axis (a number, a text, None, a tensor of no dimensions) belongs to every sample. Containers come out of their own
kind, namedtuples too, and no function here changes what it was given. A pair of tensors takes less than a microsecond.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import torch
from torch import Tensor

from expkit.errors import ExpkitError

_PLAIN = (str, bytes, bool, int, float, complex, type(None))
_HINT = "DataSpec(num_samples_in_batch=..., split_batch=...) says how else to count and to split"


def num_samples(batch: Any) -> int:
    """Samples in a batch; ExpkitError where its leaves disagree or hold none."""
    if sizes := sizes_of_pair(batch):
        return sizes[0]
    count: int | None = None
    where = ""
    for path, leaf in leaves(batch):
        size = _size(path, leaf)
        if size is None or size == count:
            continue
        if count is not None:
            raise ExpkitError(f"all of a batch must have as many samples, but {where} has {count} and batch{path} has "
                              f"{size}; {_HINT}")  # fmt: skip
        count, where = size, f"batch{path}"
    if count is None:
        raise ExpkitError(
            f"a batch of type {type(batch).__name__} has nothing with samples along its first axis; {_HINT}"
        )
    return count


def sizes_of_pair(batch: Any) -> tuple[int, int] | None:
    """Samples, and tokens of the first, where a batch is a pair of tensors, as most are; None for all others.

    What is asked here takes a microsecond, which the questions to a tree do not: every step begins with it.
    """
    if type(batch) is not tuple or len(batch) != 2:
        return None
    inputs, targets = batch
    if not (type(inputs) is type(targets) is Tensor and inputs.ndim and targets.ndim):
        return None
    if inputs.shape[0] != targets.shape[0]:
        return None
    return inputs.shape[0], inputs.numel() if inputs.ndim == 2 and not inputs.dtype.is_floating_point else 0


def split(batch: Any, size: int) -> list[Any]:
    """Microbatches of `size` samples, the last one smaller where it does not divide."""
    count = num_samples(batch)
    return [_part(batch, slice(start, start + size)) for start in range(0, count, size)] if size < count else [batch]


def empty(batch: Any) -> Any:
    """A batch of this kind without samples."""
    num_samples(batch)
    return _part(batch, slice(0, 0))


def take(batch: Any, indices: Tensor) -> Any:
    """A batch of some of the samples, `indices` (n,), in that order."""
    num_samples(batch)

    def chosen(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf[indices.to(leaf.device)] if leaf.ndim else leaf
        if isinstance(leaf, (list, tuple)):
            return type(leaf)(leaf[i] for i in indices.tolist())
        return leaf[indices.cpu().numpy()] if getattr(leaf, "shape", ()) else leaf

    return mapped(chosen, batch)


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch on a device, in containers of its own, so that the loader keeps its batch whatever is done to this."""
    if _is_pair(batch) and batch[0].device == device == batch[1].device:
        return batch
    non_blocking = device.type != "cpu"  # copies to the host have to be waited for

    def moved(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf.to(device, non_blocking=non_blocking)
        return leaf.to(device) if hasattr(leaf, "to") else leaf

    return mapped(moved, batch)


def are_tokens(inputs: Any) -> bool:
    """Whether inputs are sequences of token ids: whole numbers (B, L)."""
    return isinstance(inputs, Tensor) and inputs.ndim == 2 and not inputs.is_floating_point()


def tensors(batch: Any) -> Iterator[Tensor]:
    """All tensors of a batch, however nested."""
    return (leaf for _, leaf in leaves(batch) if isinstance(leaf, Tensor))


def mapped(function: Callable[[Any], Any], batch: Any) -> Any:
    """A batch of the same shape with `function(leaf)` in place of each leaf."""
    if is_leaf(batch):
        return function(batch)
    if isinstance(batch, Mapping):
        return rebuilt(batch, {key: mapped(function, value) for key, value in batch.items()})
    return rebuilt(batch, [mapped(function, value) for value in batch])


def rebuilt(container: Any, content: Any) -> Any:
    """A container of the same kind with other content: a dict for a mapping, else a list."""
    if isinstance(container, Mapping):
        if type(container) is dict or not isinstance(container, MutableMapping):
            return content
        new = copy.copy(container)  # keeps what else its class knows, such as encodings of tokens
        new.update(content)
        return new
    if hasattr(container, "_make"):
        return container._make(content)
    return tuple(content) if isinstance(container, tuple) else content


def leaves(batch: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(`['image'][0]`, leaf) of each leaf, in order."""
    if is_leaf(batch):
        yield path, batch
    else:
        for key, value in batch.items() if isinstance(batch, Mapping) else enumerate(batch):
            yield from leaves(value, f"{path}[{key!r}]")


def is_leaf(batch: Any) -> bool:
    """Whether it is no container of more; a list of texts or numbers is none, it has one a sample."""
    if isinstance(batch, (list, tuple)):
        return all(isinstance(item, _PLAIN) for item in batch)
    return not isinstance(batch, Mapping)


def _is_pair(batch: Any) -> bool:
    return type(batch) is tuple and len(batch) == 2 and type(batch[0]) is type(batch[1]) is Tensor


def _size(path: str, leaf: Any) -> int | None:
    """Samples of a leaf, None where it belongs to all of them."""
    if isinstance(leaf, (str, bytes)):
        return None
    if isinstance(leaf, (list, tuple)):
        return len(leaf)
    if isinstance(leaf, _PLAIN):
        return None
    if not isinstance(shape := getattr(leaf, "shape", None), tuple):
        raise ExpkitError(f"batch{path} is of type {type(leaf).__name__}, whose samples cannot be told; {_HINT}")
    return int(shape[0]) if shape else None


def _part(batch: Any, samples: slice) -> Any:
    def part(leaf: Any) -> Any:
        return leaf if _size("", leaf) is None else leaf[samples]

    return mapped(part, batch)
