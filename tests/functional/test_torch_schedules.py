"""torch's schedulers as functions, against the schedulers themselves stepped by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler as schedulers

import expkit
from expkit.errors import UsageError
from expkit.functional.torch_schedules import scale_pytorch_scheduler, torch_schedule

STEPS = 60
Made = Callable[[torch.optim.Optimizer], Any]


def one_cycle(o: torch.optim.Optimizer, **settings: Any) -> Any:
    given: dict[str, Any] = {"max_lr": [0.5, 0.05], "total_steps": STEPS, **settings}
    return schedulers.OneCycleLR(o, **given)


def sequence(o: torch.optim.Optimizer, milestones: list[int], *made: Made) -> Any:
    return schedulers.SequentialLR(o, [make(o) for make in made], milestones)


Seen = list[list[tuple[float, float]]]
MADE: dict[str, Made] = {
    "step": lambda o: schedulers.StepLR(o, 7, 0.5),
    "multi_step": lambda o: schedulers.MultiStepLR(o, [30, 10, 10, 59], 0.3),
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, STEPS),
    "cosine_floor": lambda o: schedulers.CosineAnnealingLR(o, 40, eta_min=0.003),
    "cosine_up_again": lambda o: schedulers.CosineAnnealingLR(o, 13),
    "restarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, 11),
    "restarts_growing": lambda o: schedulers.CosineAnnealingWarmRestarts(o, 5, 2, eta_min=0.002),
    "exponential": lambda o: schedulers.ExponentialLR(o, 0.93),
    "linear": lambda o: schedulers.LinearLR(o, 0.1, 1.0, 20),
    "linear_down": lambda o: schedulers.LinearLR(o, 1.0, 0.0, STEPS),
    "one_cycle": one_cycle,
    "one_cycle_linear": lambda o: one_cycle(o, anneal_strategy="linear", pct_start=0.45, div_factor=10.0),
    "one_cycle_three": lambda o: one_cycle(o, three_phase=True, pct_start=0.37, final_div_factor=100.0),
    "one_cycle_steady": lambda o: one_cycle(o, cycle_momentum=False, pct_start=0.0),
    "warm_cosine": lambda o: sequence(
        o, [8], lambda o: schedulers.LinearLR(o, 0.1, 1.0, 8), lambda o: schedulers.CosineAnnealingLR(o, STEPS - 8)
    ),
    "cut_short": lambda o: sequence(
        o,
        [5, 20, 33],
        lambda o: schedulers.LinearLR(o, 0.1, 1.0, 8),
        lambda o: schedulers.StepLR(o, 4, 0.5),
        lambda o: schedulers.CosineAnnealingWarmRestarts(o, 6),
        lambda o: schedulers.MultiStepLR(o, [3, 9], 0.1),
    ),
}


def optimizer(kind: str = "sgd") -> torch.optim.Optimizer:
    groups = [
        {"params": [torch.nn.Parameter(torch.ones(1))]},
        {"params": [torch.nn.Parameter(torch.ones(1))], "lr": 0.02},
    ]
    return torch.optim.SGD(groups, lr=0.1, momentum=0.9) if kind == "sgd" else torch.optim.AdamW(groups, lr=0.1)


def by_hand(make: Made, *, steps: int = STEPS, ssr: float = 1.0, kind: str = "sgd") -> Seen:
    """(rate, momentum) of both groups at each step, the scheduler stepped as torch wants it."""
    o = optimizer(kind)
    scheduler = make(o)
    if ssr != 1:
        scale_pytorch_scheduler(scheduler, ssr)
    seen = []
    for _ in range(steps):
        seen.append([(g["lr"], g["momentum"] if kind == "sgd" else g["betas"][0]) for g in o.param_groups])
        o.step()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The epoch parameter")
            scheduler.step()
    return seen


def as_functions(make: Made, *, steps: int = STEPS, ssr: float = 1.0, kind: str = "sgd") -> Seen:
    """The same from the functions, asked backwards."""
    o = optimizer(kind)
    schedule = torch_schedule(make(o), ssr)
    momentum = schedule.momentum or (lambda count, group: 0.9)
    return [
        [(g["initial_lr"] * schedule.factor(k, i), momentum(k, i)) for i, g in enumerate(o.param_groups)]
        for k in reversed(range(steps))
    ][::-1]


def largest_difference(a: Seen, b: Seen) -> float:
    flat = [[x for step in steps for group in step for x in group] for steps in (a, b)]
    return max(abs(x - y) for x, y in zip(*flat, strict=True))


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_rates_and_momenta_are_torchs_to_1e_12(name: str, kind: str) -> None:
    assert largest_difference(by_hand(MADE[name], kind=kind), as_functions(MADE[name], kind=kind)) < 1e-12


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("ssr", [0.25, 0.5, 1.7])
def test_under_an_ssr_what_the_scaled_scheduler_does_by_hand(name: str, ssr: float) -> None:
    steps = int(STEPS * ssr)
    hand, functions = by_hand(MADE[name], steps=steps, ssr=ssr), as_functions(MADE[name], steps=steps, ssr=ssr)
    assert largest_difference(hand[1:], functions[1:]) < 1e-12  # the first was written before it was scaled


@pytest.mark.parametrize("name", sorted({*MADE} - {"cut_short"}))
def test_at_twice_the_length_the_same_rates_are_passed(name: str) -> None:
    short, long = as_functions(MADE[name]), as_functions(MADE[name], steps=2 * STEPS, ssr=2.0)
    near = 0.03 if "one_cycle" in name or name == "warm_cosine" else 1e-12  # torch ends phases a step early
    assert largest_difference(short, long[::2]) < near


@pytest.mark.parametrize(
    ("name", "ssr", "settings"),
    [
        ("step", 0.5, {"step_size": 4}),
        ("step", 0.01, {"step_size": 1}),
        ("multi_step", 0.5, {"milestones": {5: 2, 15: 1, 30: 1}}),
        ("multi_step", 0.01, {"milestones": {1: 4}}),
        ("cosine", 0.25, {"T_max": 15}),
        ("restarts", 2.0, {"T_0": 22, "T_i": 22}),
        ("exponential", 0.5, {"gamma": pytest.approx(0.93**2)}),
        ("linear", 0.25, {"total_iters": 5}),
        ("one_cycle", 0.5, {"total_steps": 30}),
        ("cut_short", 2.0, {"_milestones": [10, 40, 66]}),
    ],
)
def test_lengths_are_scaled_to_whole_steps_of_at_least_one(name: str, ssr: float, settings: dict[str, Any]) -> None:
    scheduler = MADE[name](optimizer())
    expkit.functional.scale_pytorch_scheduler(scheduler, ssr)
    assert {key: getattr(scheduler, key) for key in settings} == settings


def test_the_scheduler_that_was_given_stays_as_it_is() -> None:
    for make in MADE.values():
        o = optimizer()
        scheduler = make(o)
        before = [scheduler.state_dict(), [dict(g, params=None) for g in o.param_groups]]
        text = repr(before)
        torch_schedule(scheduler, 0.5).factor(7, 1)
        assert repr([scheduler.state_dict(), [dict(g, params=None) for g in o.param_groups]]) == text


def test_a_scheduler_that_was_stepped_goes_on_from_there() -> None:
    o = optimizer()
    scheduler = schedulers.StepLR(o, 5, 0.5)
    o.step()
    for _ in range(4):
        scheduler.step()
    assert [torch_schedule(scheduler).factor(k, 0) for k in range(3)] == [1.0, 0.5, 0.5]


def test_one_cycle_says_where_it_ends_and_stays_there() -> None:
    schedule = torch_schedule(one_cycle(optimizer(), total_steps=10))
    assert schedule.last == 10
    assert schedule.factor(10, 0) == schedule.factor(99, 0) == pytest.approx(1e-4)
    assert torch_schedule(schedulers.StepLR(optimizer(), 3)).last is None


@pytest.mark.parametrize(
    "make",
    [
        lambda o: schedulers.LambdaLR(o, lambda k: 1.0), lambda o: schedulers.PolynomialLR(o),
        lambda o: schedulers.ConstantLR(o), lambda o: schedulers.CyclicLR(o, 0.1, 0.2),
        lambda o: schedulers.MultiplicativeLR(o, lambda k: 1.0), lambda o: schedulers.ReduceLROnPlateau(o),
        lambda o: schedulers.ChainedScheduler([schedulers.StepLR(o, 3)]),
        lambda o: sequence(o, [3], lambda o: schedulers.StepLR(o, 3), lambda o: schedulers.ConstantLR(o)),
        lambda o: type("OwnLR", (schedulers.StepLR,), {})(o, 3),
    ],
)  # fmt: skip
def test_any_other_class_is_refused_by_its_name(make: Made) -> None:
    scheduler = make(optimizer())
    name = "ConstantLR" if isinstance(scheduler, schedulers.SequentialLR) else type(scheduler).__name__
    for use in (torch_schedule, scale_pytorch_scheduler):
        with pytest.raises(
            UsageError, match=f"{name} cannot be used: of torch's schedulers there are StepLR, MultiStepLR"
        ):
            use(scheduler, 0.5)


def test_one_cycle_within_a_sequence_is_refused_because_it_changes_the_rate_of_its_sisters() -> None:
    with pytest.raises(UsageError, match="OneCycleLR cannot be a part of SequentialLR"):
        torch_schedule(sequence(optimizer(), [3], lambda o: schedulers.StepLR(o, 3), one_cycle))
