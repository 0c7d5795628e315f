"""Keyed loaders: a torch DataLoader over a map-style data set, from any batch on, each sample with draws of its own.

Before a sample is loaded, here or in a worker, the default generators of torch, python and numpy are put at the start
of the stream (seed, "augmentation", epoch, sample). So what is drawn for it depends neither on the number of workers
nor on where training was resumed; in the main process the generators are put back after each batch. That costs 11
microseconds a sample and, in the main process, 100 a batch; nothing where a data set can draw nothing (TensorDataset,
lists, parts of them). Batches that are skipped are drawn by the sampler and not loaded: 0.04 microseconds a sample.
Where a data set reads whole batches (`__getitems__`), the first sample of a batch stands for all of it. A generator
that a data set keeps for itself is its own affair.
"""

from __future__ import annotations

import collections
import copy
import functools
import hashlib
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils import data

from expkit import dist
from expkit.trainer.streams import DefaultStream, Kept

_CPU = torch.device("cpu")
_EACH_ONCE = (data.SequentialSampler, data.DistributedSampler, dist.Sampler)
"""Samplers that name no sample twice on a rank, and draw nothing after the first sample is asked for."""
_DRAW_NOTHING = (data.TensorDataset, list, tuple, range, torch.Tensor, np.ndarray)


def can_be_keyed(loader: Any) -> bool:
    """Whether this is a DataLoader that goes through the samples of a data set in the way torch does."""
    if not isinstance(loader, data.DataLoader) or isinstance(loader.dataset, (data.IterableDataset, data.MapDataPipe)):
        return False
    return all(getattr(type(loader), name) is getattr(data.DataLoader, name) for name in ("__iter__", "_get_iterator"))


class KeyedLoader:
    """The same loader with another order and, where samples may draw, another data set; the one given stays."""

    def __init__(
        self, loader: data.DataLoader[Any], *, seed: int, rank: int, seed_epoch: Callable[[int], None]
    ) -> None:
        """`seed_epoch(epoch)` puts all generators that samplers may draw from at the start of an epoch."""
        self._given = loader
        self._plain = _draws_nothing(loader.dataset) and _collates_plainly(loader)
        order = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
        self._order = _Order(order, seed_epoch, keyed=not self._plain)
        self._samples = functools.partial(_Samples, loader.dataset, seed, rank, not _draws_nothing(loader.dataset))
        self._loader: Any = None

    def iter_from(self, epoch: int, batch: int) -> Iterator[Any]:
        """The rest of an epoch."""
        if self._loader is None:
            self._loader = self._copied()
        self._order.epoch, self._order.first = epoch, batch
        batches = iter(self._loader)
        return batches if self._plain or self._loader.num_workers else _leaving_no_trace(batches)

    def first_batch(self) -> Any:
        """Some batch, loaded in this process, to see what batches look like."""
        copied = copy.copy(self._given)
        alone = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False, "timeout": 0}
        vars(copied).update(alone, generator=None, _iterator=None)
        return next(iter(copied))

    def forget(self) -> None:
        """The next epoch starts with new workers, even where they persist."""
        self._loader = None

    def _copied(self) -> Any:
        """A copy keeps all settings, of whatever version of torch; its constructor would warn a second time."""
        copied = copy.copy(self._given)
        order = {"sampler" if self._given.batch_sampler is None else "batch_sampler": self._order}
        samples = {} if self._plain else {"dataset": self._samples()}
        vars(copied).update(order, **samples, generator=None, _iterator=None)
        return copied


class _Order:
    """In place of a sampler: its indices from any batch on, each batch with what the keys of its samples need."""

    def __init__(self, inner: Any, seed_epoch: Callable[[int], None], *, keyed: bool) -> None:
        self._inner, self._seed_epoch, self._keyed = inner, seed_epoch, keyed
        self._each_once = _names_each_once(inner)
        self.epoch = self.first = 0

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[Any]:
        self._seed_epoch(self.epoch)  # here, because torch asks twice when it starts workers that persist
        order = iter(self._inner)
        if not self._each_once:
            order = _with_draws_of_its_own(order)
        if self._keyed:
            seen: collections.Counter[int] = collections.Counter()
            order = ((self.epoch, None if self._each_once else _repeats(given, seen), given) for given in order)
        collections.deque(itertools.islice(order, self.first), maxlen=0)
        return itertools.chain(list(itertools.islice(order, 1)), order)  # most samplers draw when first asked: now


class _Samples:
    """In place of a data set: seeds before each sample. Attributes are those of the data set, to be read and set."""

    def __init__(self, dataset: Any, seed: int, rank: int, each: bool) -> None:
        vars(self).update(_dataset=dataset, _seed=seed, _rank=rank, _each=each and not _reads_batches(dataset))

    def __getitems__(self, batch: Any) -> Any:
        epoch, repeats, indices = batch
        if not self._each:
            self._stream(epoch, repeats and repeats[0]).at(number_of(indices[0]))
            whole = _reads_batches(self._dataset)
            return self._dataset.__getitems__(indices) if whole else list(map(self._get, indices))
        if repeats is None:
            at = self._stream(epoch, None).at
            return [self._get(index, at) for index in indices]
        return [self._get(i, self._stream(epoch, r).at) for i, r in zip(indices, repeats, strict=True)]

    def __getitem__(self, given: Any) -> Any:
        epoch, repeats, index = given
        return self._get(index, self._stream(epoch, repeats and repeats[0]).at)

    def _get(self, index: Any, at: Any = None) -> Any:
        if at is not None:
            at(number_of(index))
        try:
            return self._dataset[index]
        except Exception as e:
            e.add_note(f"{NOTE}{index!r}")
            raise

    def _stream(self, epoch: int, repeat: int | None) -> DefaultStream:
        key = (epoch,) if repeat is None else (epoch, self._rank, repeat)
        return DefaultStream(_CPU, self._seed, "augmentation", *key, all_libraries=True)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name in ("_dataset", "__setstate__"):  # while it is made in a worker
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dataset, name, value)  # `get_worker_info().dataset.file = open(...)` in a worker_init_fn


NOTE = "while loading sample "
"""What the note at an error begins with."""


def number_of(index: Any) -> int:
    """An index as a number; names and lists of indices by their digest."""
    try:
        return operator.index(index)
    except TypeError:
        text = repr(index.tolist() if hasattr(index, "tolist") else index)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def _repeats(given: Any, seen: collections.Counter[int]) -> list[int]:
    """How often each sample of a batch came before in this epoch: another time it gets other draws."""
    repeats = []
    for index in given if isinstance(given, (list, tuple)) else [given]:
        number = number_of(index)
        repeats.append(seen[number])
        seen[number] += 1
    return repeats


def _names_each_once(order: Any) -> bool:
    if type(order) is data.BatchSampler:
        return _names_each_once(order.sampler)
    if type(order) is data.RandomSampler:
        return not order.replacement and order.num_samples <= len(order.data_source)
    if type(order) is data.SubsetRandomSampler:
        return len(set(order.indices)) == len(order.indices)
    return type(order) in _EACH_ONCE


def _with_draws_of_its_own(order: Iterator[Any]) -> Iterator[Any]:
    """What it draws from default generators goes on where it stopped, whoever draws in between."""
    own = Kept()
    while True:
        others = Kept()
        own.put_back()
        try:
            given = next(order)
        except StopIteration:
            return
        finally:
            own = Kept()
            others.put_back()
        yield given


def _leaving_no_trace(batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches; afterwards the default generators are as they were before each."""
    while True:
        kept = Kept()
        try:
            batch = next(batches)
        except StopIteration:
            return
        finally:
            kept.put_back()
        yield batch


def _draws_nothing(dataset: Any) -> bool:
    if type(dataset) is data.Subset:
        return _draws_nothing(dataset.dataset)
    if type(dataset) is data.ConcatDataset:
        return all(map(_draws_nothing, dataset.datasets))
    return type(dataset) in _DRAW_NOTHING


def _collates_plainly(loader: data.DataLoader[Any]) -> bool:
    return loader.collate_fn in (data.default_collate, data.default_convert)


def _reads_batches(dataset: Any) -> bool:
    if type(dataset) is data.Subset:  # has `__getitems__`, which asks for one sample after the other
        return _reads_batches(dataset.dataset)
    return bool(getattr(dataset, "__getitems__", None))
