"""Trainings that are killed: ten recipes, and a server that starts each in a fresh fork and kills it at an event.

    python -m tests.trainer.kill_anywhere       reads one order a line (JSON), answers each with one line

The server has imported everything and trained nothing, so a training starts within 10 ms instead of 3 s.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._dynamo  # the first optimizer would import it, for a second or two
from torch.utils import data

from expkit.algorithms.blurpool import BlurPool
from expkit.algorithms.channels_last import ChannelsLast
from expkit.algorithms.colout import ColOut
from expkit.algorithms.cutmix import CutMix
from expkit.algorithms.ema import EMA
from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.algorithms.mixup import MixUp
from expkit.algorithms.progressive_resizing import ProgressiveResizing
from expkit.algorithms.selective_backprop import SelectiveBackprop
from expkit.algorithms.seq_length_warmup import SeqLengthWarmup
from expkit.callbacks.activation_monitor import ActivationMonitor
from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.callbacks.early_stopper import EarlyStopper
from expkit.callbacks.load_checkpoint import LoadCheckpoint
from expkit.callbacks.lr_monitor import LRMonitor
from expkit.callbacks.memory_monitor import MemoryMonitor
from expkit.callbacks.nan_monitor import NaNMonitor
from expkit.callbacks.optimizer_monitor import OptimizerMonitor
from expkit.callbacks.profiler import Profiler
from expkit.callbacks.runtime_estimator import RuntimeEstimator
from expkit.callbacks.speed_monitor import SpeedMonitor
from expkit.callbacks.system_metrics_monitor import SystemMetricsMonitor
from expkit.callbacks.threshold_stopper import ThresholdStopper
from expkit.callbacks.train_metrics import TrainMetrics
from expkit.models.gpt import GPT
from expkit.models.mlp import MLP
from expkit.models.resnet import ResNet
from expkit.optimizers.adamw import AdamW
from expkit.optimizers.decoupled_adamw import DecoupledAdamW
from expkit.optimizers.decoupled_sgd import DecoupledSGD
from expkit.optimizers.sgd import SGD
from expkit.schedulers.cosine import Cosine
from expkit.schedulers.step import Step
from expkit.trainer.event import Event
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory

Settings = dict[str, Any]
ROOT = Path(__file__).parents[2]
CLOCKED = ("activation_monitor", "memory_monitor", "runtime_estimator", "speed_monitor", "system_metrics_monitor")
"""Callbacks whose numbers depend on the clock or on the machine."""
SAMPLES, BATCH = 44, 8


@dataclass(frozen=True)
class Order:
    """One training: started or resumed in `folder`, killed `delay_s` after the `count`-th event of a kind."""

    recipe: str
    num_workers: int
    num_microbatches: int
    folder: str
    event: str | None = None
    count: int = 0
    delay_s: float = 0.0


class Noisy(data.Dataset[Any]):
    """44 samples of noise, with new noise from torch, python and numpy each time."""

    def __init__(self, *shape: int) -> None:
        draw = torch.Generator().manual_seed(7)
        self._inputs = torch.randn(SAMPLES, *shape, generator=draw)
        self._targets = torch.randint(0, 4, (SAMPLES,), generator=draw)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        inputs = self._inputs[index] + 0.1 * torch.randn(self._inputs.shape[1:])
        return inputs.flip(-1) if random.random() < 0.5 else inputs * np.random.uniform(0.9, 1.1), self._targets[index]


class Lines(data.Dataset[Any]):
    """44 lines of 16 ids out of a longer text, each from a place that is drawn."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        first = random.randrange(200)
        ids = (torch.arange(first, first + 17) * (index + 3)) % 11
        return ids[:-1], ids[1:]


class Stream(data.IterableDataset[Any]):
    """The same samples one after the other; workers share them."""

    def __init__(self) -> None:
        self._samples = Noisy(16)

    def __len__(self) -> int:
        return SAMPLES

    def __iter__(self) -> Iterator[Any]:
        worker = data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return iter(self._samples[i] for i in range(first, SAMPLES, step))


class Halves:
    """A sampler of batches that draws as it goes: now and then a sample comes twice."""

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(5):
            yield [random.randrange(SAMPLES // 2) + SAMPLES // 2 * int(torch.randint(2, ())) for _ in range(BATCH)]


def noisy_collate(samples: list[Any]) -> Any:
    ids, targets = data.default_collate(samples)
    return ids.roll(random.randrange(3), dims=1), targets


def loader(num_workers: int, dataset: Any, **settings: Any) -> Any:
    given = {"batch_size": BATCH, "shuffle": True, **settings}
    return data.DataLoader(dataset, num_workers=num_workers, **given)


def mlp(**settings: Any) -> Settings:
    return {"model": MLP(num_inputs=16, hidden=(12,), num_classes=4, dropout=0.2), "optimizers": SGD(lr=0.1),
            "eval_dataloader": data.DataLoader(Noisy(16), 16), **settings}  # fmt: skip


def resnet(**settings: Any) -> Settings:
    return {"model": ResNet(depth=8, width=8, num_classes=4, in_channels=1), "optimizers": SGD(lr=0.1, momentum=0.9),
            "eval_dataloader": data.DataLoader(data.Subset(Noisy(1, 12, 12), range(16)), 16), **settings}  # fmt: skip


def gpt(**settings: Any) -> Settings:
    return {"model": GPT(vocab_size=11, context_length=16, layers=1, heads=2, width=8, dropout=0.1),
            "optimizers": AdamW(lr=0.01), "eval_dataloader": data.DataLoader(Lines(), 16), **settings}  # fmt: skip


def mlp_averaged(workers: int, folder: Path) -> Settings:
    return mlp(
        train_dataloader=loader(workers, Noisy(16)), optimizers=SGD(lr=0.1, momentum=0.9, nesterov=True),
        algorithms=[EMA(half_life="4ba", update_interval="2ba"), LabelSmoothing()],
        callbacks=[SpeedMonitor(window_size=3), EarlyStopper(monitor="eval/accuracy", patience="8ba")],
    )  # fmt: skip


def mlp_mixed(workers: int, folder: Path) -> Settings:
    return mlp(
        train_dataloader=loader(workers, Noisy(16), drop_last=True), optimizers=AdamW(lr=0.01),
        algorithms=[MixUp(alpha=0.5)],
        callbacks=[NaNMonitor(), ThresholdStopper(monitor="train/loss", threshold=0.1, stop_on_batch=True)],
        schedulers=Step(step_size="3ba", gamma=0.5),
    )  # fmt: skip


def mlp_streamed(workers: int, folder: Path) -> Settings:
    return mlp(
        train_dataloader=loader(workers, Stream(), shuffle=False), algorithms=[EMA(smoothing=0.8)],
        optimizers=DecoupledSGD(lr=0.1, momentum=0.5),
        callbacks=[RuntimeEstimator(), MemoryMonitor(batch_log_interval=2)],
    )  # fmt: skip


def mlp_pretrained(workers: int, folder: Path) -> Settings:
    sampler = data.WeightedRandomSampler([1.0 + i % 3 for i in range(SAMPLES)], SAMPLES)
    return mlp(
        train_dataloader=loader(workers, Noisy(16), shuffle=False, sampler=sampler), iteration_length="4ba",
        callbacks=[LoadCheckpoint(path=pretrained(folder)), SystemMetricsMonitor(batch_log_interval=3)],
    )  # fmt: skip


def resnet_surgery(workers: int, folder: Path) -> Settings:
    return resnet(
        train_dataloader=loader(workers, Noisy(1, 12, 12)),
        algorithms=[BlurPool(min_channels=8), ChannelsLast(), ColOut(), EMA(half_life="3ba", ema_start="0.25dur")],
        callbacks=[ActivationMonitor(interval="3ba")],
    )  # fmt: skip


def resnet_cut(workers: int, folder: Path) -> Settings:
    own = torch.Generator().manual_seed(3)
    return resnet(
        train_dataloader=loader(workers, Noisy(1, 12, 12), generator=own, persistent_workers=workers > 0),
        algorithms=[CutMix(), ProgressiveResizing(delay_fraction=0.2, size_increment=2)], optimizers=AdamW(lr=0.01),
        callbacks=[OptimizerMonitor(batch_log_interval=2)],
    )  # fmt: skip


def resnet_selective(workers: int, folder: Path) -> Settings:
    batches = loader(workers, Noisy(1, 12, 12), batch_size=1, shuffle=False, batch_sampler=Halves())
    return resnet(train_dataloader=batches, algorithms=[SelectiveBackprop(start=0.2, end=0.9)],
                  callbacks=[TrainMetrics(interval="3ba")])  # fmt: skip


def resnet_bf16(workers: int, folder: Path) -> Settings:
    return resnet(train_dataloader=loader(workers, Noisy(1, 12, 12)), precision="amp_bf16",
                  algorithms=[LabelSmoothing(), ColOut(batch=False)],
                  callbacks=[Profiler(folder=str(folder), wait=2, active=1)])  # fmt: skip


def gpt_warmed_up(workers: int, folder: Path) -> Settings:
    return gpt(train_dataloader=loader(workers, Lines()), max_duration="1500tok", optimizers=DecoupledAdamW(lr=0.01),
               algorithms=[SeqLengthWarmup(duration=0.6, min_seq_length=4, step_size=4)])  # fmt: skip


def gpt_averaged(workers: int, folder: Path) -> Settings:
    return gpt(train_dataloader=loader(workers, Lines(), collate_fn=noisy_collate), optimizers=SGD(lr=0.1),
               algorithms=[EMA(half_life="2ba"), LabelSmoothing()], max_duration="80sp")  # fmt: skip


RECIPES: dict[str, Callable[[int, Path], Settings]] = {
    make.__name__: make
    for make in (mlp_averaged, mlp_mixed, mlp_streamed, mlp_pretrained, resnet_surgery, resnet_cut, resnet_selective,
                 resnet_bf16, gpt_warmed_up, gpt_averaged)
}  # fmt: skip


def pretrained(folder: Path) -> Path:
    """Weights that are always the same, written once."""
    place = folder.parent / "pretrained"
    if not place.exists():
        model = MLP(num_inputs=16, hidden=(12,), num_classes=4, dropout=0.2)
        Trainer(model=model, train_dataloader=data.DataLoader(Noisy(16), BATCH), optimizers=SGD(lr=0.1), seed=99,
                max_duration="1ba", device="cpu").save_checkpoint(place, weights_only=True)  # fmt: skip
    return place


def settings_of(order: Order) -> Settings:
    """All that the trainer of an order is given."""
    folder = Path(order.folder)
    given = RECIPES[order.recipe](order.num_workers, folder)
    saver = CheckpointSaver(folder=str(folder / "checkpoints"), save_interval="2ba", keep_last=2)
    given["callbacks"] = [*given.get("callbacks", ()), LRMonitor(), saver]
    size = None if order.num_microbatches == 1 else BATCH // order.num_microbatches
    return {"schedulers": Cosine(warmup="0.1dur"), "max_duration": "2ep", "eval_interval": "3ba", "seed": 5,
            "device": "cpu", "device_train_microbatch_size": size, **given}  # fmt: skip


def run(order: Order, reached: int) -> dict[str, Any]:
    """Train from where the folder stands to the end; gives what must be equal. The order's event is told `reached`."""
    memory = Memory()
    trainer = Trainer(**settings_of(order), loggers=[memory], autoresume=True, run_name="killed")
    counts: dict[str, int] = {}
    fire, begun = trainer.engine.fire, trainer.state.timestamp.batch
    digests = os.open(Path(order.folder) / "batches.txt", os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def watched(event: Event) -> None:
        counts[event] = counts.get(event, 0) + 1
        if event is Event.BATCH_START:
            os.write(digests, f"{trainer.state.timestamp.batch} {digest(trainer.state.batch)}\n".encode())
        if event == order.event and counts[event] == order.count:
            os.write(reached, b"!")
        fire(event)

    trainer.engine.fire = watched
    with trainer:
        trainer.fit()
    rows = [row for row in memory.rows if row[0].startswith(("train/", "eval/", "lr"))]
    return {"parts": parts_of(trainer), "rows": rows, "counts": counts, "begun": begun}


def parts_of(trainer: Trainer) -> dict[str, Any]:
    """Weights, optimizer, methods, callbacks, generators, place in the data, counters, metrics."""
    state = trainer.state
    clocked = {"clocks", *(f"callbacks/{name}" for name in CLOCKED)}
    parts = {name: part.state_dict() for name, part in state.stateful.items() if name not in clocked}
    for name in ("train_s", "cpu_s", "wall_s", "epoch_began_s", "fit_starts"):
        parts["training"].pop(name)
    for name in ("timestamp", "previous_timestamp"):
        parts["training"][name].pop("train_s")
    return parts


def digest(batch: Any) -> str:
    return hashlib.sha256(b"".join(part.contiguous().numpy().tobytes() for part in batch)).hexdigest()[:16]


def serve() -> None:
    """Answer orders until there are no more: how each training ended."""
    for line in sys.stdin:
        order = Order(**json.loads(line))
        Path(order.folder).mkdir(parents=True, exist_ok=True)
        reached, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reached)
            child(order, write)
        os.close(write)
        if select.select([reached], [], [])[0] and os.read(reached, 1):  # nothing to read where it ended
            time.sleep(order.delay_s)
            os.kill(pid, signal.SIGKILL)
        os.close(reached)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # loader workers would notice by themselves, after 5 s
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


def child(order: Order, reached: int) -> None:
    """One training, from fork to exit; what it gives lies in its folder."""
    code, folder = 1, Path(order.folder)
    try:
        os.setsid()
        output = os.open(folder / "output.txt", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        for standard in (1, 2):
            os.dup2(output, standard)
        torch.save(run(order, reached), folder / "result.pt")
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


class Server:
    """The server, from the side of a test."""

    def __init__(self) -> None:
        given = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen([sys.executable, "-m", "tests.trainer.kill_anywhere"], cwd=ROOT, text=True,
                                         env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip

    def train(self, order: Order) -> int:
        """The exit code of the training, -9 where it was killed."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


if __name__ == "__main__":
    serve()
