"""torch's learning-rate schedulers as pure functions of how often they were stepped, and under a scale-schedule ratio.

A scheduler of torch keeps count and writes rates into its optimizer; here its settings are read and nothing else, so
any step can be asked for in any order, and a resumed training needs no state of it. Values are torch's to rounding.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    SequentialLR,
    StepLR,
)

from expkit.duration import Time, TimeUnit
from expkit.errors import UsageError
from expkit.functional.schedules import cosine_restarts, every_step, exponential, half_cosine, linear, multi_step


@dataclass(frozen=True)
class TorchSchedule:
    """A scheduler of torch as functions of (count, group): how often it was stepped, which group of the optimizer."""

    name: str
    factor: Callable[[int, int], float]
    """What the group's initial_lr is multiplied with."""
    momentum: Callable[[int, int], float] | None
    """The momentum, or the first of the betas, where it cycles along."""
    last: int | None
    """The count at which torch would refuse to go on."""


def torch_schedule(scheduler: LRScheduler, ssr: float = 1.0) -> TorchSchedule:
    """The functions of a scheduler under a ratio, from the count it has; UsageError for a class that is none of ours.

    The scheduler itself stays as it is. A count beyond the end of OneCycleLR has its last rate.
    """
    scaled = _copied(scheduler)
    scale_pytorch_scheduler(scaled, ssr)
    started = scaled.last_epoch
    ends = isinstance(scaled, OneCycleLR)
    cycles = ends and scaled.cycle_momentum
    return TorchSchedule(
        name=type(scheduler).__name__,
        factor=lambda count, group: _factor(scaled, started + count, group),
        momentum=(lambda count, group: _in_cycle(scaled, started + count, group, "momentum")) if cycles else None,
        last=scaled.total_steps - started if ends else None,
    )


def scale_pytorch_scheduler(scheduler: LRScheduler, ssr: float) -> None:
    """Make a scheduler of torch `ssr` times as long, in place; for a loop of your own that then steps it.

    Lengths are whole steps: halves are rounded up, nothing becomes shorter than 1, milestones may fall together and
    then count twice. ExponentialLR falls as far over the scaled length. UsageError for a class that is none of ours.
    """
    _known(scheduler)[1](scheduler, ssr)


def _copied(scheduler: LRScheduler) -> Any:
    """A scheduler of its own to scale, down to the parts of SequentialLR; the optimizer is the same."""
    _known(scheduler)
    twin: Any = copy.copy(scheduler)
    if isinstance(scheduler, SequentialLR):
        twin._schedulers = [_copied(part) for part in scheduler._schedulers]
    if isinstance(scheduler, OneCycleLR):
        twin._schedule_phases = [dict(phase) for phase in scheduler._schedule_phases]
    return twin


def _factor(scheduler: Any, count: int, group: int) -> float:
    return _known(scheduler)[0](scheduler, count, group)


def _known(scheduler: Any) -> tuple[Callable[[Any, int, int], float], Callable[[Any, float], None]]:
    if type(scheduler) not in _KINDS:
        names = ", ".join(kind.__name__ for kind in _KINDS)
        raise UsageError(
            f"{type(scheduler).__name__} cannot be used: of torch's schedulers there are {names}; see also "
            f"expkit.schedulers, or give a function of the step"
        )
    return _KINDS[type(scheduler)]


def _step(s: StepLR, count: int, group: int) -> float:
    return every_step(count, s.step_size, s.gamma)


def _multi_step(s: MultiStepLR, count: int, group: int) -> float:
    return multi_step(count, s.milestones.elements(), s.gamma)


def _exponential(s: ExponentialLR, count: int, group: int) -> float:
    return exponential(count, 1, s.gamma)


def _linear(s: LinearLR, count: int, group: int) -> float:
    return linear(count, 0, s.total_iters, s.start_factor, s.end_factor)


def _cosine(s: CosineAnnealingLR, count: int, group: int) -> float:
    """Beyond `T_max` it rises again, as torch's does."""
    return half_cosine(count / s.T_max, _floor(s, group))


def _restarts(s: CosineAnnealingWarmRestarts, count: int, group: int) -> float:
    return cosine_restarts(count, s.T_0, s.T_mult, _floor(s, group))


def _floor(s: CosineAnnealingLR | CosineAnnealingWarmRestarts, group: int) -> float:
    return s.eta_min / float(s.base_lrs[group]) if s.eta_min else 0.0


def _one_cycle(s: Any, count: int, group: int) -> float:
    return _in_cycle(s, count, group, "lr") / float(s.base_lrs[group])


def _in_cycle(s: Any, count: int, group: int, what: str) -> float:
    """The rate (`lr`) or `momentum` of a group; torch keeps what a phase goes between in the optimizer's groups."""
    phases = s._schedule_phases
    at = sum(count > phase["end_step"] for phase in phases[:-1])
    start, end = phases[at - 1]["end_step"] if at else 0.0, phases[at]["end_step"]
    share = min(1.0, (count - start) / (end - start))
    first, last = (s.optimizer.param_groups[group][phases[at][f"{side}_{what}"]] for side in ("start", "end"))
    cosine = s._anneal_func_type == "cos"
    return float(last + (first - last) * (half_cosine(share, 0.0) if cosine else 1 - share))


def _sequential(s: Any, count: int, group: int) -> float:
    part = bisect_right(s._milestones, count)
    return _factor(s._schedulers[part], count - (s._milestones[part - 1] if part else 0), group)


def _scale_step(s: StepLR, ssr: float) -> None:
    s.step_size = _count(s.step_size, ssr)


def _scale_multi_step(s: MultiStepLR, ssr: float) -> None:
    s.milestones = Counter(_count(at, ssr) for at in s.milestones.elements())


def _scale_exponential(s: ExponentialLR, ssr: float) -> None:
    s.gamma = math.pow(s.gamma, 1 / ssr)


def _scale_linear(s: LinearLR, ssr: float) -> None:
    s.total_iters = _count(s.total_iters, ssr)


def _scale_cosine(s: CosineAnnealingLR, ssr: float) -> None:
    s.T_max = _count(s.T_max, ssr)


def _scale_restarts(s: Any, ssr: float) -> None:
    s.T_0 = s.T_i = _count(s.T_0, ssr)


def _scale_one_cycle(s: Any, ssr: float) -> None:
    total = _count(s.total_steps, ssr)
    for index, phase in enumerate(s._schedule_phases):  # torch has them end at share * total - 1, the middle one at - 2
        before = 2 if 0 < index < len(s._schedule_phases) - 1 else 1
        phase["end_step"] = (phase["end_step"] + before) * total / s.total_steps - before
    s.total_steps = total


def _scale_sequential(s: Any, ssr: float) -> None:
    for part in s._schedulers:
        if isinstance(part, OneCycleLR):
            raise UsageError(
                "OneCycleLR cannot be a part of SequentialLR: the other parts would start from its rate; it has a "
                "warm-up of its own, see pct_start"
            )
        scale_pytorch_scheduler(part, ssr)
    s._milestones = [_count(at, ssr) for at in s._milestones]


def _count(length: int, ssr: float) -> int:
    return int(Time(length, TimeUnit.BATCH).scaled(ssr).value)


_KINDS: dict[type, tuple[Callable[[Any, int, int], float], Callable[[Any, float], None]]] = {
    StepLR: (_step, _scale_step),
    MultiStepLR: (_multi_step, _scale_multi_step),
    CosineAnnealingLR: (_cosine, _scale_cosine),
    CosineAnnealingWarmRestarts: (_restarts, _scale_restarts),
    ExponentialLR: (_exponential, _scale_exponential),
    LinearLR: (_linear, _scale_linear),
    SequentialLR: (_sequential, _scale_sequential),
    OneCycleLR: (_one_cycle, _scale_one_cycle),
}
