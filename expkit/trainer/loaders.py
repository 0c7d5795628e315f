"""Loaders: what was given as data, and how many batches and samples an epoch of it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils import data

from expkit.errors import UsageError
from expkit.trainer.arguments import instead, is_whole, refuse
from expkit.trainer.contracts import Dataset
from expkit.trainer.data_spec import DataSpec

_WANTED = "a loader: a DataLoader, a list of batches, or whatever gives one batch after another"
_LOADERS = (data.DataLoader, data.Dataset, Dataset, DataSpec)


def data_of(given: Any, *, seed: int, rank: int, world_size: int, what: str = "dataloader") -> DataSpec:
    """What was given as data, with its loader built: a DataSpec, a Dataset plug-in, or a loader already.

    UsageError for what gives no batches; `what` it is called there.
    """
    spec = given if isinstance(given, DataSpec) else DataSpec(given)
    if isinstance(spec.dataloader, Dataset):
        built: Any = spec.dataloader.build(seed=seed, rank=rank, world_size=world_size)
        spec = built if isinstance(built, DataSpec) else replace(spec, dataloader=built)
    refuse_no_loader(what, spec.dataloader)
    return spec


def refuse_no_loader(what: str, given: Any) -> None:
    """UsageError for what gives no batches, or single samples."""
    if isinstance(given, (DataSpec, type, str, bytes, Mapping)) or not _is_iterable(given):
        refuse(what, _WANTED, given, instead(given))
    if isinstance(given, (torch.Tensor, np.ndarray)):
        refuse(what, _WANTED, given, "DataLoader(TensorDataset(inputs, targets), batch_size=...) makes batches of it")
    if isinstance(given, data.Dataset) and not isinstance(given, data.IterableDataset):
        hint = "its parts are single samples, and DataLoader(data, batch_size=...) makes batches of them"
        refuse(what, _WANTED, given, f"{hint}; DataLoader(data, batch_size=None) where each part is a batch")
    if isinstance(given, (list, tuple)) and isinstance(next(iter(given), None), _LOADERS):
        refuse(what, _WANTED, given, "it holds loaders; to evaluate on several, give a dict of them by label")


def _is_iterable(given: Any) -> bool:
    return hasattr(given, "__iter__") or hasattr(given, "__getitem__")


@dataclass(frozen=True)
class Sizes:
    """What an epoch consists of; 0 where the loader does not say."""

    batches: int
    batch_size: int
    samples: int
    tokens: int


def sizes_of(spec: DataSpec, subset: int | None = None) -> Sizes:
    """Counts of one epoch, of `subset` batches at most; UsageError for a loader without a length or without a batch."""
    loader = spec.dataloader
    whole = _length(loader, subset)
    if whole == 0:
        raise UsageError(f"a loader needs at least one batch, but this {type(loader).__name__} is empty")
    batches = whole if subset is None else min(subset, whole)
    if isinstance(loader, (list, tuple)):
        counts = [spec.num_samples(spec.transformed(batch)) for batch in loader[:batches]]
        return Sizes(batches, counts[0], sum(counts), 0)
    batch_size = getattr(loader, "batch_size", None) or 0
    samples = _samples(loader, batches, batch_size) if batches == whole else batches * batch_size  # all of them full
    return Sizes(batches, batch_size, samples, getattr(loader, "num_tokens", 0) * batches // whole)


def check_subset(what: str, subset: int | None) -> int | None:
    """How many batches to use, None for all; UsageError for what is neither."""
    if subset is not None and (not is_whole(subset) or subset < 1):
        refuse(what, "a number of batches, at least 1, or None for all", subset)
    return None if subset is None else int(subset)


def _length(loader: Any, unknown: int | None) -> int:
    try:
        return len(loader)
    except (TypeError, ValueError, OverflowError, NotImplementedError) as e:
        if unknown is not None:
            return unknown
        has_one = hasattr(loader, "__len__") and not isinstance(loader, data.DataLoader)
        why = f"that of {type(loader).__name__} cannot be told: {e}" if has_one else f"{type(loader).__name__} has none"
        raise UsageError(f"a loader needs a length, but {why}; train_subset_num_batches can say how many batches an "
                         f"epoch is") from None  # fmt: skip


def _samples(loader: Any, batches: int, batch_size: int) -> int:
    if hasattr(loader, "num_samples"):
        return int(loader.num_samples)
    if getattr(loader, "drop_last", False) or not hasattr(getattr(loader, "dataset", None), "__len__"):
        return batches * batch_size
    return len(loader.dataset)
