"""Small parts for the trainer's tests: a net, batches, and plug-ins that write down what they see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.contracts import Metric
from expkit.trainer.event import Event
from expkit.trainer.logger import LoggerDestination
from expkit.trainer.trainer import Trainer

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass
class Accuracy(Metric):
    """Right answers over all samples."""

    _seen: Any = field(default=(0, 0), init=False)

    def reset(self) -> None:
        self._seen = (0, 0)

    def update(self, outputs: Any, targets: Any) -> None:
        right, count = self._seen
        self._seen = (right + int((outputs.argmax(1) == targets).sum()), count + len(targets))

    def compute(self) -> float:
        return self._seen[0] / self._seen[1] if self._seen[1] else float("nan")

    def totals(self) -> list[float]:
        return [float(number) for number in self._seen]

    def set_totals(self, totals: list[float]) -> None:
        self._seen = (int(totals[0]), int(totals[1]))


class Net(nn.Sequential):
    """8 -> 16 -> 4 with dropout between."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 4))

    def metrics(self) -> dict[str, Any]:
        return {"accuracy": Accuracy()}


def net(dropout: float = 0.0) -> Net:
    torch.manual_seed(0)
    return Net(dropout)


def batches(count: int = 4, size: int = 6, last: int | None = None) -> list[Batch]:
    """`count` batches of `size` samples, the last one of `last`."""
    draw = torch.Generator().manual_seed(1)
    sizes = [size] * (count - 1) + [size if last is None else last]
    return [(torch.randn(n, 8, generator=draw), torch.randint(0, 4, (n,), generator=draw)) for n in sizes]


def trainer(model: nn.Module | None = None, *, momentum: float = 0.9, **settings: Any) -> Trainer:
    """A trainer with SGD that needs nothing said."""
    model = net() if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    given: dict[str, Any] = {"train_dataloader": batches(), "max_duration": "2ep", "device": "cpu", **settings}
    return Trainer(model=model, optimizers=optimizer, **given)


def weights(done: Trainer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in done.state.model.parameters()])


def recording(cls: type[Any]) -> Any:
    """An instance of a plug-in class that has a method for every event and a list `seen` of those it heard."""
    seen: list[Event] = []
    methods = {event.value: (lambda e: lambda self, state, logger: seen.append(e))(event) for event in Event}
    recorder = type("Recorder", (cls,), methods)()
    recorder.seen = seen
    return recorder


def recorder() -> Any:
    return recording(Callback)


def acting_recorder() -> Any:
    return recording(Algorithm)


@dataclass
class Memory(LoggerDestination):
    """Keeps (name, batch, value) of everything logged."""

    rows: Any = field(default_factory=list, init=False)
    events: Any = field(default_factory=list, init=False)
    closed: Any = field(default=0, init=False)

    def log_metrics(self, metrics: Any, state: Any) -> None:
        self.rows += [(name, state.timestamp.batch, value) for name, value in metrics.items()]

    def log_event(self, kind: str, payload: Any, state: Any) -> None:
        self.events.append((kind, state.timestamp.batch, dict(payload)))

    def close(self) -> None:
        self.closed += 1

    def series(self, name: str) -> list[tuple[int, float]]:
        return [(batch, value) for n, batch, value in self.rows if n == name]
