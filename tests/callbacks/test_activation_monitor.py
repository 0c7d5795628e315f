from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from expkit.callbacks.activation_monitor import ActivationMonitor
from expkit.duration import Time
from expkit.errors import UsageError
from expkit.loggers.memory import Memory
from expkit.trainer.callback import Callback
from tests.callbacks.lab import Lines, batches, net, state_of, trainer


def looked(model: nn.Module, inputs: torch.Tensor, **settings: Any) -> dict[str, float]:
    """What is recorded of one forward pass."""
    monitor, lines, state = ActivationMonitor(**settings), Lines(), state_of(model=model)
    monitor.batch_start(state, lines)
    model(inputs)
    monitor.after_train_batch(state, lines)
    monitor.batch_end(state, lines)
    return lines.lines[0]


def test_statistics_by_hand() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [0.0, 0.0, 0.0, 4.0]])
    seen = looked(nn.Sequential(nn.Identity()), x)
    assert seen["activations/average/0_input.0"] == 2.0
    assert seen["activations/max/0_output.0"] == 5.0
    assert seen["activations/l2_norm/0_output.0"] == pytest.approx((50**0.5 + 4) / 2)
    kurtosis = [float(((row - row.mean()) ** 4).mean() / row.var(correction=0) ** 2) for row in x]
    assert seen["activations/kurtosis/0_output.0"] == pytest.approx(sum(kurtosis) / 2)
    assert seen["activations/average/model_input.0"] == 2.0


def test_the_features_of_an_image_are_its_channels() -> None:
    images = torch.zeros(2, 3, 4, 4)
    images[:, 1] = 3.0
    seen = looked(nn.Sequential(nn.Identity()), images)
    assert seen["activations/l2_norm/0_output.0"] == 3.0 and seen["activations/max/0_output.0"] == 3.0


def test_without_spread_there_is_no_kurtosis_but_nan_is_told() -> None:
    assert "activations/kurtosis/0_output.0" not in looked(nn.Sequential(nn.Identity()), torch.ones(2, 3))
    average = looked(nn.Sequential(nn.Identity()), torch.full((2, 3), torch.nan))["activations/average/0_output.0"]
    assert average != average


class Many(nn.Module):
    """Gives a mapping with a pair, ids and a mask."""

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"pair": (x, x + 1), "ids": torch.arange(3), "mask": x > 0}


def test_nested_outputs_are_numbered_and_ids_and_masks_left_out() -> None:
    seen = looked(Many(), torch.randn(2, 3))
    names = {name.removeprefix("activations/average/") for name in seen if "average" in name}
    assert names == {"model_input.0", "model_output.pair.0", "model_output.pair.1"}


class Hooks(Callback):
    """Counts forward hooks at the forward pass of each batch, and after it."""

    def __init__(self) -> None:
        self.inside: list[int] = []
        self.outside: list[int] = []

    def before_forward(self, state: Any, logger: Any) -> None:
        self.inside.append(sum(len(module._forward_hooks) for module in state.model.modules()))

    def batch_end(self, state: Any, logger: Any) -> None:
        self.outside.append(sum(len(module._forward_hooks) for module in state.model.modules()))


def test_hooks_are_there_for_the_batches_it_looks_at_and_gone_after() -> None:
    """Hooks that were left in the model slowed the training of small ones (Composer #3843)."""
    hooks, memory = Hooks(), Memory()
    with trainer([ActivationMonitor(Time.parse("5ba")), hooks], loggers=[memory]) as t:
        t.fit()
    assert hooks.inside == [4, 0, 0, 0, 0] * 2 + [4, 0]
    assert not any(hooks.outside)
    assert memory.get_timeseries("activations/average/0_output.0")["batch"] == [1, 6, 11]


def test_an_interval_in_epochs_and_the_first_microbatch_alone() -> None:
    whole, parts = Memory(), Memory()
    halves = [(x[:2], y[:2]) for x, y in batches()]
    for memory, data, size in ((whole, halves, None), (parts, batches(), 2)):
        with trainer([ActivationMonitor(Time.parse("1ep"))], loggers=[memory], train_dataloader=data,
                     device_train_microbatch_size=size) as t:  # fmt: skip
            t.fit()
    a, b = (memory.get_timeseries("activations/l2_norm/2_output.0") for memory in (whole, parts))
    assert a["batch"] == b["batch"] == [1, 7]
    assert a["value"][0] == b["value"][0]


def test_kinds_of_modules_can_be_left_out() -> None:
    seen = looked(net(), torch.randn(2, 6), ignore_module_types=("relu", "Sequential"))
    assert {name.split("/")[2].split("_")[0] for name in seen} == {"0", "2"}


class Failing(Callback):
    def before_loss(self, state: Any, logger: Any) -> None:
        raise RuntimeError("no")


def test_a_failure_inside_leaves_no_hook() -> None:
    model = net()
    with trainer([ActivationMonitor(), Failing()], model=model) as t, pytest.raises(RuntimeError, match="no"):
        t.fit()
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("interval", ["3sec", "0ba", "10sp"])
def test_other_intervals_are_refused(interval: str) -> None:
    with pytest.raises(ValueError, match="interval is positive, in ba or ep, but got"):
        ActivationMonitor(Time.parse(interval))


def test_a_compiled_model_is_refused() -> None:
    model = net()
    model.compile(backend="eager")
    with pytest.raises(UsageError, match="would have a compiled model compiled once more"):
        ActivationMonitor().batch_start(state_of(model=model), Lines())
