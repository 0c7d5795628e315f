"""Trainings that are cut and resumed: recipes that give fresh parts each time, and what must be equal afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from expkit.algorithms.blurpool import BlurPool
from expkit.algorithms.channels_last import ChannelsLast
from expkit.algorithms.colout import ColOut
from expkit.algorithms.ema import EMA
from expkit.algorithms.mixup import MixUp
from expkit.algorithms.selective_backprop import SelectiveBackprop
from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.callbacks.lr_monitor import LRMonitor
from expkit.functional.tensor_loader import TensorLoader
from expkit.models.mlp import MLP
from expkit.optimizers.adamw import AdamW
from expkit.optimizers.sgd import SGD
from expkit.schedulers.cosine import Cosine
from expkit.testing.training import IMAGES
from expkit.trainer.callback import Callback
from expkit.trainer.state import State
from expkit.trainer.streams import generator
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory

Settings = dict[str, Any]


def noise(num_samples: int, shape: tuple[int, ...], seed: int = 7) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(num_samples, *shape, generator=draw), torch.randint(0, 4, (num_samples,), generator=draw)


def tensor_loader(seed: int, batch_size: int = 8) -> TensorLoader:
    """46 samples: five batches of 8 and one of 6."""
    order: Callable[[int], Tensor] = lambda epoch: torch.randperm(46, generator=generator(seed, "data", epoch))  # noqa: E731
    return TensorLoader(*noise(46, (16,)), batch_size, order=order)


class Drawing(nn.Module):
    """Draws from everybody's default generators at each pass, keyed by nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 4)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        import random

        import numpy as np

        if self.training:
            self.count += 1
            x = x + random.gauss(0, 0.1) + float(np.random.standard_normal()) * 0.1
        return self.layer(x)  # type: ignore[no-any-return]


@dataclass
class InterruptAt(Callback):
    """Asks for an end at a batch, as a signal would."""

    batch: int = 1
    trainer: Any = field(default=None, init=False)

    def batch_end(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch == self.batch and self.trainer is not None:
            self.trainer.request_stop("SIGTERM")


def sgd_ema() -> Settings:
    return {"model": MLP(num_inputs=16, hidden=(12,), num_classes=4, dropout=0.2),
            "optimizers": SGD(lr=0.2, momentum=0.9, weight_decay=1e-3), "algorithms": [EMA(half_life="4ba")],
            "train_dataloader": tensor_loader(3), "eval_dataloader": tensor_loader(4)}  # fmt: skip


def adamw_mixup() -> Settings:
    return {"model": MLP(num_inputs=16, hidden=(12,), num_classes=4), "optimizers": AdamW(lr=0.01),
            "algorithms": [MixUp(alpha=0.5)], "train_dataloader": tensor_loader(3),
            "eval_dataloader": tensor_loader(4)}  # fmt: skip


def convolutions() -> Settings:
    """Surgery, batch statistics, channels last, which its average must keep, and selection with its own forward."""
    return {"model": IMAGES.network(), "optimizers": SGD(lr=0.05, momentum=0.9),
            "algorithms": [BlurPool(), ChannelsLast(), ColOut(), EMA(half_life="3ba", ema_start="0.25dur"),
                           SelectiveBackprop(start=0.2, end=0.9)],
            "train_dataloader": IMAGES.data(1), "eval_dataloader": IMAGES.data(2), "max_duration": "11ba"}  # fmt: skip


def torch_loader(num_workers: int = 0) -> Settings:
    data = torch.utils.data.TensorDataset(*noise(46, (16,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=num_workers)
    return {"model": MLP(num_inputs=16, hidden=(12,), num_classes=4, dropout=0.1), "optimizers": SGD(lr=0.1),
            "train_dataloader": loader, "eval_dataloader": torch.utils.data.DataLoader(data, 16)}  # fmt: skip


def default_generators() -> Settings:
    torch.manual_seed(0)
    return {"model": Drawing(), "optimizers": AdamW(lr=0.01), "train_dataloader": tensor_loader(3),
            "eval_dataloader": tensor_loader(4)}  # fmt: skip


RECIPES: dict[str, Callable[[], Settings]] = {
    "sgd_ema": sgd_ema,
    "adamw_mixup": adamw_mixup,
    "convolutions": convolutions,
    "torch_loader": torch_loader,
    "default_generators": default_generators,
}


def make(recipe: Callable[[], Settings], **settings: Any) -> tuple[Trainer, Memory]:
    memory = Memory()
    given: Settings = {"schedulers": Cosine(warmup="0.1dur"), "max_duration": "3ep", "eval_interval": "4ba",
                       "device": "cpu", "seed": 5, "callbacks": [LRMonitor()], **recipe(), **settings}  # fmt: skip
    return Trainer(loggers=[memory], **given), memory


def run_through(recipe: Callable[[], Settings], folder: Path, every: str = "1ba", **settings: Any) -> Any:
    """Train to the end, saving on the way; gives the trainer and what it logged."""
    saver = CheckpointSaver(folder=str(folder), save_interval=every)
    trainer, memory = make(recipe, callbacks=[LRMonitor(), saver], **settings)
    with trainer:
        trainer.fit()
    return trainer, memory


_ELSEWHERE = ("clocks", "training", "rng", "callbacks/", "loggers/")


def fingerprint(state: State) -> dict[str, Any]:
    """Everything that must be equal to the bit: weights, optimizer, methods, counters, metrics."""
    parts = {name: part.state_dict() for name, part in state.stateful.items() if not name.startswith(_ELSEWHERE)}
    counters = state.timestamp._replace(train_s=0.0)
    return {**parts, "counters": counters, "metrics": dict(state.metrics), "loss": state.train_loss,
            "evaluated_at": dict(state.evaluated_at)}  # fmt: skip


def assert_equal(a: Any, b: Any, path: str = "") -> None:
    """Equal bits, layouts too; the path says where they are not."""
    if isinstance(a, Tensor):
        assert isinstance(b, Tensor) and a.dtype == b.dtype and a.stride() == b.stride(), path
        assert torch.equal(a, b), path
    elif isinstance(a, dict):
        assert isinstance(b, dict) and a.keys() == b.keys(), path
        for key in a:
            assert_equal(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), path
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_equal(one, other, f"{path}/{i}")
    else:
        assert a == b or (a != a and b != b), path


def tail(memory: Memory, batch: int) -> list[tuple[str, int, float]]:
    """What was logged after a batch, but for what depends on the clock."""
    return [row for row in memory.rows if row[1] > batch and not row[0].startswith("throughput/")]
