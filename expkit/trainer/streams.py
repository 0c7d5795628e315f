"""Streams: every draw has a purpose of its own, so that switching one method on changes no other's numbers.

A stream starts at sha256 of (seed, purpose, key but for its last number), plus that number times an odd constant.
Purposes in use: init, data (key: epoch), augmentation (batch), dropout (rank; then batch and microbatch), and the name
of each algorithm that draws.
"""

from __future__ import annotations

import functools
import hashlib
import random

import torch

_63_BITS = 2**63 - 1
_WEYL = (
    0x9E3779B97F4A7C15  # odd: no two of 2**32 batches share the low 32 bits, which is all that a CPU generator takes
)


def seed_of(seed: int, purpose: str, *key: int) -> int:
    """The seed of one stream, 0 to 2**63 - 1; the last number of the key may change often, that costs 1 us."""
    start = _start(seed, purpose, key[:-1])
    return (start + (key[-1] + 1) * _WEYL) & _63_BITS if key else start  # a hash of every batch: 18 us of cold caches


def generator(seed: int, purpose: str, *key: int) -> torch.Generator:
    """A fresh CPU generator for one stream; the same arguments give the same draws, on any rank."""
    return torch.Generator().manual_seed(seed_of(seed, purpose, *key))


def seed_default(device: torch.device, seed: int, purpose: str, *key: int) -> None:
    """Put torch's default generators, which layers draw from, at the start of a stream."""
    DefaultStream(device, seed, purpose, *key[:-1]).at(*key[-1:])


class DefaultStream:
    """Puts torch's default generators at the start of a stream, again and again; 3 microseconds each time."""

    def __init__(self, device: torch.device, seed: int, purpose: str, *key: int) -> None:
        """All of the key but its last number, which `at` is given."""
        self._start = _start(seed, purpose, key)
        self._generators = [torch.default_generator]  # torch.manual_seed looks at every backend: 170 microseconds
        if device.type == "cuda":
            self._generators.append(torch.cuda.default_generators[device.index or 0])

    def at(self, number: int = -1) -> None:
        """To the stream whose key ends with `number`, which is none by default."""
        value = (self._start + (number + 1) * _WEYL) & _63_BITS
        for default in self._generators:
            default.manual_seed(value)


def seed_python(seed: int, purpose: str, *key: int) -> None:
    """Put the generators of `random` and, where it is loaded, numpy at the start of a stream."""
    import numpy as np

    value = seed_of(seed, purpose, *key)
    random.seed(value)
    np.random.seed(value % 2**32)


@functools.lru_cache(maxsize=256)
def _start(seed: int, purpose: str, key: tuple[int, ...]) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\0{purpose}\0{key}".encode()).digest()[:8], "big") & _63_BITS
