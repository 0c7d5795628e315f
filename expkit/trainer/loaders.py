"""Loaders: how many batches and samples an epoch has, for our own and for any sized iterable of batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expkit.errors import UsageError
from expkit.trainer.data_spec import DataSpec


@dataclass(frozen=True)
class Sizes:
    """What an epoch consists of; 0 where the loader does not say."""

    batches: int
    batch_size: int
    samples: int
    tokens: int


def sizes_of(data: DataSpec) -> Sizes:
    """Counts of one epoch; UsageError for a loader without a length or without a batch."""
    loader = data.dataloader
    try:
        batches = len(loader)
    except TypeError:
        raise UsageError(f"a loader needs a length, but {type(loader).__name__} has none") from None
    if batches == 0:
        raise UsageError(f"a loader needs at least one batch, but this {type(loader).__name__} is empty")
    if isinstance(loader, (list, tuple)):
        counts = [data.num_samples(data.transformed(batch)) for batch in loader]
        return Sizes(batches, counts[0], sum(counts), 0)
    batch_size = getattr(loader, "batch_size", None) or 0
    return Sizes(batches, batch_size, _samples(loader, batches, batch_size), getattr(loader, "num_tokens", 0))


def _samples(loader: Any, batches: int, batch_size: int) -> int:
    if hasattr(loader, "num_samples"):
        return int(loader.num_samples)
    if getattr(loader, "drop_last", False) or not hasattr(getattr(loader, "dataset", None), "__len__"):
        return batches * batch_size
    return len(loader.dataset)
