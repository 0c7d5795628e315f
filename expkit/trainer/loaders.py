"""Loaders: how many batches and samples an epoch has, for our own and for any sized iterable of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expkit.errors import UsageError
from expkit.trainer.batch import num_samples
from expkit.trainer.contracts import Dataset


@dataclass(frozen=True)
class Sizes:
    """What an epoch consists of; 0 where the loader does not say."""

    batches: int
    batch_size: int
    samples: int
    tokens: int


def build_loader(given: Any, *, seed: int, rank: int, world_size: int) -> Any:
    """A loader from a Dataset plug-in; anything else is taken for a loader already."""
    return given.build(seed=seed, rank=rank, world_size=world_size) if isinstance(given, Dataset) else given


def sizes_of(loader: Any) -> Sizes:
    """Counts of one epoch; UsageError for a loader without a length or without a batch."""
    try:
        batches = len(loader)
    except TypeError:
        raise UsageError(f"a loader needs a length, but {type(loader).__name__} has none") from None
    if batches == 0:
        raise UsageError(f"a loader needs at least one batch, but this {type(loader).__name__} is empty")
    if isinstance(loader, (list, tuple)):
        return Sizes(batches, num_samples(loader[0]), sum(map(num_samples, loader)), 0)
    batch_size = getattr(loader, "batch_size", None) or 0
    return Sizes(batches, batch_size, _samples(loader, batches, batch_size), getattr(loader, "num_tokens", 0))


def _samples(loader: Any, batches: int, batch_size: int) -> int:
    if hasattr(loader, "num_samples"):
        return int(loader.num_samples)
    if getattr(loader, "drop_last", False) or not hasattr(getattr(loader, "dataset", None), "__len__"):
        return batches * batch_size
    return len(loader.dataset)
