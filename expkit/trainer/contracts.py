"""Contracts of the plug-ins that a training is built from: model, data, optimizer, schedule, metric. No torch here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

from expkit.duration import Time, TimeUnit
from expkit.functional.schedules import require_steps
from expkit.plugins import Plugin
from expkit.trainer.schedule import Steps


class Model(Plugin):
    """Settings of a model.

    The module may define, each by itself:
    `loss(outputs, targets)`, or `loss(outputs, batch)`: a scalar tensor, the mean over samples, that takes class ids or
    soft targets; or a tuple or dict of scalars (trainer/losses.py). Without it: cross entropy, or the loss that outputs
    bring along. One that takes `reduction="none"` as well is quicker to ask for each sample's.
    `metrics()`: a dict of Metric by name; without it those that fit its outputs (trainer/default_metrics.py).
    `train_metrics()`: the same for the callback train_metrics, where they are others.
    `eval_forward(batch, outputs=None)` and `update_metric(batch, outputs, metric)` for evaluations of another kind
    (trainer/calling.py), `flops_per_batch(batch)` for monitors.
    """

    def build(self) -> Any:
        """A new torch.nn.Module; drawn from torch's default generator, which the caller has seeded."""
        raise NotImplementedError


@runtime_checkable
class Loader(Protocol):
    """Batches of one rank, epoch by epoch. A torch DataLoader will do as well; then the trainer seeds each epoch.

    `iter_from(batch)`, if there is one, gives the epoch from that batch on at once; without it, and without
    `state_dict` and `load_state_dict`, a resumed training reads the loader up to there again.
    """

    batch_size: int
    """Samples of a full batch on this rank; the last one of an epoch may be smaller."""
    num_samples: int
    """Samples of an epoch on this rank."""

    def set_epoch(self, epoch: int) -> None:
        """The next pass is that of this epoch; all that it draws is keyed by (seed, purpose, epoch) alone."""
        ...

    def __len__(self) -> int:
        """Batches of an epoch."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Dataset(Plugin):
    """Settings of a data set with its batches."""

    def build(self, *, seed: int, rank: int, world_size: int) -> Loader:
        """The loader of one rank of `world_size`; `batch_size` in a recipe is global."""
        raise NotImplementedError


class Optimizer(Plugin):
    """Settings of an optimizer."""

    def build(self, params: Iterable[Any]) -> Any:
        """A torch.optim.Optimizer over parameters or parameter groups."""
        raise NotImplementedError


class Scheduler(Plugin):
    """Settings of a learning-rate schedule."""

    def factor(self, step: int, steps: Steps) -> float:
        """What step `step` (from 0) multiplies the learning rate with; a pure function. `steps.of(time)` converts."""
        raise NotImplementedError

    def doubt(self, steps: Steps) -> str | None:
        """A sentence where it can hardly be meant for a training of these steps; asked once, before the first."""
        return None


@dataclass
class WarmScheduler(Scheduler):
    """Settings of a schedule that may begin with a warm-up."""

    warmup: Time = field(default=Time(0, TimeUnit.DURATION), kw_only=True)
    """Span over which the rate rises in a straight line: step k of W trains at (k + 1) / W of the full rate."""
    scale_warmup: bool = field(default=True, kw_only=True)
    """Whether the ssr scales the warm-up as it does all durations; one in dur scales with the training anyway."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in fields(self):
            value = getattr(self, setting.name)
            for time in value if isinstance(value, tuple) else (value,):
                if isinstance(time, Time):
                    require_steps(setting.name, time)
                    if time.value == 0 and setting.name != "warmup":
                        raise ValueError(f"{setting.name} must be positive, but got {time}")

    def doubt(self, steps: Steps) -> str | None:
        if self.num_warmup(steps) <= steps.total:
            return None
        return (
            f"warmup={self.warmup} of {type(self).__name__} is {self.num_warmup(steps)} steps, but training takes "
            f"{steps.total}: the full learning rate is never reached"
        )

    def num_warmup(self, steps: Steps) -> int:
        """Steps of the warm-up."""
        return round(steps.of(self.warmup, scale=self.scale_warmup))


class Metric(Plugin):
    """A number over many batches, weighted by samples, never a mean of batch means.

    One that must see more than outputs and targets may define `update_from(state)` besides, which is then called.
    """

    def reset(self) -> None:
        """Forget everything seen."""
        raise NotImplementedError

    def update(self, outputs: Any, targets: Any) -> None:
        """Take in one batch: outputs (B, C, ...) and targets, class ids (B, ...) or soft (B, C, ...)."""
        raise NotImplementedError

    def compute(self) -> float:
        """The value over everything since `reset`; NaN where that is nothing."""
        raise NotImplementedError

    def totals(self) -> list[float]:
        """What was added up since `reset`, sums and counts, so that ranks can add theirs; always as many numbers."""
        raise NotImplementedError

    def set_totals(self, totals: list[float]) -> None:
        """Go on as if these sums and counts had been seen, which are those of all ranks."""
        raise NotImplementedError
