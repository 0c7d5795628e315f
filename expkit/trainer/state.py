"""State: everything that a moment of training consists of; a record that the loop writes and plug-ins read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch

from expkit.duration import Time, Timestamp
from expkit.errors import UsageError
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.calling import Calls
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.losses import logits_of
from expkit.trainer.schedule import OPEN_ENDED, Steps
from expkit.trainer.streams import generator

Precision = Literal["fp32", "amp_bf16", "amp_fp16"]


@dataclass(repr=False)
class State:
    """One training, now. Algorithms may change model, batch, outputs, loss; everybody may `stop`."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    loss_fn: Callable[[Any, Any], Any]
    """(outputs, targets) -> scalar, the mean over samples, or a tuple or dict of them; see `trainer/losses.py`."""
    dataloader: Any
    data: DataSpec
    """How batches are read now: those of the train loader, or of an evaluator while one is at work."""
    steps: Steps
    max_duration: Time
    """Scaled by the ssr."""
    seed: int
    device: torch.device
    precision: Precision = "fp32"
    rank: int = 0
    world_size: int = 1
    microbatch_size: int | None = None
    iteration_length: Time | None = None
    """Before the ssr; without one a fit is an iteration."""
    schedulers: list[Any] = field(default_factory=list)
    """What the learning rate is multiplied with; a method that needs a schedule appends it at INIT, in any form that
    `Trainer(schedulers=...)` takes."""
    algorithms: Mapping[str, Algorithm] = field(default_factory=dict)
    callbacks: Mapping[str, Callback] = field(default_factory=dict)

    timestamp: Timestamp = field(default_factory=Timestamp)
    previous_timestamp: Timestamp = field(default_factory=Timestamp)
    """Before the batch just done."""
    train_s: float = 0.0
    """The train clock at the last batch end or evaluation; `cpu_s`, `wall_s` likewise."""
    cpu_s: float = 0.0
    wall_s: float = 0.0

    batch: Any = None
    """As the loader gave it, on the device; the microbatch while one is worked on. See `inputs` and `targets`."""
    outputs: Any = None
    loss: Any = None
    """Scalar tensor: of the microbatch while one is worked on, of the whole batch (detached) afterwards."""
    losses: dict[str, Any] = field(default_factory=dict)
    """The parts of a loss that has some, by name, detached; of what `loss` is of."""
    microbatch: int = 0
    num_microbatches: int = 1
    train_loss: float = math.nan
    """The loss of the last batch as a number, where it was read (always on CPUs, with a logger elsewhere)."""
    eval_name: str | None = None
    """The evaluator at work, None while training."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The newest value of every series that metrics made, by name: `eval/accuracy`, `train/accuracy`."""
    stop_reason: str | None = None
    """Why training ended or is about to end before its duration; `diverged` where the loss was nan or inf."""
    error: BaseException | None = None
    """What ended the fit, for listeners to FIT_ERROR."""

    calls: Calls | None = None
    """How the model wants to be called, settled at the first batch."""
    batches: Iterator[Any] | None = None
    """The rest of the epoch that is under way."""
    evaluated_at: dict[str, int] = field(default_factory=dict)
    """Batches done at the last evaluation of each evaluator, by label."""

    run_name: str = ""
    """What the run is called in paths of checkpoints."""
    stateful: dict[str, Any] = field(default_factory=dict)
    """What a checkpoint holds: parts with state_dict() and load_state_dict(), by a name that stays the same."""
    config: dict[str, Any] = field(default_factory=dict)
    """What is trained, for the manifests of checkpoints; filled when the first is written or read."""
    resumed_from: str | None = None
    """The checkpoint that this training went on from by itself."""
    resuming: bool = False
    """Whether a checkpoint was taken up and no fit has gone on from there yet."""
    fit_starts: list[Timestamp] = field(default_factory=list)
    """Where each fit of this training began, of processes before this one as well."""
    fit_open: bool = False
    """Whether the last of them has not come to its end."""
    epoch_began_s: float = 0.0
    """`wall_s` where the epoch began."""

    def __repr__(self) -> str:  # of all fields it would be pages of numbers
        now = self.timestamp
        return (f"<State of {type(self.model).__name__} on {self.device}: epoch {now.epoch}, batch {now.batch} of "
                f"{self.max_duration}>")  # fmt: skip

    @property
    def inputs(self) -> Any:
        """What of the batch goes into the model; setting it makes a new batch, the loader keeps its own."""
        return self.data.layout.inputs(self.batch)

    @inputs.setter
    def inputs(self, inputs: Any) -> None:
        self.batch = self.data.layout.with_inputs(self.batch, inputs)

    @property
    def targets(self) -> Any:
        """What the outputs are compared with, None where the batch has none; set likewise."""
        return self.data.layout.targets(self.batch)

    @targets.setter
    def targets(self, targets: Any) -> None:
        self.batch = self.data.layout.with_targets(self.batch, targets)

    @property
    def logits(self) -> Any:
        """The outputs where they are a tensor; `logits` of a mapping, the first of a tuple."""
        return logits_of(self.outputs)

    @property
    def num_samples(self) -> int:
        """Samples of the batch, or of the microbatch while one is worked on."""
        return self.data.num_samples(self.batch)

    @property
    def max_steps(self) -> int:
        """Optimizer steps of the whole training, an estimate where its length is in seconds or tokens."""
        return self.steps.total

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""
        return self.steps.per_epoch

    @property
    def progress(self) -> float:
        """How much of the training is done, 0 to 1, moving inside epochs as well."""
        if self.max_duration.unit in OPEN_ENDED:
            return min(1.0, self.timestamp.get(self.max_duration.unit) / self.max_duration.value)
        return min(1.0, self.timestamp.batch / self.steps.total)

    def rng(self, purpose: str, *key: int) -> torch.Generator:
        """A fresh CPU generator seeded by (seed, purpose, key); key it by the batch: `rng("mixup", batch)`."""
        return generator(self.seed, purpose, *key)

    def scale_schedule(self, ratio: float) -> None:
        """Make training `ratio` times as long with all its durations, as a further ssr; for a method, at INIT."""
        if ratio <= 0:
            raise UsageError(f"a schedule is scaled by a positive ratio, but got {ratio}")
        self.max_duration = self.max_duration.scaled(ratio)
        self.steps = replace(self.steps, ssr=self.steps.ssr * ratio)  # the trainer counts the rest anew

    def stop(self, reason: str) -> None:
        """Ask training to end after the current batch; the first reason stays."""
        self.stop_reason = self.stop_reason or reason
