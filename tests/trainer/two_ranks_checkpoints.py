"""Checkpoints on two ranks, in processes of their own (`tests.forks`).

Each case is a function of a folder that both ranks share; what it gives is saved as /folder/<case>-<rank>.json.
"""

from __future__ import annotations

import json
import random
import resource
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from expkit import dist
from expkit.algorithms.ema import EMA
from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.errors import ExpkitError, Interruption
from expkit.launch.failure import cause_of
from expkit.trainer.callback import Callback
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, Net, trainer, weights
from tests.trainer.resuming import assert_equal, fingerprint
from tests.trainer.two_ranks import loader

Result = dict[str, Any]


class Drifting(Net):
    """A buffer that is another on each rank, and draws that advance each rank's generators differently."""

    def __init__(self) -> None:
        super().__init__(0.2)
        self.register_buffer("own", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.own += x.mean() * torch.arange(3)
            for _ in range(1 + dist.rank()):
                noise = random.gauss(0, 0.1) + float(np.random.standard_normal()) * 0.1
            x = x + noise
        return super().forward(x)


@dataclass
class Ask(Callback):
    """The last rank alone asks for an end, at batch 3."""

    trainer: Any = field(default=None, init=False)

    def batch_end(self, state: Any, logger: Any) -> None:
        if self.trainer is not None and state.timestamp.batch == 3 and state.rank == state.world_size - 1:
            self.trainer.request_stop("SIGTERM")


def made(folder: Path | str, interval: str | None = "2ba", ask: Ask | None = None, **settings: Any) -> Any:
    """21 samples, 6 a batch, of which the last has 3; each rank has its own model until they meet."""
    torch.manual_seed(dist.rank())
    memory = Memory()
    saver = CheckpointSaver(folder=str(folder), save_interval=interval)
    t = trainer(Drifting(), train_dataloader=loader(21, 6), eval_dataloader=loader(13, 4), eval_interval="3ba",
                max_duration="3ep", algorithms=[EMA(half_life="3ba")], loggers=[memory],
                callbacks=[saver, ask or Ask()], **settings)  # fmt: skip
    if ask:
        ask.trainer = t
    return t, memory


def same(a: Trainer, b: Trainer) -> str:
    try:
        assert_equal(fingerprint(a.state), fingerprint(b.state))
    except AssertionError as e:
        return f"differs at {e}"
    return "same"


def resumed_anywhere(folder: Path) -> Result:
    whole, rows = made(folder / "run")
    with whole:
        whole.fit()
    found = {}
    for address in whole.saved_checkpoints:
        t, memory = made(folder / "again" / Path(address).name, load_path=address)
        cut = t.state.timestamp.batch
        if t.state.progress < 1:
            t.fit()
        after = [row for row in rows.rows if row[1] > cut]
        found[cut] = [same(t, whole), "same" if memory.rows == after else "other numbers"]
    return {"found": found, "own": whole.state.model.own.tolist(), "weights": float(weights(whole).sum())}


def interrupted(folder: Path) -> Result:
    whole, _ = made(folder / "whole")
    whole.fit()
    left, _ = made(folder / "cut", None, Ask())
    try:
        left.fit()
        said = "nothing"
    except Interruption as e:
        said = str(e)
    t, _ = made(folder / "cut", None, autoresume=True)
    cut = t.state.timestamp.batch
    t.fit()
    return {"said": said, "cut": cut, "same": same(t, whole)}


def damaged(folder: Path) -> Result:
    t, _ = made(folder / "damaged")
    t.fit()
    dist.barrier()
    if dist.rank() == 0:
        (folder / "damaged" / "ep3-ba12" / "rank1.json").write_text("{}")
    dist.barrier()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again, _ = made(folder / "damaged", autoresume=True)
    return {"batch": again.state.timestamp.batch, "warnings": [str(w.message) for w in caught]}


@dataclass
class Odd(Callback):
    def state_dict(self) -> dict[str, Any]:
        return {"odd": {1, 2}} if dist.rank() == 1 else {}


def sentence(action: Any) -> Result:
    try:
        action()
    except ExpkitError as e:
        return {"error": str(e), "kind": type(e).__name__, "cause": cause_of(e)}
    return {"error": None}


def one_cannot_write(folder: Path) -> Result:
    t = trainer(Drifting(), train_dataloader=loader(21, 6), callbacks=[Odd()])
    said = sentence(lambda: t.save_checkpoint(folder / "odd" / "c"))
    return {**said, "left": sorted(p.name for p in (folder / "odd").iterdir()) if dist.rank() == 0 else []}


def one_has_no_disk(folder: Path) -> Result:
    t, _ = made(folder / "full")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000 if dist.rank() == 1 else before[0], before[1]))
    try:
        return sentence(lambda: t.save_checkpoint(folder / "full" / "c"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def nobody_can(folder: Path) -> Result:
    """The last of all: ranks that fail in a fit part."""
    if dist.rank() == 0:
        (folder / "notes").write_text("mine")
    return sentence(made(folder / "notes")[0].fit)


def one_does_not_fit(folder: Path) -> Result:
    saved, _ = made(folder / "fit")
    path = saved.save_checkpoint(folder / "fit" / "c")
    narrow = torch.nn.Sequential(torch.nn.Linear(8, 3))
    return sentence(lambda: trainer(Drifting() if dist.rank() == 0 else narrow, train_dataloader=loader(21, 6),
                                    load_path=path, load_weights_only=True))  # fmt: skip


def of_one_rank(folder: Path) -> Result:
    """Saved by one rank; two go on, each with generators of its own."""
    t, _ = made(folder / "elsewhere", load_path=folder / "of_one")
    before = t.state.timestamp.batch
    t.fit()
    return {"before": before, "batch": t.state.timestamp.batch, "weights": float(weights(t).sum())}


def uploaded(folder: Path) -> Result:
    """`local://` is a URI like any other."""
    with made(f"local://{folder}/remote")[0] as t:
        t.fit()
    dist.barrier()
    again, _ = made(f"local://{folder}/remote", autoresume=True)
    return {"batch": again.state.timestamp.batch, "same": same(again, t), "saved": len(t.saved_checkpoints)}


def main(folder: Path, names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    dist.initialize(store=f"file://{folder}/store", timeout_s=60)
    for name in names:
        (folder / f"{name}-{dist.rank()}.json").write_text(json.dumps(globals()[name](folder)))
    dist.shutdown()
