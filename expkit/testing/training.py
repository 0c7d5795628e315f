"""One short training, the same for every suite: a small network on a bench of noise, everything written down."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from expkit.functional.losses import soft_cross_entropy
from expkit.functional.resnet import ResNet, init_weights
from expkit.functional.tensor_loader import TensorLoader
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.logger import LoggerDestination
from expkit.trainer.state import State
from expkit.trainer.streams import generator
from expkit.trainer.trainer import Trainer

NUM_CLASSES = 4


@dataclasses.dataclass(frozen=True)
class Bench:
    """A network and data that suit it: 32 samples, 8 a batch."""

    network: Callable[[], nn.Module]
    without_statistics: Callable[[], nn.Module]
    """One whose samples do not see each other."""
    data: Callable[[int], TensorLoader]
    """Seed of the order -> a loader of always the same samples."""


def bench_for(*algorithms: Algorithm) -> Bench:
    """Tokens where a method needs sequences, else images."""
    return TOKENS if any("sequences" in algorithm.requires for algorithm in algorithms) else IMAGES


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
    initial: dict[str, Tensor]
    """The weights that the first batch found."""
    optimizer: dict[str, Any]
    metrics: dict[str, float]
    """Of the evaluations, each one's newest value."""
    generators: list[Any]
    """Where torch's, Python's and numpy's default generators stood at the end."""
    hooks: int
    """In the modules and the optimizer at the end."""


def train(
    algorithms: Sequence[Algorithm] = (),
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[LoggerDestination] = (),
    *,
    seed: int = 1,
    num_batches: int = 3,
    bench: Bench | None = None,
    model: nn.Module | None = None,
    microbatch: int | None = None,
    weights: dict[str, Tensor] | None = None,
) -> Training:
    """Train a small network on the bench that the methods need, with an evaluation after every other batch."""
    bench = bench_for(*algorithms) if bench is None else bench
    loader, probe = _Recording(bench.data(seed)), _Probe()
    network = bench.network() if model is None else model
    if weights is not None:
        network.load_state_dict(weights)
    trainer = Trainer(
        model=network,
        train_dataloader=loader,
        eval_dataloader=bench.data(seed + 1),
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
        state = trainer.state
        return Training(
            losses=probe.losses,
            weights=_copied(state.model),
            targets=probe.targets,
            given=loader.copies,
            loaded=loader.originals,
            draws=probe.draws,
            initial=probe.initial,
            optimizer=copy.deepcopy(state.optimizer.state_dict()),
            metrics={name: value for name, value in state.metrics.items() if not name.startswith("train/")},
            generators=[torch.get_rng_state(), random.getstate(), _numpy_state()],
            hooks=_num_hooks(*state.model.modules(), state.optimizer),
        )


def fresh(plugin: Any) -> Any:
    """Another plug-in of the same class and settings, unused."""
    given = {f.name: getattr(plugin, f.name) for f in dataclasses.fields(plugin) if f.init}
    return type(plugin)(**copy.deepcopy(given))


def _copied(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def _numpy_state() -> list[Any]:
    state: Any = np.random.get_state()
    return [state[0], state[1].tolist(), *state[2:]]


def _num_hooks(*owners: object) -> int:
    """Functions that modules and optimizers keep to call them."""
    kept = [value for owner in owners for name, value in vars(owner).items() if name.endswith("_hooks")]
    return sum(len(hooks) for hooks in kept if hooks)


def _residual_network() -> nn.Module:
    model = ResNet(depth=8, width=16, stem_stride=2, num_classes=NUM_CLASSES, in_channels=16)
    init_weights(model, torch.Generator().manual_seed(0))
    return model


def _network_without_statistics() -> nn.Module:
    torch.manual_seed(0)
    convolution = nn.Conv2d(16, 16, 3, stride=2, padding=1)
    return nn.Sequential(convolution, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, NUM_CLASSES))


def _images(seed: int) -> TensorLoader:
    """Images of 16x16 in four classes, 16 channels so that every method has layers to work on."""
    images = torch.randn(32, 16, 16, 16, generator=torch.Generator().manual_seed(7))
    return TensorLoader(images, torch.arange(32) % NUM_CLASSES, batch_size=8, order=_order(seed))


class TokenNetwork(nn.Module):
    """Guesses the next token from this one and the mean of those before it: logits (N, C, T) of ids (N, T)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(NUM_CLASSES, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, NUM_CLASSES)

    def forward(self, ids_NT: Tensor) -> Tensor:
        x_NTD = self.embedding(ids_NT)
        counts_T1 = torch.arange(1, ids_NT.shape[1] + 1).unsqueeze(1)
        h_NTD = self.norm(x_NTD + x_NTD.cumsum(1) / counts_T1)
        return self.head(h_NTD).transpose(1, 2)  # type: ignore[no-any-return]

    def loss(self, outputs: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
        """Mean cross-entropy of a token in nats."""
        return soft_cross_entropy(outputs, targets, reduction)


def _token_network() -> nn.Module:
    torch.manual_seed(0)
    return TokenNetwork()


def _tokens(seed: int) -> TensorLoader:
    """Sequences of 16 ids out of four, the next ones as targets."""
    ids = torch.randint(NUM_CLASSES, (32, 17), generator=torch.Generator().manual_seed(7))
    return TensorLoader(ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), batch_size=8, order=_order(seed))


def _order(seed: int) -> Callable[[int], Tensor]:
    return lambda epoch: torch.randperm(32, generator=generator(seed, "data", epoch))


IMAGES = Bench(_residual_network, _network_without_statistics, _images)
TOKENS = Bench(_token_network, _token_network, _tokens)


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
        self.initial: dict[str, Tensor] = {}

    def batch_start(self, state: State, logger: Any) -> None:
        if not self.losses:
            self.initial = _copied(state.model)

    def batch_end(self, state: State, logger: Any) -> None:
        self.losses.append(state.train_loss)
        self.targets.append(state.targets)
        self.draws.append(float(torch.rand((), generator=state.rng("probe", state.timestamp.batch))))
