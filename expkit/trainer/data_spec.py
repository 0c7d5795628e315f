"""DataSpec: a loader and what the trainer cannot guess about its batches."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from expkit.errors import UsageError
from expkit.trainer import batch as trees
from expkit.trainer.arguments import refuse
from expkit.trainer.layout import Key, Layout

Transform = Callable[[Any], Any]


@dataclass(frozen=True)
class DataSpec:
    """Give it in place of a loader; all but the loader may be left out. See trainer/batch.py for what is understood."""

    dataloader: Any
    """A Dataset plug-in, a torch DataLoader, or any sized iterable of batches."""
    inputs: Key | None = None
    """Where in a batch the inputs are: a key, a place, or a tuple of them; else see `trainer/layout.py`."""
    targets: Key | None = None
    """Where in a batch the targets are, likewise."""
    batch_transforms: Transform | Sequence[Transform] = ()
    """Applied in order to each batch as the loader gave it, before AFTER_DATALOADER; each gives a new batch."""
    microbatch_transforms: Transform | Sequence[Transform] = ()
    """Applied in order to each microbatch on the device, before BEFORE_FORWARD; each gives a new one."""
    split_batch: Callable[[Any, int], Sequence[Any]] | None = None
    """(batch, samples of a microbatch) -> microbatches, for batches that are no trees of samples."""
    num_samples_in_batch: Callable[[Any], int] | None = None
    """Samples of a batch or microbatch; else the first axis of its tensors, which must agree."""
    num_tokens_in_batch: Callable[[Any], int] | None = None
    """Tokens of a batch or microbatch; else the elements of integer inputs (B, L), padding counted."""

    weight_in_batch: Callable[[Any], Any] | None = None
    """What the loss of a batch is a mean over where that is not its samples, say `(batch["labels"] != -100).sum()`: so
    parts of a batch, and of ranks, add up to the mean of the whole. A part in which nothing counts is left out."""

    def __post_init__(self) -> None:
        for name in ("split_batch", "num_samples_in_batch", "num_tokens_in_batch", "weight_in_batch"):
            if (given := getattr(self, name)) is not None and not callable(given):
                refuse(f"{name} of a DataSpec", "a function of a batch, or None", given)
        for name in ("batch_transforms", "microbatch_transforms"):
            if not callable(given := getattr(self, name)) and not _are_functions(given):
                refuse(f"{name} of a DataSpec", "a function of a batch, or a list of them", given)
        for name in ("inputs", "targets"):
            if not _is_key(given := getattr(self, name)):
                refuse(f"{name} of a DataSpec", "a key, a place, or a tuple of them", given)

    @cached_property
    def layout(self) -> Layout:
        """Where inputs and targets are."""
        return Layout(self.inputs, self.targets)

    @cached_property
    def num_samples(self) -> Callable[[Any], int]:
        """Batch -> samples."""
        own = self.num_samples_in_batch
        return trees.num_samples if own is None else functools.partial(_counted, "num_samples_in_batch", own)

    @cached_property
    def num_tokens(self) -> Callable[[Any], int]:
        """Batch -> tokens."""
        own = self.num_tokens_in_batch
        return self._num_tokens if own is None else functools.partial(_counted, "num_tokens_in_batch", own)

    @cached_property
    def split(self) -> Callable[[Any, int], list[Any]]:
        """(batch, size) -> microbatches; UsageError where a split of the user's own lost samples or gained some."""
        return trees.split if self.split_batch is None else self._checked_split

    def weights(self, parts: Sequence[Any]) -> list[float]:
        """What each part of a batch weighs: its samples, or what `weight_in_batch` says; waits for the accelerator."""
        weigh = self.weight_in_batch or self.num_samples
        weights: list[float] = torch.stack([torch.as_tensor(weigh(part)) for part in parts]).double().tolist()
        if not all(0 <= weight < math.inf for weight in weights):
            raise UsageError(f"weight_in_batch must give what counts in a batch, finite and not negative, but gave "
                             f"{', '.join(map(str, weights))}")  # fmt: skip
        return weights

    def received(self, batch: Any, device: torch.device) -> tuple[Any, int, int]:
        """A batch of the loader, transformed and on the device, with its samples and tokens."""
        if self.batch_transforms:
            batch = self.transformed(batch)
        sizes = trees.sizes_of_pair(batch) if self._counts_pairs else None
        if not sizes or not (batch[0].device == device == batch[1].device):
            batch = trees.to_device(batch, device)
        return (batch, *(sizes or (self.num_samples(batch), self.num_tokens(batch))))

    def transformed(self, batch: Any) -> Any:
        """A batch of the loader after `batch_transforms`."""
        return _applied(self.batch_transforms, batch)

    def transformed_microbatch(self, microbatch: Any) -> Any:
        """A microbatch after `microbatch_transforms`."""
        return _applied(self.microbatch_transforms, microbatch)

    @cached_property
    def _counts_pairs(self) -> bool:
        """Whether samples and tokens of a pair are what they usually are."""
        return self.num_samples_in_batch is None and self.num_tokens_in_batch is None and self.inputs is None

    def _num_tokens(self, batch: Any) -> int:
        inputs = self.layout.inputs_if_any(batch)
        return inputs.numel() if trees.are_tokens(inputs) else 0

    def _checked_split(self, batch: Any, size: int) -> list[Any]:
        assert self.split_batch is not None
        parts = list(self.split_batch(batch, size))
        whole, counts = self.num_samples(batch), [self.num_samples(part) for part in parts]
        if sum(counts) != whole:
            raise UsageError(f"split_batch made microbatches of {counts} samples out of a batch of {whole}")
        return parts


def _counted(what: str, own: Callable[[Any], Any], batch: Any) -> int:
    """What a function of the user's own counts; a tensor may say it, and waits for the accelerator then."""
    given = own(batch)
    try:
        count = int(given)
        if count == given and count >= 0:
            return count
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    return refuse(f"{what} of a DataSpec", "a function that gives a whole number, not negative", given)


def _are_functions(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and all(map(callable, given))


def _is_key(given: Any) -> bool:
    keys = given if isinstance(given, tuple) else (given,)
    return given is None or all(isinstance(key, (str, int)) and not isinstance(key, bool) for key in keys)


def _applied(transforms: Transform | Sequence[Transform], batch: Any) -> Any:
    for transform in (transforms,) if callable(transforms) else transforms:
        batch = transform(batch)
    return batch
