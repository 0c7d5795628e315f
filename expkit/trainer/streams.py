"""Streams: every draw has a purpose of its own, so that switching one method on changes no other's numbers.

Seeds are sha256 over (seed, purpose, key). Purposes in use: init, data (key: epoch), augmentation (batch), dropout
(rank, batch, microbatch), and the name of each algorithm that draws.
"""

from __future__ import annotations

import hashlib
import random

import torch


def seed_of(seed: int, purpose: str, *key: int) -> int:
    """The seed of one stream, 0 to 2**63 - 1; costs about a microsecond."""
    digest = hashlib.sha256(f"{seed}\0{purpose}\0{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(seed: int, purpose: str, *key: int) -> torch.Generator:
    """A fresh CPU generator for one stream; the same arguments give the same draws, on any rank."""
    return torch.Generator().manual_seed(seed_of(seed, purpose, *key))


def seed_default(device: torch.device, seed: int, purpose: str, *key: int) -> None:
    """Put torch's default generators, which layers draw from, at the start of a stream; about 3 microseconds."""
    value = seed_of(seed, purpose, *key)
    torch.default_generator.manual_seed(value)  # torch.manual_seed looks at every backend: 170 microseconds
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(value)


def seed_python(seed: int, purpose: str, *key: int) -> None:
    """Put the generators of `random` and, where it is loaded, numpy at the start of a stream."""
    import numpy as np

    value = seed_of(seed, purpose, *key)
    random.seed(value)
    np.random.seed(value % 2**32)
