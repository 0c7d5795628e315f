"""Durations in steps and rates as pure functions of the step: step k trains at f(k)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler

import expkit
from expkit import plugins
from expkit.duration import Time
from expkit.errors import UsageError
from expkit.schedulers.linear import Linear
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.contracts import Scheduler
from expkit.trainer.schedule import Steps, table, total_steps
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, batches, net, trainer


@dataclass
class Rates(Callback):
    seen: Any = field(default_factory=list, init=False)
    momenta: Any = field(default_factory=list, init=False)

    def before_train_batch(self, state: Any, logger: Any) -> None:
        self.seen.append(state.optimizer.param_groups[0]["lr"])
        self.momenta.append(state.optimizer.param_groups[0]["momentum"])


def train(made: tuple[Any, Rates]) -> tuple[Any, Rates]:
    made[0].fit()
    return made


@dataclass
class Ramp(Scheduler):
    warmup: Time = Time.parse("4ba")

    def factor(self, step: int, steps: Steps) -> float:
        return min(1.0, (step + 1) / steps.of(self.warmup)) * (1 - step / steps.total)


@pytest.mark.parametrize(
    ("duration", "steps"),
    [("2ep", 126), ("0.5ep", 32), ("0.1ep", 7), ("0.125ep", 8), ("1e2ba", 100), ("8000sp", 63), ("8001sp", 64),
     ("128sp", 1), ("129sp", 2), ("7999sp", 63), ("7936sp", 62), ("60sec", None), ("5tok", None)],
)  # fmt: skip
def test_total_steps_of_63_batches_of_128_over_8000_samples(duration: str, steps: int | None) -> None:
    assert total_steps(Time.parse(duration), 63, 128, 8000) == steps


@pytest.mark.parametrize(
    ("time", "at_ssr_1", "at_half"),
    [("2ep", 200.0, 100.0), ("10ba", 10.0, 5.0), ("0.1dur", 30.0, 30.0), ("320sp", 10.0, 5.0), ("640tok", 10.0, 5.0)],
)
def test_of_converts_and_scales_every_unit_but_shares_of_the_whole(time: str, at_ssr_1: float, at_half: float) -> None:
    assert Steps(300, 100, 32, 64.0).of(Time.parse(time)) == at_ssr_1
    assert Steps(300, 100, 32, 64.0, ssr=0.5).of(Time.parse(time)) == at_half


@pytest.mark.parametrize("time", ["3sec", "1iter", "10tok"])
def test_of_refuses_what_has_no_steps(time: str) -> None:
    with pytest.raises(UsageError, match="cannot be counted in steps"):
        Steps(300, 100, 32).of(Time.parse(time))


def test_step_k_trains_at_f_of_k_as_the_table_says_before_the_launch() -> None:
    rates = Rates()
    t = trainer(schedulers=Ramp(), callbacks=[rates])
    before = [t.lr_at(k) for k in range(8)]
    t.fit()
    assert rates.seen == before == pytest.approx(table(Ramp().factor, t.state.steps, base=0.1))
    assert before[:5] == pytest.approx([0.025, 0.05 * 7 / 8, 0.075 * 6 / 8, 0.1 * 5 / 8, 0.1 * 4 / 8])
    assert [t.lr_at(k) for k in range(8)] == before


def test_a_function_will_do_and_several_are_multiplied() -> None:
    rates = Rates()
    trainer(schedulers=[lambda k: 0.5**k, lambda k: 2.0], callbacks=[rates], max_duration="3ba").fit()
    assert rates.seen == pytest.approx([0.2, 0.1, 0.05])


@pytest.mark.parametrize("duration", ["8ba", "2ep", "48sp"])
def test_ssr_scales_training_schedule_and_evaluations_alike(duration: str) -> None:
    seen = {}
    for ssr in (1.0, 0.5):
        rates = Rates()
        t = trainer(train_dataloader=batches(4), max_duration=duration, schedulers=Ramp(), ssr=ssr, callbacks=[rates])
        t.fit()
        seen[ssr] = rates.seen
        assert t.state.timestamp.batch == 8 * ssr
    warmup_2 = [0.05, 0.1 * 3 / 4, 0.1 * 2 / 4, 0.1 / 4]
    assert seen[0.5] == pytest.approx(warmup_2)


@pytest.mark.parametrize("ssr", [0, -1.0])
def test_an_ssr_that_is_not_positive_is_refused(ssr: float) -> None:
    with pytest.raises(UsageError, match="ssr must be positive"):
        trainer(ssr=ssr)


@dataclass
class Wants(Algorithm):
    """A method that needs a schedule of its own."""

    make: Any = None

    def init(self, state: Any, logger: Any) -> None:
        state.schedulers.append(self.make(state.optimizer))


def torch_trainer(make: Any, *, wanted_by_method: bool = False, **settings: Any) -> tuple[Any, Rates]:
    """A trainer with a scheduler of torch on its optimizer, and the rates it comes to train at."""
    model, rates = net(), Rates()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    given: Any = {"algorithms": [Wants(make)]} if wanted_by_method else {"schedulers": make(optimizer)}
    return Trainer(model=model, train_dataloader=batches(4), optimizers=optimizer, callbacks=[rates], device="cpu",
                   **given, **{"max_duration": "4ep", **settings}), rates  # fmt: skip


@pytest.mark.parametrize("wanted_by_method", [False, True])
def test_a_scheduler_of_torch_counts_epochs_unless_its_owner_says_batches(wanted_by_method: bool) -> None:
    def make(optimizer: Any) -> Any:
        return lr_scheduler.StepLR(optimizer, 2, 0.5)

    _, epochs = train(torch_trainer(make, wanted_by_method=wanted_by_method))
    assert epochs.seen == pytest.approx([0.1] * 8 + [0.05] * 8)
    settings: Any = {"wanted_by_method": wanted_by_method, "step_schedulers_every_batch": True}
    _, every_batch = train(torch_trainer(make, **settings, max_duration="1ep"))
    assert every_batch.seen == pytest.approx([0.1, 0.1, 0.05, 0.05])
    _, halved = train(torch_trainer(make, wanted_by_method=wanted_by_method, ssr=0.5))
    assert halved.seen == pytest.approx([0.1] * 4 + [0.05] * 4)


def test_in_a_trainer_torchs_schedulers_give_what_they_give_in_a_loop_of_ones_own() -> None:
    def make(optimizer: Any) -> Any:
        return lr_scheduler.OneCycleLR(optimizer, max_lr=0.4, total_steps=8)

    by_hand, momenta = [], []
    optimizer = torch.optim.SGD(net().parameters(), lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    for _ in range(8):
        by_hand.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        scheduler.step()
    t, rates = train(torch_trainer(make, max_duration="8ba", step_schedulers_every_batch=True))
    assert rates.seen == pytest.approx(by_hand, abs=1e-12)
    assert rates.momenta == pytest.approx(momenta, abs=1e-12)
    assert [t.lr_at(k) for k in range(8)] == pytest.approx(by_hand, abs=1e-12)


def test_a_scheduler_of_torch_and_a_plug_in_are_multiplied() -> None:
    def make(optimizer: Any) -> Any:
        return [lr_scheduler.ExponentialLR(optimizer, 0.5), Linear()]

    _, rates = train(torch_trainer(make, max_duration="2ep"))
    assert rates.seen == pytest.approx([0.1 * (1 - k / 8) * 0.5 ** (k // 4) for k in range(8)])


def test_a_scheduler_of_another_optimizer_is_refused() -> None:
    other = torch.optim.SGD(net().parameters(), lr=0.1)
    with pytest.raises(UsageError, match="StepLR was made for another optimizer than the trainer's"):
        trainer(schedulers=lr_scheduler.StepLR(other, 3))


@pytest.mark.parametrize("wanted_by_method", [False, True])
def test_a_scheduler_that_cannot_be_read_is_refused_by_its_name(wanted_by_method: bool) -> None:
    with pytest.raises(UsageError, match="PolynomialLR cannot be used: of torch's schedulers there are StepLR"):
        torch_trainer(lambda o: lr_scheduler.PolynomialLR(o), wanted_by_method=wanted_by_method)


def test_a_cycle_that_ends_before_training_is_refused_before_the_first_step() -> None:
    def make(optimizer: Any) -> Any:
        return lr_scheduler.OneCycleLR(optimizer, max_lr=0.4, total_steps=8)

    t, _ = torch_trainer(make, max_duration="3ep", step_schedulers_every_batch=True)
    with pytest.raises(UsageError, match="OneCycleLR ends after 8 steps of its own, but training takes 12 batches"):
        t.fit()
    assert t.state.timestamp.batch == 0
    train(torch_trainer(make, max_duration="3ep"))  # 3 epochs are steps enough


@dataclass
class Halves(Algorithm):
    """A method that asks for half the training."""

    ratio: float = 0.5

    def init(self, state: Any, logger: Any) -> None:
        state.scale_schedule(self.ratio)


def halved(make: Any, **settings: Any) -> tuple[list[float], list[int]]:
    """Rates of all steps and the batches at which there was an evaluation."""
    model, rates, memory = net(), Rates(), Memory()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    Trainer(model=model, train_dataloader=batches(4), optimizers=optimizer, callbacks=[rates], loggers=[memory],
            eval_dataloader=batches(1), device="cpu", schedulers=make(optimizer), **settings).fit()  # fmt: skip
    return rates.seen, [batch for batch, _ in memory.series("eval/accuracy")]


@pytest.mark.parametrize("duration", ["16ba", "4ep", "96sp"])
@pytest.mark.parametrize(
    "make",
    [
        lambda o: Ramp(),
        lambda o: lr_scheduler.StepLR(o, 2, 0.5),
        lambda o: [lr_scheduler.CosineAnnealingLR(o, 4), Linear(warmup=Time.parse("4ba"), t_max=Time.parse("12ba"))],
    ],
)
def test_a_method_that_asks_for_half_the_training_gets_what_an_ssr_of_half_gives(make: Any, duration: str) -> None:
    settings: Any = {"max_duration": duration, "eval_interval": "6ba"}
    asked = halved(make, algorithms=[Halves()], **settings)
    assert asked == halved(make, ssr=0.5, **settings)
    assert len(asked[0]) == 8
    assert asked[1] == [3, 6, 8]


def test_a_method_may_scale_the_scheduler_that_it_finds() -> None:
    @dataclass
    class Scales(Algorithm):
        def init(self, state: Any, logger: Any) -> None:
            expkit.functional.scale_pytorch_scheduler(state.schedulers[0], 0.5)

    t, rates = torch_trainer(lambda o: lr_scheduler.StepLR(o, 4, 0.5), algorithms=[Scales()])
    t.fit()
    assert rates.seen == pytest.approx([0.1] * 8 + [0.05] * 8)


def test_a_ratio_that_is_not_positive_is_refused() -> None:
    with pytest.raises(UsageError, match="scaled by a positive ratio, but got 0"):
        trainer(algorithms=[Halves(0)])


def test_a_function_of_the_step_alone_knows_no_ssr() -> None:
    with pytest.raises(UsageError, match=r"ssr=0.5 cannot scale a schedule that is a function of the step alone"):
        trainer(schedulers=lambda k: 0.5**k, ssr=0.5)
    rates = Rates()
    trainer(schedulers=lambda k, steps: 1 - k / steps.total, ssr=0.5, callbacks=[rates]).fit()
    assert rates.seen == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_a_warm_up_longer_than_training_is_told_once_and_one_as_long_is_not() -> None:
    t = trainer(schedulers=Linear(warmup="9ba"))
    with pytest.warns(UserWarning, match=r"warmup=9ba of Linear is 9 steps, but training takes 8: the full"):
        t.fit()
    t.fit("1ba")  # told once; warnings are errors here
    trainer(schedulers=Linear(warmup="8ba")).fit()


@dataclass
class Slow(Callback):
    """Writes down progress and rate of each step; takes a moment of the train clock."""

    seen: Any = field(default_factory=list, init=False)

    def before_train_batch(self, state: Any, logger: Any) -> None:
        self.seen.append((state.progress, state.optimizer.param_groups[0]["lr"]))


class Tokens(torch.nn.Module):
    """Two logits for each of 10 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(4, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table(tokens).movedim(-1, 1)


SHAPES: list[tuple[str, dict[str, Any], Any]] = [
    ("constant", {"alpha": 0.5, "t_max": "0.5dur"}, lambda p: 0.5 if p < 0.5 else 1.0),
    ("linear", {}, lambda p: 1 - p),
    ("cosine", {"t_max": "2dur"}, lambda p: (1 + math.cos(math.pi * p / 2)) / 2),
    ("polynomial", {}, lambda p: (1 - p) ** 2),
    ("cosine_warm_restarts", {"t_0": "0.5dur"}, lambda p: (1 + math.cos(math.pi * (p % 0.5) / 0.5)) / 2),
    ("step", {"step_size": "0.3dur", "gamma": 0.5}, lambda p: 0.5 ** math.floor(p / 0.3)),
    ("multi_step", {"milestones": ["0.3dur", "0.6dur"]}, lambda p: 0.1 ** ((p >= 0.3) + (p >= 0.6))),
    ("exponential", {"gamma": 0.1, "decay_period": "1dur"}, lambda p: 0.1**p),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "shape"), SHAPES, ids=[name for name, *_ in SHAPES])
@pytest.mark.parametrize("duration", ["0.2sec", "9000tok"])
def test_a_schedule_in_shares_follows_the_clock_where_nobody_knows_the_number_of_steps(
    name: str, settings: dict[str, Any], shape: Any, duration: str
) -> None:
    watch = Slow()
    tokens = torch.zeros(6, 10, dtype=torch.long)
    model, data = (Tokens(), [(tokens, tokens % 2)] * 4) if "tok" in duration else (net(), batches(4))
    scheduler: Any = plugins.build("schedulers", name, settings)
    trainer(model, train_dataloader=data, schedulers=scheduler, callbacks=[watch], max_duration=duration).fit()
    off = 0
    for progress, lr in watch.seen[2:]:
        nearby = [0.1 * shape(progress * (1 + e)) for e in (-0.02, -0.01, 0.0, 0.01, 0.02)]
        off += not min(nearby) - 1e-3 <= lr <= max(nearby) + 1e-3
    assert len(watch.seen) > 20
    assert off <= 0.05 * len(watch.seen)


def test_a_schedule_of_a_training_in_seconds_follows_the_train_clock() -> None:
    rates = Rates()
    t = trainer(schedulers=Ramp(Time.parse("0.01dur")), callbacks=[rates], max_duration="0.2sec")
    t.fit()
    assert t.state.timestamp.train_s >= 0.2
    assert 1 < t.state.timestamp.batch == len(rates.seen)
    assert rates.seen[-1] < 0.2 * max(rates.seen)
