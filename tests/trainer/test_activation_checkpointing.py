"""Activation checkpointing: the same training to the bit, in less memory; parts are found by name or said not to be."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from expkit.errors import UsageError
from expkit.functional.gpt import GPT
from expkit.trainer.activation_checkpointing import blocks_of, checkpoint_activations, matching
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import batches, trainer, weights


class Block(nn.Module):
    """Draws from everywhere, writes buffers in every way."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.norm = nn.Linear(16, 64), nn.BatchNorm1d(64, momentum=None)
        self.drop, self.narrow = nn.Dropout(0.3), nn.Linear(64, 16)
        self.rng = torch.Generator().manual_seed(3)
        self.register_buffer("passes", torch.zeros(()))
        self.register_buffer("last", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes = self.passes + 1
        self.last = x.detach().mean(0)
        noise = random.random() + np.random.rand() + torch.rand((), generator=self.rng)
        hidden = self.drop(torch.relu(self.norm(self.wide(x)))) * noise
        return x + self.narrow(hidden) * torch.sigmoid(self.passes)


class Deep(nn.Module):
    """8 -> 16 -> three blocks -> 4."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)
        self.layers = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


def deep() -> Deep:
    torch.manual_seed(0)
    return Deep()


def trained(parts: Any, **settings: Any) -> Trainer:
    random.seed(1)
    np.random.seed(1)
    done = trainer(deep(), activation_checkpointing=parts, eval_dataloader=batches(2), **settings)
    done.fit()
    return done


def everything(done: Trainer) -> list[torch.Tensor]:
    """All that training leaves, also in the generators of this process."""
    layers: Any = done.state.model.layers
    return [*done.state.model.state_dict().values(), *(p.grad for p in done.state.model.parameters()),
            torch.tensor(random.random()), torch.tensor(np.random.rand()), torch.rand(1),
            *(layer.rng.get_state() for layer in layers)]  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"device_train_microbatch_size": 2}, {"precision": "amp_bf16"}], ids=str)
@pytest.mark.parametrize("parts", [True, ["Block"], ["layers.*"], ["layers"], ["layers.1", "first"]], ids=str)
def test_it_changes_no_bit_of_gradients_buffers_and_draws(parts: Any, settings: dict[str, Any]) -> None:
    plain = trained(False, **settings)
    left = everything(plain)
    again = trained(parts, **settings)
    assert all(torch.equal(a, b) for a, b in zip(left, everything(again), strict=True))
    assert list(plain.state.model.state_dict()) == list(again.state.model.state_dict())
    assert plain.state.metrics == again.state.metrics


def saved_bytes(model: nn.Module, inputs: torch.Tensor) -> int:
    """What the backward pass keeps alive."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = model(inputs)
    assert outputs.requires_grad
    return sum(kept.values())


def test_less_is_kept_for_the_backward_pass() -> None:
    ids = torch.randint(0, 81, (4, 32))
    plain, again = (GPT(81, 32, 4, 2, 32) for _ in range(2))
    checkpoint_activations(again, True)
    assert saved_bytes(again, ids) < 0.5 * saved_bytes(plain, ids)


def test_evaluation_and_prediction_compute_nothing_twice() -> None:
    model = deep()
    checkpoint_activations(model, True)
    with torch.no_grad():
        model(batches()[0][0])
    assert [float(layer.passes) for layer in model.layers] == [1, 1, 1]


def test_a_copy_of_the_model_computes_its_own_parts() -> None:
    model = deep()
    checkpoint_activations(model, True)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    other(batches()[0][0]).sum().backward()
    assert all(parameter.grad is None for parameter in model.parameters())
    assert [float(layer.passes) for layer in model.layers] == [0, 0, 0]


def test_a_second_trainer_does_not_do_it_twice() -> None:
    model = deep()
    for _ in range(2):
        checkpoint_activations(model, True)
    assert all(vars(layer)["forward"].own is None for layer in model.layers)


def test_blocks_are_what_has_parts_and_stands_in_a_list() -> None:
    gpt, net = GPT(81, 32, 3, 2, 32), deep()
    assert blocks_of(gpt) == list(gpt.blocks)
    assert blocks_of(net) == list(net.layers)
    stages = nn.Sequential(nn.Sequential(Block(), Block()), nn.Sequential(Block(), nn.ReLU()))
    assert [type(block) for block in blocks_of(stages)] == [Block] * 3
    assert matching(net, ["layers.[12]", "last"]) == [net.layers[1], net.layers[2], net.last]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (["Blok"], "activation_checkpointing: no module of Deep is called or matches 'Blok'; did you mean 'Block'?"),
        (["layers.7"], "'layers.7'; did you mean 'layers.[0-2]'"),
        (["Deep"], "no module of Deep is called or matches 'Deep'.*its classes are BatchNorm1d, Block"),
    ],
)
def test_a_part_that_is_not_there_is_said(parts: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(deep(), activation_checkpointing=parts)


def test_a_model_without_blocks_says_so() -> None:
    with pytest.raises(UsageError, match=r"finds no blocks in Net: .*name modules or classes, such as layers"):
        trainer(activation_checkpointing=True)
    done = trainer(activation_checkpointing=["Linear"])
    done.fit()
    plain = trainer()
    plain.fit()
    assert torch.equal(weights(done), weights(plain))
