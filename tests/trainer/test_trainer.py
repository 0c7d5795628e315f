"""The face: plug-ins or plain torch, and what cannot be right is refused in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit import Trainer as FromTheFace
from expkit.errors import UsageError
from expkit.trainer.contracts import Dataset, Model, Optimizer, Scheduler
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, Net, batches, net, trainer, weights

ROOT = Path(__file__).parents[2]


@dataclass
class TinyModel(Model):
    dropout: float = 0.2

    def build(self) -> Any:
        return Net(self.dropout)


@dataclass
class TinyData(Dataset):
    batch_size: int = 6

    def build(self, *, seed: int, rank: int, world_size: int) -> Any:
        return TinyLoader(seed)


class TinyLoader:
    batch_size, num_samples = 6, 24

    def __init__(self, seed: int) -> None:
        self.seed, self.epochs = seed, []

    def set_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def __len__(self) -> int:
        return 4

    def __iter__(self) -> Any:
        return iter(batches())


@dataclass
class TinySGD(Optimizer):
    lr: float = 0.1

    def build(self, params: Any) -> Any:
        return torch.optim.SGD(params, lr=self.lr)


@dataclass
class Half(Scheduler):
    def factor(self, step: int, steps: Any) -> float:
        return 0.5


def from_plugins(seed: int) -> Trainer:
    return Trainer(
        model=TinyModel(), train_dataloader=TinyData(), eval_dataloader=TinyData(), optimizers=TinySGD(),
        schedulers=Half(), max_duration="2ep", device="cpu", seed=seed,
    )  # fmt: skip


def test_everything_from_plug_ins_and_the_seed_alone_decides() -> None:
    runs = []
    for seed in (1, 1, 2):
        torch.rand(seed)
        with from_plugins(seed) as t:
            t.fit()
        runs.append(weights(t))
        assert t.state.dataloader.epochs == [0, 1]
        assert t.state.dataloader.seed == seed
        assert t.state.optimizer.param_groups[0]["lr"] == 0.05
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_the_model_is_drawn_from_the_init_stream_before_anything_else_draws() -> None:
    assert torch.equal(weights(from_plugins(3)), weights(from_plugins(3)))


def test_the_face_is_the_trainer() -> None:
    assert FromTheFace is Trainer


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"device_train_microbatch_size": 0}, "at least 1, but got 0"),
        ({"device_train_microbatch_size": "most"}, "number of samples"),
        ({"eval_interval": "5"}, "eval_interval: '5' is not a duration"),
        ({"max_duration": "100sp", "train_dataloader": torch.utils.data.DataLoader(batches(), batch_size=None)},
         "how many samples"),
    ],
)  # fmt: skip
def test_refused_in_a_sentence(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(**settings)


def test_closing_by_leaving_the_with_statement() -> None:
    memory = Memory()
    with pytest.raises(KeyError), trainer(net(), loggers=[memory]):
        raise KeyError
    assert memory.closed == 1


def test_a_destination_among_the_callbacks_is_a_destination() -> None:
    memory = Memory()
    trainer(callbacks=[memory], max_duration="1ba").fit()
    assert len(memory.series("train/loss")) == 1
