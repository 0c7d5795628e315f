"""Auto microbatching where memory really runs out: on a device of which this process may use a little only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from expkit.errors import TrialFailure
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, trainer, weights

WIDTH = 2**16
ALLOWED_BYTES = 2**30


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """A gigabyte, whatever the device has."""
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(ALLOWED_BYTES / torch.cuda.get_device_properties(0).total_memory)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


class Hungry(nn.Module):
    """Keeps two megabytes a sample for the backward pass, and draws."""

    def __init__(self, factor: int = 1) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)
        self.drop, self.factor = nn.Dropout(0.2), factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.norm(self.first(x))
        wide = hidden.repeat(1, self.factor * WIDTH // 16)
        for _ in range(8):
            wide = torch.sin(wide)  # keeps its input: a quarter of a megabyte a sample
        return self.last(self.drop(wide[:, :16]))  # type: ignore[no-any-return]


def data(size: int) -> list[Any]:
    draw = torch.Generator().manual_seed(1)
    return [(torch.randn(size, 8, generator=draw), torch.randint(0, 4, (size,), generator=draw)) for _ in range(3)]


def trained(size: Any, **settings: Any) -> tuple[Trainer, Memory]:
    torch.manual_seed(0)
    memory = Memory()
    made = trainer(Hungry(), device="cuda", train_dataloader=data(1024), device_train_microbatch_size=size,
                   loggers=[memory], max_duration="3ba", deterministic_mode=True, **settings)  # fmt: skip
    made.fit()
    return made, memory


@pytest.mark.parametrize("precision", ["fp32", "amp_fp16"])
def test_it_halves_until_it_fits_and_goes_on_as_if_it_had_started_there(precision: str) -> None:
    found, memory = trained("auto", precision=precision)
    size = found.microbatch_size_found
    assert size is not None and size < 1024
    halves = [(payload["before"], payload["after"]) for kind, _, payload in memory.events if kind == "microbatch"]
    assert halves[-1][1] == size
    assert all(before == 2 * after for before, after in halves)
    fixed, _ = trained(size, precision=precision)
    assert torch.equal(weights(found), weights(fixed))
    assert all(torch.equal(a, b) for a, b in zip(found.state.model.buffers(), fixed.state.model.buffers(), strict=True))


def test_memory_is_given_back_afterwards() -> None:
    found, _ = trained("auto")
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() < ALLOWED_BYTES / 4
    found.fit("2ba")
    assert found.state.timestamp.batch == 5


def test_one_sample_that_does_not_fit_is_a_failure_of_memory() -> None:
    made = trainer(Hungry(2**12), device="cuda", train_dataloader=data(4), device_train_microbatch_size="auto")
    with pytest.raises(TrialFailure, match="one sample does not fit") as failure:
        made.fit()
    assert failure.value.cause == "oom"


def test_without_auto_running_out_of_memory_is_an_error() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        trained(None)
