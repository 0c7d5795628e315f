"""Dist: which rank this process is, and what ranks say to each other. Everything answers without a process group.

Ranks are told by the usual variables: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR and
MASTER_PORT. One rank alone needs none of them, and every collective gives back what it was given. Control data travels
as JSON over a CPU group of its own, beside the group of the gradients; nothing is pickled.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as torch_dist
from torch import Tensor

from expkit.errors import EnvironmentFault, TrialFailure, UsageError

TIMEOUT_S = 300.0
Operation = Literal["sum", "min", "max"]
_OPERATIONS = {"sum": torch_dist.ReduceOp.SUM, "min": torch_dist.ReduceOp.MIN, "max": torch_dist.ReduceOp.MAX}
_control: Any = None  # the CPU group for control data; made by initialize


def world_size() -> int:
    """Ranks in all, 1 where nothing says otherwise."""
    return torch_dist.get_world_size() if initialized() else _variable("WORLD_SIZE", 1, least=1)


def rank() -> int:
    """This process among all, from 0."""
    return torch_dist.get_rank() if initialized() else _below("RANK", world_size())


def local_world_size() -> int:
    """Ranks on this machine."""
    return _variable("LOCAL_WORLD_SIZE", world_size(), least=1)


def local_rank() -> int:
    """This process among those of its machine, from 0."""
    return _below("LOCAL_RANK", local_world_size(), rank() % local_world_size())


def node_rank() -> int:
    """This machine among all, from 0."""
    return _variable("NODE_RANK", _variable("GROUP_RANK", rank() // local_world_size()))


def initialized() -> bool:
    """Whether the ranks are connected."""
    return torch_dist.is_available() and torch_dist.is_initialized()


def initialize(device: str = "cpu", *, timeout_s: float = TIMEOUT_S, store: str = "env://") -> None:
    """Connect the ranks: gloo on CPUs, nccl on CUDA, and a gloo group for control data; one rank alone needs nothing.

    `store` is where they meet: `env://` (MASTER_ADDR and MASTER_PORT), `file:///path` of a file that is not there yet,
    or `tcp://host:port`. No rank waits longer than `timeout_s` for another, neither here nor later.
    """
    global _control
    if world_size() == 1:
        return
    timeout = timedelta(seconds=timeout_s)
    if not initialized():
        backend = "nccl" if device == "cuda" else "gloo"
        own, others = rank(), world_size()
        with _meeting(f"{others} ranks at {store}"):
            torch_dist.init_process_group(backend, init_method=store, timeout=timeout, rank=own, world_size=others)
    if _control is None:
        with _meeting("the control group"):
            _control = torch_dist.new_group(backend="gloo", timeout=timeout)


def shutdown() -> None:
    """Leave; ranks that still wait for this one get an error at once. Does nothing where there is no group."""
    global _control
    _control = None
    if initialized():
        torch_dist.destroy_process_group()


def all_reduce(tensor: Tensor, operation: Operation = "sum", *, control: bool = False) -> Tensor:
    """The sum (min, max) over ranks, in place; the same bits on every rank."""
    if world_size() > 1:
        with _meeting("all_reduce"):
            torch_dist.all_reduce(tensor, _OPERATIONS[operation], group=_group(control))
    return tensor


def all_gather(tensor: Tensor, *, control: bool = False) -> list[Tensor]:
    """The tensors of all ranks, which have one shape, by rank."""
    if world_size() == 1:
        return [tensor]
    gathered = [torch.empty_like(tensor) for _ in range(world_size())]
    with _meeting("all_gather"):
        torch_dist.all_gather(gathered, tensor.contiguous(), group=_group(control))
    return gathered


def broadcast(tensor: Tensor, source: int = 0, *, control: bool = False) -> Tensor:
    """The tensor of rank `source`, in place."""
    if world_size() > 1:
        with _meeting("broadcast"):
            torch_dist.broadcast(tensor, source, group=_group(control))
    return tensor


def all_gather_json(value: Any) -> list[Any]:
    """What every rank says, by rank; JSON values only."""
    if world_size() == 1:
        return [json.loads(json.dumps(value))]
    said = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
    lengths = [int(length) for length in all_gather(torch.tensor([len(said)]), control=True)]
    padded = torch.nn.functional.pad(said, (0, max(lengths) - len(said)))
    parts = zip(all_gather(padded, control=True), lengths, strict=True)
    return [json.loads(bytes(part[:length].tolist())) for part, length in parts]


def broadcast_json(value: Any, source: int = 0) -> Any:
    """What rank `source` says; JSON values only."""
    return all_gather_json(value if rank() == source else None)[source]


def barrier() -> None:
    """Wait until every rank is here."""
    all_reduce(torch.zeros(1), control=True)


@contextlib.contextmanager
def local_rank_zero_first() -> Iterator[None]:
    """One rank of each machine does what is inside, a download say; the others follow, also where it failed."""
    first = local_rank() == 0
    if not first:
        barrier()
    try:
        yield
    finally:
        if first:
            barrier()


def share(num_samples: int, rank: int, world_size: int) -> range:
    """Which places of an order are this rank's: every `world_size`-th, so each sample is seen once, none twice.

    With `batch_size / world_size` samples a batch on each rank, all together see in step k what one rank would see.
    """
    return range(rank, num_samples, world_size)


class Sampler(torch.utils.data.Sampler[int]):
    """For a torch DataLoader: this rank's samples, no duplicates to even ranks out, a new order each epoch."""

    def __init__(self, num_samples: int, *, shuffle: bool, seed: int, rank: int, world_size: int) -> None:
        self._place = (rank, world_size)
        self._num_samples, self._shuffle, self._seed = num_samples, shuffle, seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """The next pass is that of this epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(share(self._num_samples, *self._place))

    def __iter__(self) -> Iterator[int]:
        own = share(self._num_samples, *self._place)
        if not self._shuffle:
            return iter(own)
        draw = torch.Generator().manual_seed((self._seed * 0x9E3779B1 + self._epoch) % 2**63)
        order = torch.randperm(self._num_samples, generator=draw).tolist()
        return iter([order[place] for place in own])


def get_sampler(dataset: Any, *, shuffle: bool = False, seed: int = 0) -> Sampler:
    """The sampler of this rank over a data set with a length; `seed` is that of the run, the same on all ranks."""
    return Sampler(len(dataset), shuffle=shuffle, seed=seed, rank=rank(), world_size=world_size())


class RankLost(TrialFailure):
    """Another rank went away or did not come; the one that failed first says why."""


def _group(control: bool) -> Any:
    if not initialized():
        raise UsageError(f"WORLD_SIZE is {world_size()}, but the ranks are not connected; call dist.initialize() first")
    return _control if control else None


@contextlib.contextmanager
def _meeting(what: str) -> Iterator[None]:
    """RankLost instead of what gloo and the store say when somebody is missing."""
    try:
        yield
    except (RuntimeError, TimeoutError) as e:  # DistStoreError and DistBackendError are RuntimeErrors
        late = any(text in str(e) for text in ("imed out", "timeout"))
        how = "waited in vain for the other ranks" if late else "lost another rank"
        raise RankLost(f"rank {_variable('RANK', 0)} {how} ({what}); the rank that failed first says why",
                       "timeout" if late else "exception") from e  # fmt: skip


def _below(name: str, limit: int, default: int = 0) -> int:
    value = _variable(name, default)
    if value >= limit:
        raise EnvironmentFault(f"{name} must be below the number of ranks, {limit}, but is {value}")
    return value


def _variable(name: str, default: int, least: int = 0) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise EnvironmentFault(f"{name} must be a whole number, at least {least}, but is {text!r}")
    return int(text)
