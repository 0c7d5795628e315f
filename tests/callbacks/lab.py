"""What the tests of callbacks share: a state that is set by hand, and a logger that keeps its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from expkit.duration import Time, Timestamp, TimeUnit
from expkit.trainer.callback import Callback
from expkit.trainer.schedule import Steps
from expkit.trainer.trainer import Trainer


class Lines:
    """A logger that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[dict[str, float]] = []
        self.events: list[tuple[str, Any]] = []

    def log_metrics(self, metrics: Mapping[str, float]) -> None:
        self.lines.append(dict(metrics))

    def log_event(self, kind: str, payload: Any) -> None:
        self.events.append((kind, payload))


def state_of(**values: Any) -> Any:
    """A state with what callbacks read, on one rank and a CPU, unless `values` says otherwise."""
    steps = Steps(total=100, per_epoch=10, batch_size=8)
    return SimpleNamespace(**{
        "timestamp": Timestamp(), "previous_timestamp": Timestamp(), "world_size": 1, "rank": 0, "steps": steps,
        "max_steps": steps.total, "max_duration": Time(100, TimeUnit.BATCH), "device": torch.device("cpu"),
        "precision": "fp32", "model": nn.Linear(2, 2), "metrics": {}, "eval_name": None, "wall_s": 0.0,
        "loss": torch.tensor(1.0), "microbatch": 0, **values,
    })  # fmt: skip


def batches(count: int = 6, last: int = 4, seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """`count` batches of 4 samples of 6 numbers in 3 classes."""
    rng = torch.Generator().manual_seed(seed)
    sizes = [4] * (count - 1) + [last]
    return [(torch.randn(n, 6, generator=rng), torch.randint(3, (n,), generator=rng)) for n in sizes]


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))


def trainer(callbacks: Sequence[Callback] = (), **given: Any) -> Trainer:
    """A small network on 6 batches an epoch, evaluated after every second batch."""
    model = given.pop("model", None) or net()
    optimizer = given.pop("optimizers", None) or torch.optim.SGD(model.parameters(), lr=0.1)
    return Trainer(**{
        "model": model, "train_dataloader": batches(), "eval_dataloader": batches(2, seed=1), "eval_interval": "2ba",
        "optimizers": optimizer, "max_duration": "2ep", "device": "cpu", "callbacks": list(callbacks), **given,
    })  # fmt: skip
