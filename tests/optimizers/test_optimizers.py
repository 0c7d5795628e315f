from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from expkit import plugins
from expkit.errors import PluginError
from expkit.optimizers.decoupled_sgd import DecoupledSGD
from expkit.optimizers.sgd import SGD
from expkit.schedulers.linear import Linear
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Net, batches


class Flat(Net):
    """Its loss has no slope, so that only decay moves the weights."""

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return outputs.sum() * 0.0


def test_sgd_with_nesterov_hand_computed() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = SGD(lr=0.1, momentum=0.5, nesterov=True, weight_decay=0.2).build([weight])
    weight.grad = torch.tensor([1.0])
    optimizer.step()  # gradient 1 + 0.2; momentum 1.2; step 1.2 + 0.5 * 1.2
    assert weight.item() == pytest.approx(1 - 0.1 * 1.8)


def test_adamw_decays_the_weight_itself_hand_computed() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer: Any = plugins.build("optimizers", "adamw", {"lr": 0.1, "weight_decay": 0.5})
    built = optimizer.build([weight])
    weight.grad = torch.tensor([3.0])
    built.step()  # first step of Adam has length lr
    assert weight.item() == pytest.approx(1 * (1 - 0.1 * 0.5) - 0.1)


@pytest.mark.parametrize("bad", [{"momentum": 0.0}, {"momentum": 0.9, "dampening": 0.1}])
@pytest.mark.parametrize("cls", [SGD, DecoupledSGD])
def test_nesterov_without_momentum_is_refused(cls: Any, bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="nesterov needs momentum above 0 and dampening 0"):
        cls(nesterov=True, **bad)


@pytest.mark.parametrize(("name", "settings"), [("decoupled_sgd", {"momentum": 0.9}), ("decoupled_adamw", {})])
def test_decay_of_a_recipe_follows_the_schedule_and_not_the_rate(name: str, settings: dict[str, float]) -> None:
    for lr in (0.1, 0.001):
        model = Flat()
        before = [p.detach().clone() for p in model.parameters()]
        optimizer: Any = plugins.build("optimizers", name, {**settings, "lr": lr, "weight_decay": 5e-4})
        Trainer(model=model, train_dataloader=batches(4), optimizers=optimizer, schedulers=Linear(), max_duration="4ba",
                device="cpu").fit()  # fmt: skip
        kept = math.prod(1 - 5e-4 * share for share in (1.0, 0.75, 0.5, 0.25))
        for p, start in zip(model.parameters(), before, strict=True):
            torch.testing.assert_close(p.detach(), start * kept, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("name", "bad"), [("sgd", {"lr": -1}), ("sgd", {"momentum": 1}), ("adamw", {"eps": 0}),
                                           ("adamw", {"betas": [0.9, 1.0]})])  # fmt: skip
def test_ranges(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match=next(iter(bad))):
        plugins.build("optimizers", name, bad)
