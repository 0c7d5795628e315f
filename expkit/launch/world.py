"""World: how many ranks there are, which of them run here, and what each is told in its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from expkit.errors import UsageError

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What ranks read; the names are those of torch's own launcher."""


@dataclass(frozen=True)
class World:
    """The ranks of one job on this node."""

    nproc: int
    """Ranks here."""
    world_size: int
    """Ranks on all nodes."""
    base_rank: int
    """Rank of the first one here."""
    node_rank: int
    master_addr: str
    master_port: int
    """Where rank 0 listens."""

    def fields(self, local_rank: int) -> dict[str, int]:
        """Numbers of one rank, as file names may use them: {rank}, {local_rank}, ..."""
        return {
            "rank": self.base_rank + local_rank,
            "local_rank": local_rank,
            "world_size": self.world_size,
            "local_world_size": self.nproc,
            "node_rank": self.node_rank,
        }

    def env(self, local_rank: int) -> dict[str, str]:
        """The variables of one rank."""
        numbers = {name.upper(): str(value) for name, value in self.fields(local_rank).items()}
        return {**numbers, "MASTER_ADDR": self.master_addr, "MASTER_PORT": str(self.master_port)}


def without_ranks(env: Mapping[str, str]) -> dict[str, str]:
    """An environment of somebody who is alone, whatever launcher we were started by."""
    return {name: value for name, value in env.items() if name not in VARIABLES}


@dataclass(frozen=True)
class Asked:
    """What a command line says of a world; None where it says nothing."""

    nproc: int | None = None
    world_size: int | None = None
    base_rank: int | None = None
    node_rank: int | None = None
    master_addr: str | None = None
    master_port: int | None = None


def infer(asked: Asked, env: Mapping[str, str], num_gpus: int) -> World:
    """The world that is meant; port 0 where it is ours to choose. UsageError where it does not add up.

    What the command line leaves out is taken from the environment; nproc falls back on the number of GPUs, then on 1.
    """
    nproc = _first(asked.nproc, env, "LOCAL_WORLD_SIZE", num_gpus or 1)
    if nproc < 1:
        raise UsageError(f"--nproc must be 1 or more, but got {nproc}")
    local = env.get("LOCAL_WORLD_SIZE")
    inherited = {k: v for k, v in env.items() if k != "WORLD_SIZE" or v != local}  # we were started by a launcher
    world_size = _first(asked.world_size, inherited, "WORLD_SIZE", nproc)
    if world_size < nproc:
        raise UsageError(f"--world-size must be at least --nproc, but got {world_size} < {nproc}")
    return _alone(asked, nproc) if world_size == nproc else _of_several(asked, env, nproc, world_size)


def _alone(asked: Asked, nproc: int) -> World:
    for name, given in (("--base-rank", asked.base_rank), ("--node-rank", asked.node_rank)):
        if given:
            raise UsageError(f"{name} must be 0 on a single node, but got {given}; --world-size says how many ranks "
                             "there are on all nodes")  # fmt: skip
    return World(nproc, nproc, 0, 0, asked.master_addr or "127.0.0.1", asked.master_port or 0)


def _of_several(asked: Asked, env: Mapping[str, str], nproc: int, world_size: int) -> World:
    base, node = _place(asked, env, nproc)
    if base + nproc > world_size:
        raise UsageError(f"ranks {base} to {base + nproc - 1} do not fit into a world of {world_size}")
    address, port = asked.master_addr or env.get("MASTER_ADDR"), _first(asked.master_port, env, "MASTER_PORT", 0)
    if not address or not port:
        raise UsageError("a world of several nodes needs --master-addr and --master-port, the same on all of them")
    return World(nproc, world_size, base, node, address, port)


def _place(asked: Asked, env: Mapping[str, str], nproc: int) -> tuple[int, int]:
    """Base rank and node rank; each follows from the other where all nodes have as many ranks."""
    base, node = _first(asked.base_rank, env, "BASE_RANK", -1), _first(asked.node_rank, env, "NODE_RANK", -1)
    if base < 0 and node < 0:
        raise UsageError("a world of several nodes needs --node-rank or --base-rank")
    if node < 0 and base % nproc:
        raise UsageError(f"--node-rank is needed, because base rank {base} is no multiple of {nproc} ranks a node")
    return (base if base >= 0 else node * nproc), (node if node >= 0 else base // nproc)


def _first(given: int | None, env: Mapping[str, str], name: str, default: int) -> int:
    if given is not None:
        return given
    text = env.get(name, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"the environment's {name} is {text!r}, which is no number") from None


def num_gpus() -> int:
    """GPUs that processes started here would see; asks the driver's files, loads no torch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([part for part in visible.split(",") if part.strip() and part.strip() != "-1"])
    folder = Path("/proc/driver/nvidia/gpus")
    return len(list(folder.iterdir())) if folder.is_dir() else 0
