"""Methods and batches of any shape: what they do to a pair they do to a mapping, and odd inputs they leave alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from expkit import plugins
from expkit.testing.training import Bench, bench_for, fresh, train
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.trainer import Trainer

EARLY: dict[str, dict[str, Any]] = {"selective_backprop": {"start": 0.0, "end": 1.0, "interrupt": 0}}
METHODS = plugins.names("algorithms")


def method(name: str) -> Algorithm:
    made = plugins.build("algorithms", name, EARLY.get(name, {}))
    assert isinstance(made, Algorithm)
    return made


class Wrapped:
    """A bench's loader whose batches have another shape."""

    def __init__(self, loader: Any, wrap: Any) -> None:
        self._loader, self._wrap = loader, wrap
        self.batch_size, self.num_samples, self.set_epoch = loader.batch_size, loader.num_samples, loader.set_epoch

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        return (self._wrap(*batch) for batch in self._loader)


class Losses(Callback):
    def __init__(self) -> None:
        self.seen: list[float] = []

    def batch_end(self, state: Any, logger: Any) -> None:
        self.seen.append(state.train_loss)


def losses(
    bench: Bench, algorithm: Algorithm, wrap: Any, size: int | None, outer: Any = lambda net: net
) -> list[float]:
    network, watch = bench.network(), Losses()
    trainer = Trainer(
        model=outer(network), train_dataloader=Wrapped(bench.data(1), wrap), max_duration="3ba", seed=1,
        optimizers=torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), algorithms=[algorithm], device="cpu",
        callbacks=[watch], device_train_microbatch_size=size, eval_dataloader=Wrapped(bench.data(2), wrap),
        eval_interval="2ba",
    )  # fmt: skip
    with trainer:
        trainer.fit()
    return watch.seen


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("wrap", [
    lambda x, y: {"labels": y, "x": x, "name": ["n"] * len(y), "mask": torch.ones(x.shape[:2])},
    lambda x, y: [x, y, {"weight": torch.ones(len(y))}],
])  # fmt: skip
def test_a_method_does_to_any_batch_what_it_does_to_a_pair(name: str, wrap: Any) -> None:
    algorithm = method(name)
    bench = bench_for(algorithm)
    expected = train([algorithm], bench=bench, num_batches=3).losses
    again = fresh(algorithm)
    assert losses(bench, again, wrap, None) == expected
    assert again.effective == algorithm.effective


class Inner(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Any) -> Any:
        return self.network(x["image"])


@pytest.mark.parametrize("name", METHODS)
def test_inputs_that_are_no_tensor_are_left_as_they_are(name: str) -> None:
    algorithm = method(name)
    bench = bench_for(algorithm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some say that they found nothing
        found = losses(bench, algorithm, lambda x, y: ({"image": x}, y), 4, outer=Inner)
    assert len(found) == 3
