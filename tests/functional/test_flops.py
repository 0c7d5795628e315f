"""Operations of a training step, by hand."""

from __future__ import annotations

import torch

from expkit.functional.flops import training_flops
from expkit.functional.gpt import GPT
from expkit.functional.mlp import MLP
from expkit.functional.resnet import ResNet


def test_two_linear_layers_by_hand() -> None:
    model = MLP(64, (32,), 10)
    assert model.flops_per_batch((torch.zeros(5, 64), torch.zeros(5))) == 3 * 2 * 5 * (64 * 32 + 32 * 10)


def test_a_convolution_by_hand() -> None:
    convolution = torch.nn.Conv2d(3, 8, 3, padding=1)
    assert training_flops(convolution, torch.zeros(2, 3, 16, 16)) == 3 * 2 * 2 * 16 * 16 * 8 * 3 * 9


def test_twice_the_samples_are_twice_the_operations_in_every_shipped_net() -> None:
    torch.manual_seed(0)
    for model, one in (
        (ResNet(8, 8, 2, 10, 1), torch.zeros(1, 1, 28, 28)),
        (GPT(30, 16, 2, 2, 16, 0.1), torch.zeros(1, 16, dtype=torch.long)),
    ):
        flops = model.flops_per_batch((one, one))
        assert 0 < flops == model.flops_per_batch((one.repeat(2, *[1] * (one.ndim - 1)), one)) / 2


def test_counting_draws_nothing_and_changes_nothing() -> None:
    model = MLP(4, (8,), 2, dropout=0.5).train()
    before, drawn = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    training_flops(model, torch.zeros(3, 4))
    assert torch.equal(drawn, torch.get_rng_state())
    assert model.training and all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
