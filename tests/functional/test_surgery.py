from __future__ import annotations

import pytest
import torch
from torch import nn

from expkit.functional.surgery import recast, replace_modules


class Louder(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(input)


def louder(module: nn.Module) -> nn.Module | None:
    return recast(module, Louder) if type(module) is nn.Linear else None


def test_a_shared_module_is_replaced_once_in_all_its_places() -> None:
    shared = nn.Linear(2, 2)
    model = nn.ModuleDict({"a": nn.Sequential(shared, shared), "b": nn.Sequential(nn.Sequential(shared))})
    replaced = replace_modules(model, louder)
    assert [old for old, _ in replaced] == [shared]
    assert model["a"][0] is model["a"][1] is model["b"][0][0] is replaced[0][1]
    assert replace_modules(model, louder) == []


def test_the_root_is_never_replaced_silently() -> None:
    with pytest.raises(ValueError, match="the model is itself a Linear"):
        replace_modules(nn.Linear(2, 2), louder)


def test_recast_keeps_parameters_flags_hooks_and_draws_nothing() -> None:
    linear = nn.Linear(2, 2).double().eval()
    linear.weight.requires_grad_(False)
    calls: list[int] = []
    linear.register_forward_hook(lambda *_: calls.append(1))
    before = torch.get_rng_state()
    new = recast(linear, Louder)
    assert torch.equal(torch.get_rng_state(), before)
    assert new.weight is linear.weight and new.bias is linear.bias and not new.training
    new.register_buffer("more", torch.zeros(1))
    assert "more" not in linear._buffers  # the old one is left as it was
    x = torch.ones(1, 2, dtype=torch.float64)
    torch.testing.assert_close(new(x), 2 * linear(x))
    assert calls == [1, 1]


def test_the_optimizer_goes_on_training_what_it_held() -> None:
    model = nn.Sequential(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    replace_modules(model, louder)
    before = model[0].weight.detach().clone()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert not torch.equal(model[0].weight, before)
    assert {id(p) for p in model.parameters()} == {id(p) for p in optimizer.param_groups[0]["params"]}
