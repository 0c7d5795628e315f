"""What a step costs in one library over the plain loop, measured in that library's own environment.

    python tests/benchmarks/peer_step.py ignite mlp64      # prints one JSON line: ratios of CPU time, chunk by chunk

peers.py calls it. The data itself keeps the time: at every so many batches it stops the clock, lets the plain loop make
as many steps, and goes on, so that both sides meet the same moments of the machine, and no library needs a hook. Every
library trains the same modules on the same batches with SGD and momentum and writes no log; where its own way is to
read the loss at every step, as the plain loop does, it does.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

sys.path.insert(0, str(Path(__file__).parent))
import bare_loop

CHUNKS = 8  # the first one warms up and does not count
FACTOR = 3  # chunks three times as long as the plain loop's own


class Turns(IterableDataset):
    """Batches, and between chunks of them the plain loop's turn."""

    def __init__(self, workload: bare_loop.Workload) -> None:
        self.batches = bare_loop.batches(workload)
        self.chunk = workload.steps * FACTOR
        self.bare = bare_loop.parts(workload)
        self.ratios: list[float] = []
        self.batch_size, self.num_samples = len(self.batches[0][0]), len(self) * len(self.batches[0][0])

    def __len__(self) -> int:
        return CHUNKS * self.chunk + 2  # a library may ask for a batch ahead of the one it trains on

    def set_epoch(self, epoch: int) -> None:
        """There is one."""

    def __iter__(self) -> Iterator[Any]:
        started_s = process_time()
        for step in range(len(self)):
            if step and step % self.chunk == 0:
                library_s = process_time() - started_s
                self.ratios.append(library_s / self._bare_s())
                started_s = process_time()
            yield self.batches[step % len(self.batches)]

    def _bare_s(self) -> float:
        started_s = process_time()
        bare_loop.train(*self.bare, self.batches, self.chunk)
        return process_time() - started_s


def bare(model: nn.Module, optimizer: Any, data: Turns) -> None:
    """The plain loop against itself, fed by the same iterator."""
    for inputs, targets in data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        loss.item()


def expkit(model: nn.Module, optimizer: Any, data: Turns) -> None:
    """Trainer.fit without callbacks and loggers."""
    from expkit import Trainer

    with Trainer(model=model, train_dataloader=data, optimizers=optimizer, max_duration="1ep", device="cpu") as trainer:
        trainer.fit()


def ignite(model: nn.Module, optimizer: Any, data: Turns) -> None:
    """create_supervised_trainer."""
    from ignite.engine import create_supervised_trainer

    trainer = create_supervised_trainer(model, optimizer, nn.functional.cross_entropy, device="cpu")
    trainer.run(data, max_epochs=1, epoch_length=len(data))


def accelerate(model: nn.Module, optimizer: Any, data: Turns) -> None:
    """The loop of its documentation."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=None))
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
        loss.item()


def lightning(model: nn.Module, optimizer: Any, data: Turns) -> None:
    """Trainer.fit with everything switched off that can be."""
    from lightning.pytorch import LightningModule, Trainer

    class Classifier(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def training_step(self, batch: Any, _: int) -> Any:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return optimizer

    Trainer(accelerator="cpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False).fit(Classifier(), data)  # fmt: skip


def composer(model: nn.Module, optimizer: Any, data: Turns) -> None:
    """Trainer.fit with a minimal ComposerModel."""
    from composer import Trainer
    from composer.core import DataSpec
    from composer.models import ComposerModel

    class Classifier(ComposerModel):
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def forward(self, batch: Any) -> Any:
            return self.net(batch[0])

        def loss(self, outputs: Any, batch: Any) -> Any:
            return nn.functional.cross_entropy(outputs, batch[1])

    Trainer(model=Classifier(), train_dataloader=DataSpec(data, num_samples=data.num_samples), optimizers=optimizer,
            max_duration="1ep", device="cpu", progress_bar=False, device_train_microbatch_size=data.batch_size,
            schedulers=None).fit()  # fmt: skip


PEERS: dict[str, Callable[[nn.Module, Any, Turns], None]] = {
    "bare": bare, "expkit": expkit, "ignite": ignite, "accelerate": accelerate, "lightning": lightning,
    "composer": composer,
}  # fmt: skip


def main() -> None:
    name, workload = sys.argv[1], bare_loop.WORKLOADS[sys.argv[2]]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # they warn of many things; here only the time counts
    data = Turns(workload)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(sys.stderr):
        PEERS[name](*bare_loop.parts(workload), data)
    print(json.dumps(data.ratios[1:]))


if __name__ == "__main__":
    main()
