"""A step without torch's bookkeeping: the same weights, and whoever hooks in or profiles still sees it."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from expkit import plugins
from expkit.trainer import optimizer_calls
from tests.trainer.doubles import batches, net, trainer

TORCHS = [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad]


def ours(name: str, parameters: Any) -> Any:
    made: Any = plugins.build("optimizers", name, {})
    return made.build(parameters)


OURS = [functools.partial(ours, name) for name in plugins.names("optimizers")]


def trained(make: Any, plainly: bool) -> torch.Tensor:
    model = net()
    optimizer = make(model.parameters())
    for inputs, targets in batches():
        optimizer_calls.forget_gradients(optimizer) if plainly else optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer_calls.step(optimizer) if plainly else optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("make", [*TORCHS, *OURS])
def test_the_weights_are_the_same(make: Any) -> None:
    assert torch.equal(trained(make, plainly=True), trained(make, plainly=False))


class Counting(torch.optim.SGD):
    """One that calls what it is made of."""

    calls = 0

    def step(self, closure: Any = None) -> Any:
        self.calls += 1
        return super().step(closure)


def optimizer_of(cls: type[torch.optim.SGD] = torch.optim.SGD) -> Any:
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    return cls([parameter], lr=0.5)


def test_a_subclass_takes_its_own_step() -> None:
    optimizer = optimizer_of(Counting)
    optimizer_calls.step(optimizer)
    assert optimizer.calls == 1
    assert optimizer.param_groups[0]["params"][0].tolist() == [0.5] * 3


def test_hooks_are_called() -> None:
    seen: list[str] = []
    optimizer = optimizer_of()
    handles = [
        register_optimizer_step_pre_hook(lambda *_: seen.append("before all")),
        register_optimizer_step_post_hook(lambda *_: seen.append("after all")),
        optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
        optimizer.register_step_post_hook(lambda *_: seen.append("after")),
    ]
    while handles:
        seen.clear()
        optimizer_calls.step(optimizer)
        assert len(seen) == len(handles)
        handles.pop(0).remove()
    optimizer_calls.step(optimizer)
    assert seen == ["after"]
    assert optimizer.param_groups[0]["params"][0].tolist() == [-1.5] * 3


def test_a_step_that_somebody_put_around_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    given, seen = torch.optim.SGD.step, []

    @functools.wraps(given)
    def step(self: Any, closure: Any = None) -> Any:
        seen.append("class")
        return given(self, closure)

    optimizer = optimizer_of()
    monkeypatch.setattr(torch.optim.SGD, "step", step)
    optimizer_calls.step(optimizer)
    optimizer.step = lambda: seen.append("instance")
    optimizer_calls.step(optimizer)
    assert seen == ["class", "instance"]


def test_a_profiler_sees_the_step() -> None:
    optimizer = optimizer_of()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        optimizer_calls.step(optimizer)
    assert "Optimizer.step#SGD.step" in {event.key for event in profile.key_averages()}


def test_what_is_no_optimizer_of_torch_has_a_step_of_its_own() -> None:
    class Own:
        stepped = False

        def step(self) -> None:
            self.stepped = True

    own: Any = Own()
    optimizer_calls.step(own)
    assert own.stepped


def calls_in(num_batches: int) -> Counter[str]:
    """How often each function of expkit is called in a fit of one epoch."""
    calls: Counter[str] = Counter()
    root = str(Path(optimizer_calls.__file__).parents[1])

    def count(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            calls[frame.f_code.co_qualname] += 1

    with trainer(train_dataloader=batches(num_batches), max_duration="1ep") as t:
        sys.setprofile(count)
        try:
            t.fit()
        finally:
            sys.setprofile(None)
    return calls


def test_a_plain_step_makes_few_calls() -> None:
    """A call costs up to a microsecond there, for the caches are full of torch; timings belong to the benchmark."""
    a_step = calls_in(12) - calls_in(11)
    assert a_step.total() <= 45, a_step.most_common()
