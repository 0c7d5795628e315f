"""Separate streams: the same key gives the same draws, and no method's draws move anybody else's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.streams import generator, seed_of
from tests.trainer.doubles import batches, net, trainer, weights


def test_a_stream_is_its_seed_purpose_and_key() -> None:
    assert torch.equal(
        torch.rand(4, generator=generator(1, "mixup", 7)), torch.rand(4, generator=generator(1, "mixup", 7))
    )
    others = [
        (1, "mixup"),
        (1, "mixup", 8),
        (2, "mixup", 7),
        (1, "cutmix", 7),
        (1, "mixup", 7, 0),
        (1, "mixup", 0, 7),
        (1, "mixup", 0),
    ]
    assert len({seed_of(*other) for other in others} | {seed_of(1, "mixup", 7)}) == len(others) + 1


def test_no_two_of_many_batches_share_a_seed_even_in_its_low_32_bits() -> None:
    seeds = {seed_of(17, "dropout", 0, 0, batch) & 0xFFFFFFFF for batch in range(100_000)}
    assert len(seeds) == 100_000
    assert all(0 <= seed_of(s, "x", 3) < 2**63 for s in range(100))


def test_streams_of_neighbouring_batches_are_not_correlated() -> None:
    draws = torch.stack([torch.rand(500, generator=generator(0, "x", batch)) for batch in range(50)])
    correlation = torch.corrcoef(draws) - torch.eye(50)
    assert correlation.abs().max() < 0.25  # 1,225 pairs of 500: five standard deviations are 0.22


@dataclass
class Greedy(Algorithm):
    """Draws from torch's default generator and from its own stream, wherever it can."""

    own: Any = field(default_factory=list, init=False)

    def _draw(self, state: Any) -> None:
        torch.rand(17)
        self.own.append(float(torch.rand(1, generator=state.rng("greedy", state.timestamp.batch))))

    def after_dataloader(self, state: Any, logger: Any) -> None:
        self._draw(state)

    def before_forward(self, state: Any, logger: Any) -> None:
        self._draw(state)

    def batch_end(self, state: Any, logger: Any) -> None:
        self._draw(state)

    def eval_start(self, state: Any, logger: Any) -> None:
        self._draw(state)


@dataclass
class Inputs(Callback):
    seen: Any = field(default_factory=list, init=False)

    def batch_start(self, state: Any, logger: Any) -> None:
        self.seen.append(state.batch[0].clone())


class Augmented(torch.utils.data.Dataset[Any]):
    """Adds noise from torch's default generator, as transforms do."""

    def __init__(self) -> None:
        self.inputs, self.targets = batches(1, size=24)[0]

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        return self.inputs[index] + 0.1 * torch.randn(8), self.targets[index]


@pytest.mark.parametrize("loader", ["list", "shuffled, augmented"])
def test_switching_on_a_method_that_draws_moves_neither_data_nor_dropout(loader: str) -> None:
    def run(algorithms: list[Algorithm]) -> tuple[torch.Tensor, torch.Tensor]:
        data = batches() if loader == "list" else torch.utils.data.DataLoader(Augmented(), 6, shuffle=True)
        inputs = Inputs()
        torch.rand(len(algorithms) * 3)
        t = trainer(net(dropout=0.5), train_dataloader=data, eval_dataloader=batches(1), eval_interval="1ba",
                    algorithms=algorithms, callbacks=[inputs], seed=3)  # fmt: skip
        t.fit()
        return weights(t), torch.cat(inputs.seen)

    plain, drawn = run([]), run([Greedy()])
    assert torch.equal(plain[1], drawn[1])
    assert torch.equal(plain[0], drawn[0])


def test_dropout_differs_between_batches_and_seeds_and_really_happens() -> None:
    masks: list[torch.Tensor] = []
    model = net(dropout=0.5)
    model[2].register_forward_hook(lambda module, given, out: masks.append((out == 0).flatten()))
    for seed in (0, 1):
        trainer(model, max_duration="3ba", seed=seed).fit()
    assert len({tuple(mask.tolist()) for mask in masks}) == 6


def test_microbatches_have_masks_of_their_own() -> None:
    masks: list[torch.Tensor] = []
    model = net(dropout=0.5)
    model[2].register_forward_hook(lambda module, given, out: masks.append((out == 0).flatten()))
    trainer(model, max_duration="1ba", device_train_microbatch_size=3).fit()
    assert len(masks) == 2
    assert not torch.equal(*masks)


def test_every_epoch_of_a_torch_loader_has_an_order_of_its_own() -> None:
    inputs = Inputs()
    data = torch.utils.data.TensorDataset(*batches(1, size=24)[0])
    loader = torch.utils.data.DataLoader(data, 6, shuffle=True)
    trainer(train_dataloader=loader, callbacks=[inputs]).fit()
    first, second = torch.cat(inputs.seen[:4]), torch.cat(inputs.seen[4:])
    assert not torch.equal(first, second)
    assert torch.equal(first.sort(0).values, second.sort(0).values)
