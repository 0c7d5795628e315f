"""Streams: every draw has a purpose of its own, so that switching one method on changes no other's numbers.

A stream starts at sha256 of (seed, purpose, key but for its last number), plus that number times an odd constant.
Purposes in use: init, data (key: epoch), augmentation (epoch and sample; batch where samples have no number), dropout
(rank; then batch and microbatch), and the name of each algorithm that draws.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

_63_BITS = 2**63 - 1
_WEYL = (
    0x9E3779B97F4A7C15  # odd: no two of 2**32 batches share the low 32 bits, which is all that a CPU generator takes
)
_CPU = torch.device("cpu")
_PYTHON = SimpleNamespace(manual_seed=random.seed)
_NUMPY = SimpleNamespace(manual_seed=lambda value: np.random.seed(value >> 31))
"""Takes 32 bits; the low ones would give it the very numbers of torch, whose generator is the same."""


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

    def __init__(self, device: torch.device, seed: int, purpose: str, *key: int, all_libraries: bool = False) -> None:
        """All of the key but its last number, which `at` is given; `all_libraries`: those of python and numpy too."""
        self._start = _start(seed, purpose, key)
        self._generators: list[Any] = [torch.default_generator]  # torch.manual_seed looks at every backend: 170 us
        if device.type == "cuda":
            self._generators.append(torch.cuda.default_generators[device.index or 0])
        elif device.type == "mps":
            self._generators.append(torch.mps)
        if all_libraries:
            self._generators += [_PYTHON, _NUMPY]

    def at(self, number: int = -1) -> None:
        """To the stream whose key ends with `number`, which is none by default."""
        value = (self._start + (number + 1) * _WEYL) & _63_BITS
        for default in self._generators:
            default.manual_seed(value)


def seed_python(seed: int, purpose: str, *key: int) -> None:
    """Put the generators of `random` and numpy at the start of a stream."""
    value = seed_of(seed, purpose, *key)
    _PYTHON.manual_seed(value)
    _NUMPY.manual_seed(value)


class Kept:
    """The default generators as they are now, of torch, python and numpy; 55 microseconds, and as much to put back."""

    def __init__(self, device: torch.device = _CPU) -> None:
        self._states: list[tuple[Callable[[Any], object], Any]] = [
            (torch.set_rng_state, torch.get_rng_state()),
            (random.setstate, random.getstate()),
            (np.random.set_state, np.random.get_state()),
        ]
        if device.type == "cuda":
            restore = functools.partial(torch.cuda.set_rng_state, device=device)
            self._states.append((restore, torch.cuda.get_rng_state(device)))
        elif device.type == "mps":
            self._states.append((torch.mps.set_rng_state, torch.mps.get_rng_state()))

    def put_back(self) -> None:
        """Make them as they were; may be called again."""
        for restore, value in self._states:
            restore(value)


@contextlib.contextmanager
def seed_context(device: torch.device, seed: int, purpose: str, *key: int) -> Iterator[None]:
    """Inside, everybody's default generators start at a stream; afterwards they go on where they were."""
    kept = Kept(device)
    try:
        seed_default(device, seed, purpose, *key)
        seed_python(seed, purpose, *key)
        yield
    finally:
        kept.put_back()


@functools.lru_cache(maxsize=256)
def _start(seed: int, purpose: str, key: tuple[int, ...]) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\0{purpose}\0{key}".encode()).digest()[:8], "big") & _63_BITS
