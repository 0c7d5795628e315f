"""All pairs of methods: switching one on changes no draw of the other, no dropout mask and not the order of the data.

That is what makes arms of one seed pairs. Every method of ours is here; those that draw are seen to draw.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from expkit import plugins
from expkit.testing.training import IMAGES, TOKENS, Bench, Training, bench_for, train
from expkit.trainer import state as state_of_training
from expkit.trainer.algorithm import Algorithm

pytestmark = pytest.mark.filterwarnings("ignore:seq_length_warmup found no sequences")  # it meets images here

FROM_THE_START: dict[str, dict[str, Any]] = {
    "ema": {"half_life": "2ba"},
    "mixup": {"alpha": 1.0},
    "progressive_resizing": {"mode": "crop"},
    "selective_backprop": {"start": 0.0, "end": 1.0, "interrupt": 0},
}
DRAWS = {"colout", "cutmix", "mixup", "progressive_resizing", "selective_backprop"}
NAMES = plugins.names("algorithms")


@dataclass(frozen=True)
class Stream:
    """One generator that a method asked for."""

    key: tuple[int, ...]
    seed: int
    end: bytes
    """Its state when training was over: tells how much was drawn."""


@dataclass
class Seen:
    """What a training drew."""

    done: Training
    streams: dict[str, list[Stream]]
    dropout: list[bytes] = field(default_factory=list)
    """State of torch's default generator at every training pass of the model."""


def make(name: str) -> Algorithm:
    method = plugins.build("algorithms", name, FROM_THE_START.get(name, {}))
    assert isinstance(method, Algorithm)
    return method


@functools.cache
def drawn(names: tuple[str, ...], bench: Bench) -> Seen:
    """A training of three batches with these methods, all its generators written down."""
    asked: list[tuple[str, tuple[int, ...], torch.Generator]] = []
    dropout: list[bytes] = []
    generator = state_of_training.generator

    def recording(seed: int, purpose: str, *key: int) -> torch.Generator:
        asked.append((purpose, key, generator(seed, purpose, *key)))
        return asked[-1][2]

    def at_forward(module: torch.nn.Module, given: tuple[Tensor, ...]) -> None:
        if module.training and torch.is_grad_enabled():
            dropout.append(_bytes(torch.get_rng_state()))

    network = bench.network()
    network.register_forward_pre_hook(at_forward)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "seq_length_warmup found no sequences")
        patch.setattr(state_of_training, "generator", recording)
        done = train([make(name) for name in names], bench=bench, model=network)
    streams: dict[str, list[Stream]] = {}
    for purpose, key, used in asked:
        streams.setdefault(purpose, []).append(Stream(key, used.initial_seed(), _bytes(used.get_state())))
    return Seen(done, streams, dropout)


def _bytes(state: Tensor) -> bytes:
    return bytes(state.tolist())


def test_every_method_that_can_draw_does() -> None:
    assert {name for name in NAMES if name in drawn((name,), bench_for(make(name))).streams} == DRAWS


def compatible(one: str, other: str) -> bool:
    return other not in make(one).conflicts and one not in make(other).conflicts


PAIRS = [pair for pair in itertools.permutations(NAMES, 2) if compatible(*pair)]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_switching_the_other_on_changes_no_draw_of_the_one_nor_the_data(one: str, other: str) -> None:
    bench = bench_for(make(one))
    alone, together = drawn((one,), bench), drawn(tuple(sorted((one, other))), bench)
    for (a, b), (c, d) in zip(alone.done.given, together.done.given, strict=True):
        assert torch.equal(a, c), "the order of the data moved"
        assert torch.equal(b, d)
    assert alone.done.draws == together.done.draws, "somebody else's stream moved"
    assert alone.dropout == together.dropout, "dropout would draw other masks"
    mine, beside = alone.streams.get(one, []), together.streams.get(one, [])
    assert [(s.key, s.seed) for s in mine] == [(s.key, s.seed) for s in beside]
    if not make(other).changes_batch:  # of fewer or smaller samples it draws less, from the same streams
        assert mine == beside


@pytest.mark.parametrize("bench", [IMAGES, TOKENS], ids=["images", "tokens"])
def test_all_that_go_together_at_once_still_see_the_same_data_and_masks(bench: Bench) -> None:
    names = tuple(name for name in NAMES if name != "cutmix")
    alone, together = drawn((), bench), drawn(names, bench)
    for (a, b), (c, d) in zip(alone.done.given, together.done.given, strict=True):
        assert torch.equal(a, c)
        assert torch.equal(b, d)
    assert alone.dropout == together.dropout
    assert alone.done.draws == together.done.draws


def test_mixup_and_cutmix_exclude_each_other() -> None:
    assert {frozenset(pair) for pair in itertools.permutations(NAMES, 2)} - {frozenset(p) for p in PAIRS} == {
        frozenset({"mixup", "cutmix"})
    }
