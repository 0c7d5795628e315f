"""Trees: nested plain values and tensors, as JSON beside a flat dict of tensors. Reading one executes nothing.

A tensor stands in the JSON as {"$tensor": name}; its name is the path to it, joined by slashes. Other marks are
{"$tuple": [...]}, {"$float": "nan"} and {"$items": [[key, value], ...]} for keys that JSON does not have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from expkit.errors import CheckpointError

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_WRITABLE = frozenset({
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.complex64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16,
    torch.uint8, torch.bool,
})  # fmt: skip


class Packing:
    """Takes trees apart; `tensors` collects, by name, what does not fit into JSON."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        """Contiguous, on the CPU, no two in the same memory; those of the model are the model's own."""
        self._names: dict[tuple[Any, ...], str] = {}
        self._storages: set[int] = set()

    def pack(self, tree: Any, path: tuple[str, ...]) -> Any:
        """JSON of a tree, whose tensors go to `tensors`; CheckpointError names the path to what cannot be kept."""
        if tree is None or isinstance(tree, bool | str):
            return tree if type(tree) in (type(None), bool, str) else str(tree)
        if isinstance(tree, int):
            return int(tree)
        if isinstance(tree, float):
            return float(tree) if math.isfinite(tree) else {"$float": repr(float(tree))}
        if isinstance(tree, Tensor):
            return self._pack_tensor(tree.detach(), path)
        if isinstance(tree, Mapping):
            return self._pack_mapping(tree, path)
        if isinstance(tree, list | tuple):
            packed = [self.pack(value, (*path, str(i))) for i, value in enumerate(tree)]
            return packed if isinstance(tree, list) else {"$tuple": packed}
        raise CheckpointError(
            f"{joined(path)} is of type {type(tree).__name__}, which no checkpoint can hold; a state_dict consists of "
            f"dicts, lists, numbers, texts and tensors"
        )

    def _pack_mapping(self, tree: Mapping[Any, Any], path: tuple[str, ...]) -> Any:
        packed = [(key, self.pack(value, (*path, str(key)))) for key, value in tree.items()]
        if all(type(key) is str and not key.startswith("$") for key, _ in packed):
            return dict(packed)
        return {"$items": [[self._pack_key(key, path), value] for key, value in packed]}

    def _pack_key(self, key: Any, path: tuple[str, ...]) -> Any:
        if key is None or isinstance(key, bool | int | float | str):
            return self.pack(key, path)
        raise CheckpointError(f"{joined(path)} has a key of type {type(key).__name__}; keys are texts or numbers")

    def _pack_tensor(self, tensor: Tensor, path: tuple[str, ...]) -> dict[str, Any]:
        if tensor.layout is not torch.strided or tensor.is_meta or tensor.dtype not in _WRITABLE:
            kind = "without data" if tensor.is_meta else f"{tensor.dtype}, {tensor.layout}"
            raise CheckpointError(f"{joined(path)} is a tensor ({kind}) that no checkpoint can hold")
        storage = tensor.untyped_storage().data_ptr()
        key = (storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
        if tensor.numel() == 0 or key not in self._names:
            name = self._new_name(joined(path))
            self._names[key] = name
            alone = tensor.is_contiguous() and (tensor.device.type != "cpu" or storage not in self._storages)
            self._storages.add(storage)
            self.tensors[name] = tensor.cpu() if alone else tensor.cpu().clone(memory_format=torch.contiguous_format)
        reference: dict[str, Any] = {"$tensor": self._names[key]}
        if (stride := list(tensor.stride())) != _rows(tensor.shape) and _is_dense(tensor.shape, stride):
            reference["stride"] = stride  # channels last, say: kernels choose their way, and so their bits, by it
        return reference

    def _new_name(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.tensors:
            count += 1
            name = f"{wanted}~{count}"
        return name


def unpack(packed: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The tree again; ValueError for marks that nobody wrote. A tensor that stood in two places stands in both."""
    if isinstance(packed, list):
        return [unpack(value, tensors) for value in packed]
    if not isinstance(packed, dict):
        return packed
    if not any(key.startswith("$") for key in packed):
        return {key: unpack(value, tensors) for key, value in packed.items()}
    if "$tensor" in packed:
        return _unpack_tensor(packed, tensors)
    if len(packed) == 1:
        ((mark, value),) = packed.items()
        if mark == "$tuple" and isinstance(value, list):
            return tuple(unpack(value, tensors))
        if mark == "$float" and isinstance(value, str) and value in _FLOATS:
            return _FLOATS[value]
        if mark == "$items" and isinstance(value, list):
            return dict(_item(pair, tensors) for pair in value)
    raise ValueError(f"the mark {next(key for key in packed if key.startswith('$'))[:40]!r} is none of ours")


def joined(path: tuple[str, ...]) -> str:
    """A path as one text."""
    return "/".join(path)


def _unpack_tensor(packed: dict[str, Any], tensors: Mapping[str, Tensor]) -> Tensor:
    name, stride = packed["$tensor"], packed.get("stride")
    if not isinstance(name, str) or name not in tensors or packed.keys() - {"$tensor", "stride"}:
        raise ValueError(f"it refers to a tensor {str(name)[:80]!r} that is not there")
    tensor = tensors[name]
    if stride is None:
        return tensor
    whole = isinstance(stride, list) and all(type(step) is int for step in stride)
    if not whole or not _is_dense(tensor.shape, stride):
        raise ValueError(f"tensor {name!r} of shape {list(tensor.shape)} cannot have the strides {str(stride)[:80]}")
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype).copy_(tensor)


def _item(pair: Any, tensors: Mapping[str, Tensor]) -> tuple[Any, Any]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise ValueError("an item of a map is no pair of key and value")
    key = unpack(pair[0], tensors)
    if not (key is None or isinstance(key, bool | int | float | str)):
        raise ValueError("a key of a map is neither text nor number")
    return key, unpack(pair[1], tensors)


def _rows(shape: torch.Size) -> list[int]:
    """The strides of a tensor of this shape that lies row by row."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return strides[::-1]


def _is_dense(shape: torch.Size, stride: list[int]) -> bool:
    """Whether these strides put the numbers side by side, in whatever order, none twice."""
    if len(stride) != len(shape) or any(not 0 < step <= max(1, shape.numel()) for step in stride):
        return False
    expected = 1
    for step, size in sorted((step, size) for step, size in zip(stride, shape, strict=True) if size != 1):
        if step != expected:
            return False
        expected *= size
    return True
