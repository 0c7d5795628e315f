"""Cases that run on one rank in the test's own process and on several in processes of their own (`tests.forks`).

Each case is a function without arguments; what it gives is saved as /folder/<case>-<rank>.pt.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from expkit import dist
from expkit.algorithms.ema import EMA
from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.errors import ExpkitError, Interruption
from expkit.functional.tensor_loader import TensorLoader
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.evaluator import Evaluator
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, Net, trainer, weights
from tests.trainer.hugging_face import ForCausalLM, sentences

Result = dict[str, Any]


def loader(num_samples: int, batch_size: int, *, shuffle: bool = True, double: bool = False) -> TensorLoader:
    draw = torch.Generator().manual_seed(1)
    inputs = torch.randn(num_samples, 8, generator=draw)
    targets = torch.randint(0, 4, (num_samples,), generator=draw)

    def order(epoch: int) -> torch.Tensor:
        return torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))

    return TensorLoader(inputs.double() if double else inputs, targets, batch_size, order=order if shuffle else None,
                        rank=dist.rank(), world_size=dist.world_size())  # fmt: skip


def seeded(cls: Any = Net) -> Any:
    torch.manual_seed(dist.rank())  # ranks start from the weights of rank 0
    return cls()


def fitted(model: nn.Module, **settings: Any) -> Result:
    memory = Memory()
    t = trainer(model, loggers=[memory], eval_dataloader=loader(13, 4, double=next(model.parameters()).dtype is
                torch.float64), eval_interval="3ba", **{"max_duration": "3ep", **settings})  # fmt: skip
    try:
        t.fit()
        error = None
    except Interruption as e:
        error = e
    parts = {name: memory.series(f"train/loss/{name}") for name in t.state.losses}
    return {**summary(t), "loss": memory.series("train/loss"), "accuracy": memory.series("eval/accuracy"),
            "parts": parts, "error": str(error) if error else None}  # fmt: skip


def summary(t: Trainer) -> Result:
    now = t.state.timestamp
    buffers = [b.double().flatten() for b in t.state.model.buffers()]
    return {"weights": weights(t), "sample": now.sample, "batch": now.batch, "epoch": now.epoch,
            "stop": t.state.stop_reason, "metrics": t.state.metrics, "effective": t.effective,
            "buffers": torch.cat(buffers) if buffers else None}  # fmt: skip


def uneven() -> Result:
    """21 samples, 6 a batch: 6 6 6 3."""
    return fitted(seeded().double(), train_dataloader=loader(21, 6, double=True))


def none_left() -> Result:
    """13 samples, 6 a batch: 6 6 1, of which rank 1 gets none."""
    return fitted(seeded().double(), train_dataloader=loader(13, 6, double=True))


def odd_batches() -> Result:
    """5 samples a batch: 3 and 2, 3 and 2, 2 and 1."""
    return fitted(seeded().double(), train_dataloader=loader(13, 5, double=True))


def microbatches() -> Result:
    return fitted(seeded().double(), train_dataloader=loader(21, 6, double=True), device_train_microbatch_size=2)


@dataclass
class Ends(Callback):
    """Batches after which an iteration ended."""

    seen: Any = field(default_factory=list, init=False)

    def iteration_end(self, state: Any, logger: Any) -> None:
        self.seen.append(state.timestamp.batch)


def outside_of_fit() -> Result:
    """Iterations by samples of all ranks; then an evaluation and a prediction on their own, 13 samples, 4 a batch."""
    ends, data = Ends(), loader(21, 6, double=True)
    t = trainer(seeded().double(), train_dataloader=data, train_subset_num_batches=3, iteration_length="20sp",
                callbacks=[ends], max_duration="3ep")  # fmt: skip
    t.fit()
    values = t.eval(loader(13, 4, double=True, shuffle=False))
    outputs = t.predict(loader(13, 4, double=True, shuffle=False))
    with contextlib.suppress(ZeroDivisionError):
        t.predict(Failing())
    return {**summary(t), "ends": ends.seen, "values": values, "outputs": torch.cat(outputs)}


class Failing:
    """A loader that breaks."""

    def __iter__(self) -> Any:
        yield torch.zeros(2, 8).double()
        raise ZeroDivisionError


def single_precision() -> Result:
    return fitted(seeded(), train_dataloader=loader(61, 12), max_duration="5ep")


def some() -> DataSpec:
    """Of the targets of four batches count 4, 1 of rank 1 alone, 3 of rank 0 alone, and 2."""
    data = loader(21, 6, shuffle=False, double=True)
    counted = [1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0]
    data._targets = data._targets.masked_fill(~torch.tensor(counted, dtype=torch.bool), -100)
    return DataSpec(data, weight_in_batch=lambda batch: (batch[1] != -100).sum())


def token_weights() -> Result:
    return fitted(seeded().double(), train_dataloader=some())


def token_weights_in_parts() -> Result:
    return fitted(seeded().double(), train_dataloader=some(), device_train_microbatch_size=1)


def named_losses() -> Result:
    def parts(outputs: Any, targets: Any) -> Any:
        return {"ce": nn.functional.cross_entropy(outputs, targets), "norm": outputs.square().mean(), "more": 2.0}

    return fitted(seeded().double(), train_dataloader=loader(13, 6, double=True), loss_fn=parts)


class Meeting:
    """A metric in the way of torchmetrics: it meets the other ranks itself when it is computed."""

    sync_context = None

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.sums = torch.zeros(2, dtype=torch.float64)

    def update(self, preds: Any, target: Any) -> None:
        self.sums += torch.tensor([float((preds.argmax(1) == target).sum()), len(target)], dtype=torch.float64)

    def compute(self) -> Any:
        sums = self.sums.clone()
        if dist.world_size() > 1:
            torch.distributed.all_reduce(sums)
        return {"share": sums[0] / sums[1], "count": sums[1]}


def metrics_that_meet() -> Result:
    data = [Evaluator("own", loader(13, 4, double=True), Meeting()), Evaluator("eval", loader(13, 4, double=True),
            eval_interval="2ba")]  # fmt: skip
    t = trainer(seeded().double(), train_dataloader=loader(13, 6, double=True), eval_dataloader=data)
    t.fit()
    return summary(t)


def default_metrics() -> Result:
    """Of 3 sentences, one a batch, the second rank has one; of the last evaluator's single one it has none."""
    mine = slice(dist.rank(), None, dist.world_size())
    model, [whole] = seeded(ForCausalLM).double(), sentences(sizes=(3,))
    own = [{name: part[i : i + 1] for name, part in whole.items()} for i in range(3)]
    evaluators = [Evaluator("all", own[mine]), Evaluator("one", own[:1][mine])]
    t = trainer(model, train_dataloader=own[mine], eval_dataloader=evaluators, max_duration="2ba",
                schedulers=lambda step: 0.0)  # fmt: skip
    t.fit()
    return summary(t)


def nothing_counts() -> Result:
    data = loader(12, 6)
    return fitted(seeded(), train_dataloader=DataSpec(data, weight_in_batch=lambda batch: 0))


def nothing_counts_in_parts() -> Result:
    data = DataSpec(loader(12, 6), weight_in_batch=lambda batch: 0)
    return fitted(seeded(), train_dataloader=data, device_train_microbatch_size=2)


def other_losses() -> Result:
    return sentence(loss_fn=lambda o, t: {f"rank{dist.rank()}": nn.functional.cross_entropy(o, t)})


def losses_that_come_and_go() -> Result:
    calls = iter(range(100))

    def later(outputs: Any, targets: Any) -> Any:
        loss = nn.functional.cross_entropy(outputs, targets)
        return loss if next(calls) < 2 else {"late": loss}

    return sentence(loss_fn=later)


class Partial(Net):
    """A layer that nothing uses: it has no gradient, and no decay."""

    def __init__(self) -> None:
        super().__init__()
        self.extra = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        for layer in list(self)[:4]:
            x = layer(x)
        return x


def unused() -> Result:
    model = seeded(Partial).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    t = Trainer(model=model, optimizers=optimizer, train_dataloader=loader(13, 6, double=True), max_duration="2ep",
                device="cpu")  # fmt: skip
    t.fit()
    return {**summary(t), "none": [p.grad is None for p in model.parameters()]}


class Normed(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
        self.register_buffer("own", torch.rand(3))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.own += x.mean()
        return super().forward(x)


def batch_norm() -> Result:
    return fitted(seeded(Normed), train_dataloader=loader(16, 6))


def methods() -> Result:
    return fitted(seeded().double(), train_dataloader=loader(21, 6, double=True),
                  algorithms=[EMA(half_life="3ba"), LabelSmoothing()])  # fmt: skip


def dropout() -> Result:
    return fitted(Net(0.3), train_dataloader=loader(24, 6))


def torch_loader() -> Result:
    data = torch.utils.data.TensorDataset(torch.randn(13, 8, generator=torch.Generator().manual_seed(2)).double(),
                                          torch.arange(13) % 4)  # fmt: skip
    size = 4 // dist.world_size()
    return fitted(seeded().double(), train_dataloader=torch.utils.data.DataLoader(
        data, size, sampler=dist.get_sampler(data, shuffle=True, seed=3)))  # fmt: skip


class Noisy(torch.utils.data.Dataset[Any]):
    """13 samples with noise from torch, python and numpy."""

    def __len__(self) -> int:
        return 13

    def __getitem__(self, index: int) -> Any:
        draw = torch.Generator().manual_seed(index)
        noise = torch.rand(8) + random.random() + float(np.random.rand())
        return (torch.randn(8, generator=draw) + noise).double(), index % 4


def noisy_loader(shuffle: bool = True, **settings: Any) -> Any:
    """4 samples a batch over all ranks: 4 4 4 1, of which the second of two ranks gets none."""
    data = Noisy()
    sampler = dist.get_sampler(data, shuffle=shuffle, seed=3)
    return torch.utils.data.DataLoader(data, 4 // dist.world_size(), sampler=sampler, **settings)


def noisy() -> Result:
    return fitted(seeded().double(), train_dataloader=noisy_loader())


def noisy_workers() -> Result:
    return fitted(seeded().double(), train_dataloader=noisy_loader(num_workers=1))


def distributed_sampler() -> Result:
    """DistributedSampler repeats a sample, so that each rank has 7."""
    data = Noisy()
    sampler = torch.utils.data.DistributedSampler(data, num_replicas=dist.world_size(), rank=dist.rank())
    batches = torch.utils.data.BatchSampler(sampler, 2, False)
    return fitted(seeded().double(), train_dataloader=torch.utils.data.DataLoader(data, batch_sampler=batches))


def resumed() -> Result:
    """Left after three batches of an epoch of four, of which this rank may have only three; another trainer goes on."""
    ask = Ask("interrupt")
    left = trainer(seeded().double(), train_dataloader=noisy_loader(), callbacks=[ask], max_duration="3ep")
    ask.trainer = left
    with contextlib.suppress(Interruption):
        left.fit()
    while left.state.timestamp.batch < 3:  # one rank alone is interrupted a batch earlier
        left.fit("1ba")
    t = trainer(seeded().double(), train_dataloader=noisy_loader(), max_duration="3ep")
    t.state.model.load_state_dict(left.state.model.state_dict())
    t.state.optimizer.load_state_dict(left.state.optimizer.state_dict())
    t.state.timestamp = left.state.timestamp
    t.fit()
    return summary(t)


@dataclass
class Ask(Callback):
    """Rank 1 alone asks, at batch 2."""

    how: str = "stop"
    trainer: Any = field(default=None, init=False)

    def batch_end(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch == 2 and state.rank == state.world_size - 1:
            if self.how == "stop":
                state.stop("enough")
            else:
                self.trainer.request_stop("SIGTERM")


@dataclass
class Declared(Ask):
    changes_training = True


def stop_declared() -> Result:
    return fitted(seeded(), train_dataloader=loader(21, 6), callbacks=[Declared()])


def stop_undeclared() -> Result:
    return fitted(seeded(), train_dataloader=loader(21, 6), callbacks=[Ask()])


def interrupted() -> Result:
    ask = Ask("interrupt")
    t = trainer(seeded(), train_dataloader=loader(21, 6), callbacks=[ask])
    ask.trainer = t
    try:
        t.fit()
    except Interruption as e:
        return {**summary(t), "error": str(e), "code": e.exit_code}
    return summary(t)


def diverged() -> Result:
    data = loader(21, 6, shuffle=False)
    data._inputs[7] = float("nan")  # one sample of one rank
    return fitted(seeded(), train_dataloader=data)


def seconds() -> Result:
    class Slow(Net):
        def forward(self, x: Any) -> Any:
            time.sleep(0.004 * dist.rank())
            return super().forward(x)

    return fitted(seeded(Slow), train_dataloader=loader(21, 6), max_duration="0.4sec")


@dataclass
class OnlyOne(Algorithm):
    def batch_end(self, state: Any, logger: Any) -> None:
        self.effective = state.rank == 1


def effective_anywhere() -> Result:
    return fitted(seeded(), train_dataloader=loader(21, 6), algorithms=[OnlyOne()])


def sentence(**settings: Any) -> Result:
    started_s = time.monotonic()
    try:
        t = trainer(settings.pop("model", None) or seeded(), **{"train_dataloader": loader(60, 6), **settings})
        t.fit()
    except ExpkitError as e:
        return {"error": str(e), "kind": type(e).__name__, "seconds": time.monotonic() - started_s}
    return {"error": None}


def refused_loader() -> Result:
    data = torch.utils.data.TensorDataset(*next(iter(loader(12, 12))))
    return sentence(train_dataloader=torch.utils.data.DataLoader(data, 4, shuffle=True))


def refused_sampler() -> Result:
    data = torch.utils.data.TensorDataset(*next(iter(loader(12, 12))))
    sampler = torch.utils.data.WeightedRandomSampler([1.0] * 12, 12)
    batches = torch.utils.data.BatchSampler(sampler, 4, False)
    return sentence(train_dataloader=torch.utils.data.DataLoader(data, batch_sampler=batches))


def refused_auto() -> Result:
    return sentence(device_train_microbatch_size="auto")


def other_model() -> Result:
    return sentence(model=Net() if dist.rank() == 0 else Partial())


class Fails(Callback):
    def after_forward(self, state: Any, logger: Any) -> None:
        if state.rank == 1 and state.timestamp.batch == 3:
            raise ExpkitError("the disk of rank 1 is full")


def one_fails() -> Result:
    return sentence(callbacks=[dataclass(Fails)()])


class Dies(Callback):
    def after_forward(self, state: Any, logger: Any) -> None:
        if state.rank == 1 and state.timestamp.batch == 3:
            os.kill(os.getpid(), signal.SIGKILL)


def one_dies() -> Result:
    return sentence(callbacks=[dataclass(Dies)()])


class Hangs(Callback):
    def after_forward(self, state: Any, logger: Any) -> None:
        if state.rank == 1 and state.timestamp.batch == 3:
            time.sleep(9)


def one_hangs() -> Result:
    return sentence(callbacks=[dataclass(Hangs)()])


def main(folder: Path, names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    dist.initialize(store=f"file://{folder}/store", timeout_s=float(os.environ.get("TIMEOUT_S", "60")))
    rank = dist.rank()
    for name in names:
        torch.save(globals()[name](), folder / f"{name}-{rank}.pt")
    dist.shutdown()
