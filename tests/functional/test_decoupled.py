"""Decoupled decay: hand values, torch's numbers where there is none, decay that follows the schedule alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from expkit.functional.decoupled import DecoupledAdamW, DecoupledSGDW, decay_of


def weights(optimizer_of: Any) -> list[Tensor]:
    """A small net after some steps on gradients that differ from step to step; one parameter never has any."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    spare = nn.Parameter(torch.ones(3))
    optimizer = optimizer_of([*net.parameters(), spare])
    for step in range(6):
        inputs = torch.randn(4, 5, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        net(inputs).square().mean().backward()
        optimizer.step()
    return [p.detach() for p in (*net.parameters(), spare)]


def test_sgd_by_hand() -> None:
    weight = nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    optimizer = DecoupledSGDW([weight], lr=0.5, momentum=0.5, weight_decay=5e-4)
    weight.grad = torch.tensor([1.0], dtype=torch.float64)
    optimizer.step()
    first = 2 * (1 - 5e-4) - 0.5
    assert weight.item() == pytest.approx(first, rel=1e-15)
    optimizer.param_groups[0]["lr"] = 0.1  # as a schedule would
    optimizer.step()  # momentum 0.5 * 1 + 1
    assert weight.item() == pytest.approx(first * (1 - 5e-4 / 5) - 0.1 * 1.5, rel=1e-15)


def test_adam_by_hand() -> None:
    weight = nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    optimizer = DecoupledAdamW([weight], lr=0.1, eps=1e-30, weight_decay=1e-4)
    weight.grad = torch.tensor([-3.0], dtype=torch.float64)
    optimizer.step()  # the first step of Adam has length lr
    first = 2 * (1 - 1e-4) + 0.1
    assert weight.item() == pytest.approx(first, rel=1e-14)
    optimizer.param_groups[0]["lr"] = 0.05
    optimizer.step()  # the same gradient again: both averages, unbiased, are what they were
    assert weight.item() == pytest.approx(first * (1 - 1e-4 / 2) + 0.05, rel=1e-14)


@pytest.mark.parametrize(
    ("ours", "torchs"),
    [
        (lambda p: DecoupledSGDW(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
        (lambda p: DecoupledSGDW(p, lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
        (
            lambda p: DecoupledSGDW(p, lr=0.1, momentum=0.9, dampening=0.2),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2),
        ),
        (
            lambda p: DecoupledSGDW(p, lr=0.1, momentum=0.9, nesterov=True),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        ),
        (
            lambda p: DecoupledAdamW(p, lr=0.1, weight_decay=0.0),
            lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.9, 0.95), weight_decay=0.0),
        ),
        (
            lambda p: DecoupledAdamW(p, lr=0.1, weight_decay=0.0, amsgrad=True),
            lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.9, 0.95), weight_decay=0.0, amsgrad=True),
        ),
    ],
)
def test_without_decay_torchs_numbers_to_the_bit(ours: Any, torchs: Any) -> None:
    for a, b in zip(weights(ours), weights(torchs), strict=True):
        assert torch.equal(a, b)


def test_adamws_decay_is_ours_times_the_rate() -> None:
    ours = weights(lambda p: DecoupledAdamW(p, lr=0.1, betas=(0.9, 0.999), weight_decay=0.0005))
    torchs = weights(lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.005))
    for a, b in zip(ours, torchs, strict=True):
        torch.testing.assert_close(a, b)


def test_what_has_no_gradient_does_not_decay() -> None:
    *_, spare = weights(lambda p: DecoupledSGDW(p, lr=0.1, weight_decay=9e-4))
    assert torch.equal(spare, torch.ones(3))


def test_groups_have_rates_and_decays_of_their_own() -> None:
    bias, matrix = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = DecoupledSGDW([{"params": [matrix]}, {"params": [bias], "weight_decay": 0.0, "lr": 2.0}], lr=1.0,
                              weight_decay=5e-4)  # fmt: skip
    for p in (bias, matrix):
        p.grad = torch.zeros(1)
    optimizer.step()
    assert (bias.item(), matrix.item()) == (1.0, pytest.approx(1 - 5e-4))


@pytest.mark.parametrize(
    ("lr", "initial", "share"), [(0.1, 0.1, 1e-4), (0.05, 0.1, 5e-5), (0.0, 0.1, 0.0), (0, 0, 1e-4)]
)
def test_decay_is_relative_to_the_full_rate(lr: float, initial: float, share: float) -> None:
    assert decay_of(lr, initial, 1e-4) == pytest.approx(share)


def test_a_strong_decay_is_told_with_what_it_does_issue_1334() -> None:
    point = [nn.Parameter(torch.ones(1))]
    with pytest.warns(UserWarning) as told:
        DecoupledAdamW(point, lr=1e-3, weight_decay=0.01)
    (warning,) = told
    assert str(warning.message) == (
        "weight_decay=0.01 of DecoupledAdamW is not multiplied by the learning rate: at the full rate each step takes "
        "1.000% of the weights, which halves them every 69 steps; what AdamW does with 0.01 at lr=0.001 is "
        "weight_decay=1e-05 here"
    )
    with pytest.warns(UserWarning, match="halves them in one step"):
        DecoupledSGDW(point, lr=0.1, weight_decay=0.5)
    DecoupledSGDW(point, lr=0.1, weight_decay=9.9e-4)  # warnings are errors here


def test_a_closure_computes_loss_and_gradient() -> None:
    for cls in (DecoupledSGDW, DecoupledAdamW):
        point = nn.Parameter(torch.tensor([1.0]))
        optimizer: Any = cls([point], lr=0.1)

        def closure(p: nn.Parameter = point, built: Any = optimizer) -> float:
            built.zero_grad()
            loss = p.square().sum()
            loss.backward()
            return float(loss.detach())

        assert optimizer.step(closure) == 1.0
        assert point.item() < 1


def test_state_survives_saving() -> None:
    for cls in (lambda p: DecoupledSGDW(p, lr=0.1, momentum=0.9), lambda p: DecoupledAdamW(p, lr=0.1)):
        one, two = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
        first, second = cls([one]), cls([two])
        for p, optimizer in ((one, first), (one, first)):
            p.grad = torch.tensor([1.0, 2.0, 3.0])
            optimizer.step()
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        two.data.copy_(one.data)
        for p, optimizer in ((one, first), (two, second)):
            p.grad = torch.tensor([0.5, -2.0, 1.0])
            optimizer.step()
        assert torch.equal(one, two)
