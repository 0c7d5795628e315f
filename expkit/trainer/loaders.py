"""Loaders: how many batches and samples an epoch has, for our own and for any sized iterable of batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expkit.errors import UsageError
from expkit.trainer.arguments import is_whole, refuse
from expkit.trainer.data_spec import DataSpec


@dataclass(frozen=True)
class Sizes:
    """What an epoch consists of; 0 where the loader does not say."""

    batches: int
    batch_size: int
    samples: int
    tokens: int


def sizes_of(data: DataSpec, subset: int | None = None) -> Sizes:
    """Counts of one epoch, of `subset` batches at most; UsageError for a loader without a length or without a batch."""
    loader = data.dataloader
    whole = _length(loader, subset)
    if whole == 0:
        raise UsageError(f"a loader needs at least one batch, but this {type(loader).__name__} is empty")
    batches = whole if subset is None else min(subset, whole)
    if isinstance(loader, (list, tuple)):
        counts = [data.num_samples(data.transformed(batch)) for batch in loader[:batches]]
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
    except TypeError:
        if unknown is not None:
            return unknown
        raise UsageError(
            f"a loader needs a length, but {type(loader).__name__} has none; train_subset_num_batches can say how "
            f"many batches an epoch is"
        ) from None


def _samples(loader: Any, batches: int, batch_size: int) -> int:
    if hasattr(loader, "num_samples"):
        return int(loader.num_samples)
    if getattr(loader, "drop_last", False) or not hasattr(getattr(loader, "dataset", None), "__len__"):
        return batches * batch_size
    return len(loader.dataset)
