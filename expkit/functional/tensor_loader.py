"""Batches from data that lies in memory: one index_select a batch, no Python per sample.

Gathering 128 grey images of 28x28 takes 30 microseconds; the numbers of the whole set are converted once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Order = Callable[[int], Tensor]
"""epoch -> the samples of that epoch, as indices in the order in which they come."""


class TensorLoader:
    """Inputs (N, ...) and targets (N, ...) in batches of one rank: its share of every global batch, each sample once.

    Rank r takes every `world_size`-th sample of a global batch, from the r-th on, so that all ranks together see in
    step k what one rank would see. Where the last global batch has fewer samples than ranks, some get none of it.
    """

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        batch_size: int,
        *,
        order: Order | None = None,
        num_samples: int | None = None,
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """`batch_size` is that of all ranks together, shared as evenly as it can be; no `order` means as they lie.

        `num_samples` says how many an `order` gives where it is not all that there are.
        """
        self.batch_size = len(range(rank, batch_size, world_size))
        self._inputs, self._targets = inputs, targets
        self._global_batch_size = batch_size
        self._order = order
        self._rank, self._world_size = rank, world_size
        total = len(targets) if num_samples is None else num_samples
        self._num_global = total - total % batch_size if drop_last else total
        self._epoch = 0
        self.num_samples = sum(len(range(self._num_global)[part]) for part in self._parts())
        self.num_tokens = self.num_samples * (inputs.shape[1] if _are_sequences(inputs) else 0)

    def set_epoch(self, epoch: int) -> None:
        """The next pass is that of this epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return math.ceil(self._num_global / self._global_batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.iter_from(0)

    def iter_from(self, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The epoch from this batch on; those before it are not gathered."""
        indices = self._order(self._epoch) if self._order else None
        for part in self._parts()[batch:]:
            if indices is None:
                yield self._inputs[part].clone(), self._targets[part].clone()  # whoever changes a batch has a copy
            else:
                chosen = indices[part]
                yield torch.index_select(self._inputs, 0, chosen), torch.index_select(self._targets, 0, chosen)

    def _parts(self) -> list[slice]:
        """This rank's places in the order of an epoch, batch by batch."""
        size, stop = self._global_batch_size, self._num_global
        return [slice(first + self._rank, min(first + size, stop), self._world_size) for first in range(0, stop, size)]


def _are_sequences(inputs: Tensor) -> bool:
    return inputs.dim() == 2 and not inputs.is_floating_point()
