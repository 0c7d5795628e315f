from __future__ import annotations

from typing import Any

import pytest
import torch

from expkit.callbacks.lr_monitor import LRMonitor
from expkit.loggers.memory import Memory
from tests.callbacks.lab import net, trainer


def recorded(**given: Any) -> Memory:
    memory = Memory()
    with trainer([LRMonitor()], loggers=[memory], max_duration="3ba", **given) as t:
        t.fit()
    return memory


def test_the_rate_of_each_step_is_recorded_with_it() -> None:
    memory = recorded(schedulers=[lambda step: 1 / (1 + step)])
    lr = memory.get_timeseries("lr")
    assert (lr["batch"], lr["value"]) == ([1, 2, 3], pytest.approx([0.1, 0.05, 0.1 / 3]))
    assert not [name for name in memory.series if name.startswith("lr-")]


def test_several_groups_are_told_apart_and_the_first_keeps_its_name() -> None:
    model: Any = net()
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.3}]
    memory = recorded(model=model, optimizers=torch.optim.SGD(groups, lr=0.2))
    values = {name: rows[0][-1] for name, rows in memory.series.items() if name.startswith("lr")}
    assert values == {"lr": 0.2, "lr-SGD/group0": 0.2, "lr-SGD/group1": 0.3}
