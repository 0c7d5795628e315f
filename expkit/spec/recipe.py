"""A recipe as frozen values, every default filled in: what a trial trains. A setting is explained under its field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from expkit.duration import Time, TimeUnit

COMPILE_MODES = ("default", "reduce-overhead", "max-autotune")
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Natural = Annotated[int, Field(ge=1)]


def _length(time: Time) -> Time:
    if time.unit in (TimeUnit.DURATION, TimeUnit.ITERATION) or time.value == 0:
        raise ValueError(f"must be positive, in ep, ba, sp, tok or sec, but got {time}")
    return time


def _interval(time: Time) -> Time:
    if time.value == 0:
        raise ValueError(f"must be positive, but got {time}")
    return time


def _intervals(given: Time | Mapping[str, Time]) -> Time | Mapping[str, Time]:
    if isinstance(given, Time):
        return _interval(given)
    for label, time in given.items():
        if time.value == 0:
            raise ValueError(f"{label} must be positive, but got {time}")
    return given


def is_device(name: str) -> bool:
    """Whether this is the name of a device, there or not."""
    return re.fullmatch(r"auto|cpu|mps|tpu|hpu|neuron|(gpu|cuda)(:\d+)?", name) is not None


def must_be_device(name: object) -> str:
    """What a device is, as the end of a sentence."""
    return (
        f"must be auto, cpu, gpu, cuda, mps, tpu, hpu or neuron, gpu and cuda also with a number as in cuda:1, but got "
        f"{name!r}"
    )


def _device(name: str) -> str:
    if not is_device(name):
        raise ValueError(must_be_device(name))
    return name


Intervals = Annotated[Time | Mapping[str, Time], AfterValidator(_intervals)]
EVAL_INTERVAL = Time(1, TimeUnit.EPOCH)
Length = Annotated[Time, AfterValidator(_length)]
Interval = Annotated[Time, AfterValidator(_interval)]


@dataclass(frozen=True)
class Component:
    """A plug-in, or code of the user's own, with its settings."""

    name: str
    """Plug-in name, or `py:package.module:name`."""
    label: str
    """What it is called in arms and reports: `as:`, or the name, or the last part of the import path in snake_case."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """JSON values with every default filled in, durations in canonical form; of `py:` components as written."""


@dataclass(frozen=True)
class Data:
    """What is trained on and what is evaluated on."""

    train: Component
    eval: Mapping[str, Component]
    """Evaluators by label, sorted; the only one of a recipe that gives none a label is called eval."""


@dataclass(frozen=True)
class Checkpoint:
    """When the state of training is saved, into the folder `checkpoints` of an attempt, and what of it stays.

    A trial that is interrupted saves as well, and running it again goes on from there; under `run.timing: exclusive` it
    starts over. Checkpoints change no bit of training and are not in a trial's id. `expkit plan` shows the disk they
    take.
    """

    every: Interval | None = None
    """Distance between two checkpoints; null saves at the end only."""
    keep: Literal["last", "best", "none"] = "none"
    """Which of them stay on disk: last, the newest one; best, also the best one in metrics.primary of those saved right
    after an evaluation; none, no checkpoint is written at all."""

    def __post_init__(self) -> None:
        if self.every is not None and self.keep == "none":
            raise ValueError(f"every is {self.every}, but keep is none, so nothing would be saved; use keep: last")


@dataclass(frozen=True)
class TrainerSettings:
    """How long and in which precision is trained."""

    max_duration: Length
    """Length of training before `ssr`, such as 2ep or 500ba."""
    ssr: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Scale-schedule ratio: scales every duration of the recipe."""
    precision: Literal["fp32", "amp_bf16", "amp_fp16"] = "fp32"
    """Number format of forward and backward passes; weights and steps stay fp32. amp_fp16 needs CUDA; amp_bf16 is many
    times slower than fp32 on processors without instructions for it."""
    compile: bool | Literal["default", "reduce-overhead", "max-autotune"] = False
    """Whether calls of the model are compiled by torch.compile, and in which mode; true is default."""
    activation_checkpointing: bool | tuple[str, ...] = False
    """Parts of the model that forget their activations and work them out again in the backward pass: names of modules
    or of their classes, `layers.*` or `Block`; true is the blocks that the model repeats. Less memory, more time."""
    microbatch: Natural | Literal["auto"] | None = None
    """Samples at once on one device: null is the whole batch, auto halves when memory runs out."""
    eval_interval: Intervals = field(default_factory=lambda: EVAL_INTERVAL)
    """Distance between two evaluations; epochs may be fractional. Of several evaluators one for all, or by label for
    some, {rotated: 1ep}; those that are not named have 1ep."""
    eval_subset_num_batches: Natural | Mapping[str, Natural] | None = None
    """Batches of an evaluation, from the first on; null is all there are. By label for some, likewise."""
    checkpoint: Checkpoint = field(default_factory=Checkpoint)


@dataclass(frozen=True)
class Primary:
    """The metric that arms are compared by."""

    name: str
    """As recorded, such as eval/accuracy; of an evaluator with a label, <label>/accuracy."""
    mode: Literal["max", "min"]
    """Whether more or less is better."""


@dataclass(frozen=True)
class Pilot:
    """The target is derived from baseline runs on seeds of their own."""

    seeds: Annotated[int, Field(ge=2)] = 5
    """Number of pilot runs."""
    rule: Literal["lowest_final", "gain_90", "gain_95", "gain_99"] = "lowest_final"
    """The worst final value among the pilot runs, or a share of their median gain in per cent, which is easier."""


@dataclass(frozen=True)
class Metrics:
    """What counts as good, and as good enough."""

    primary: Primary
    target: float | Pilot | None = None
    """A number is given, not derived; `{pilot: {}}` derives it; null asks for no time to target."""


@dataclass(frozen=True)
class Runtime:
    """What changes seconds or bits, but not the mathematics."""

    nproc: Natural = 1
    """Number of ranks."""
    threads: Natural = 1
    """CPU threads of each rank."""
    device: Annotated[str, AfterValidator(_device)] = "auto"
    """auto (cuda or mps where there is one, else cpu), cpu, gpu or cuda (also cuda:1), mps, tpu, hpu, neuron."""
    parallel: Literal["ddp"] = "ddp"
    """How ranks share the work."""


@dataclass(frozen=True)
class Recipe:
    """Everything that a trial needs to know."""

    name: Name
    model: Component
    data: Data
    optimizer: Component
    scheduler: Component | None
    algorithms: Mapping[str, Component]
    """By label, sorted; their order means nothing."""
    callbacks: Mapping[str, Component]
    trainer: TrainerSettings
    metrics: Metrics
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Every stream of random numbers is derived from it."""
    runtime: Runtime = field(default_factory=Runtime)
    allow: tuple[tuple[str, str], ...] = ()
    """Pairs of methods that may be on together although one of them declares that they exclude each other."""

    @property
    def components(self) -> tuple[Component, ...]:
        """All that a trial is put together from."""
        every = (self.model, self.data.train, *self.data.eval.values(), self.optimizer, self.scheduler,
                 *self.algorithms.values(), *self.callbacks.values())  # fmt: skip
        return tuple(component for component in every if component is not None)
