from __future__ import annotations

from typing import Any

import pytest
import torch

from expkit import plugins
from expkit.errors import PluginError
from expkit.optimizers.sgd import SGD


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
def test_nesterov_without_momentum_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="nesterov needs momentum above 0 and dampening 0"):
        SGD(nesterov=True, **bad)


@pytest.mark.parametrize(("name", "bad"), [("sgd", {"lr": -1}), ("sgd", {"momentum": 1}), ("adamw", {"eps": 0}),
                                           ("adamw", {"betas": [0.9, 1.0]})])  # fmt: skip
def test_ranges(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match=next(iter(bad))):
        plugins.build("optimizers", name, bad)
