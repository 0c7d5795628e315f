"""One short training, the same for every suite: a small residual network on noise, everything written down."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from expkit.functional.resnet import ResNet, init_weights
from expkit.functional.tensor_loader import TensorLoader
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.batch import targets_of
from expkit.trainer.callback import Callback
from expkit.trainer.logger import LoggerDestination
from expkit.trainer.state import State
from expkit.trainer.streams import generator
from expkit.trainer.trainer import Trainer

NUM_CLASSES = 4


@dataclasses.dataclass
class Training:
    """What a short training left behind."""

    losses: list[float]
    weights: dict[str, Tensor]
    targets: list[Tensor]
    """Of each batch, as the algorithms left it at the end of the batch."""
    given: list[tuple[Tensor, Tensor]]
    """Each batch as the loader gave it, copied before anybody saw it."""
    loaded: list[tuple[Tensor, Tensor]]
    """The very tensors that the loader gave."""
    draws: list[float]
    """Of another purpose's stream, drawn at each batch."""


def train(
    algorithms: Sequence[Algorithm] = (),
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[LoggerDestination] = (),
    *,
    seed: int = 1,
    num_batches: int = 3,
    model: nn.Module | None = None,
    microbatch: int | None = None,
) -> Training:
    """Train a small residual network on 8 noise images a batch, with an evaluation after every other batch."""
    loader, probe = _Recording(_noise(seed)), _Probe()
    network = _network() if model is None else model
    trainer = Trainer(
        model=network,
        train_dataloader=loader,
        eval_dataloader=_noise(seed + 1),
        optimizers=torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9),
        max_duration=f"{num_batches}ba",
        eval_interval="2ba",
        algorithms=list(algorithms),
        callbacks=[*callbacks, probe],
        loggers=list(loggers),
        device="cpu",
        device_train_microbatch_size=microbatch,
        seed=seed,
    )
    with trainer:
        trainer.fit()
        weights = {name: tensor.clone() for name, tensor in trainer.state.model.state_dict().items()}
    return Training(probe.losses, weights, probe.targets, loader.copies, loader.originals, probe.draws)


def fresh(plugin: Any) -> Any:
    """Another plug-in of the same class and settings, unused."""
    given = {f.name: getattr(plugin, f.name) for f in dataclasses.fields(plugin) if f.init}
    return type(plugin)(**copy.deepcopy(given))


def _network() -> nn.Module:
    model = ResNet(depth=8, width=16, stem_stride=2, num_classes=NUM_CLASSES, in_channels=16)
    init_weights(model, torch.Generator().manual_seed(0))
    return model


def network_without_statistics() -> nn.Module:
    torch.manual_seed(0)
    convolution = nn.Conv2d(16, 16, 3, stride=2, padding=1)
    return nn.Sequential(convolution, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, NUM_CLASSES))


def _noise(seed: int) -> TensorLoader:
    """32 images of 16x16 in four classes, 16 channels so that every method has layers to work on."""
    rng = torch.Generator().manual_seed(7)
    images, targets = torch.randn(32, 16, 16, 16, generator=rng), torch.arange(32) % NUM_CLASSES

    def order(epoch: int) -> Tensor:
        return torch.randperm(32, generator=generator(seed, "data", epoch))

    return TensorLoader(images, targets, batch_size=8, order=order)


class _Recording:
    """A loader that keeps the very tensors it gave, and copies of them made before."""

    def __init__(self, loader: TensorLoader) -> None:
        self._loader = loader
        self.batch_size, self.num_samples, self.set_epoch = loader.batch_size, loader.num_samples, loader.set_epoch
        self.copies: list[tuple[Tensor, Tensor]] = []
        self.originals: list[tuple[Tensor, Tensor]] = []

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for inputs, targets in self._loader:
            self.copies.append((inputs.clone(), targets.clone()))
            self.originals.append((inputs, targets))
            yield inputs, targets


class _Probe(Callback):
    """Writes down losses, targets and the draws of another purpose."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.targets: list[Tensor] = []
        self.draws: list[float] = []

    def batch_end(self, state: State, logger: Any) -> None:
        self.losses.append(state.train_loss)
        self.targets.append(targets_of(state.batch))
        self.draws.append(float(torch.rand((), generator=state.rng("probe", state.timestamp.batch))))
