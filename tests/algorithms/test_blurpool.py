from __future__ import annotations

import pytest
import torch

from expkit.algorithms.blurpool import BlurPool
from expkit.functional.blurpool import BlurConv2d
from expkit.loggers.memory import Memory
from expkit.models.mlp import MLP
from expkit.models.resnet import ResNet
from expkit.testing.training import train
from expkit.trainer.trainer import Trainer


def trainer(model: torch.nn.Module, optimizer: torch.optim.Optimizer, method: BlurPool) -> Trainer:
    data = [(torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0)), torch.arange(4))]
    return Trainer(model=model, train_dataloader=data, optimizers=optimizer, max_duration="2ba", algorithms=[method],
                   device="cpu")  # fmt: skip


def test_strided_layers_of_a_resnet_are_replaced_and_the_optimizer_stays_in_step() -> None:
    model = ResNet(depth=8, width=16).build()
    groups = [{"params": [p], "lr": 0.1 if p.ndim > 1 else 0.01} for p in model.parameters()]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    method = BlurPool()
    with trainer(model, optimizer, method) as t:
        assert method.effective
        blurred = [name for name, m in model.named_modules() if isinstance(m, BlurConv2d)]
        assert blurred == ["stages.1.conv1", "stages.1.shortcut.0", "stages.2.conv1", "stages.2.shortcut.0"]
        assert list(before) == [name for name, _ in model.named_parameters()]
        assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())  # weights carried over
        t.fit()
    held = [group["params"][0] for group in optimizer.param_groups]
    assert all(a is b for a, b in zip(held, model.parameters(), strict=True))
    assert all(not torch.equal(p, before[name]) for name, p in model.named_parameters())


def test_a_model_without_convolutions_has_no_effect_and_says_so() -> None:
    model = MLP(num_inputs=768, hidden=(8,)).build()
    method = BlurPool()
    with trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), method) as t:
        t.fit()
    assert not method.effective


def test_a_network_narrower_than_min_channels_has_no_effect_and_says_so() -> None:
    method = BlurPool(min_channels=1000)
    assert train([method]).losses == train().losses
    assert not method.effective


def test_counts_are_recorded() -> None:
    memory = Memory()
    train([BlurPool()], loggers=[memory])
    assert memory.hyperparameters == {"blurpool/num_convs": 5, "blurpool/num_maxpools": 0}


def test_nothing_to_replace_by_the_settings_is_refused() -> None:
    with pytest.raises(ValueError, match="replace_convs or replace_maxpools must be true"):
        BlurPool(replace_convs=False, replace_maxpools=False)
