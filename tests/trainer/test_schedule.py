"""Durations in steps and rates as pure functions of the step: step k trains at f(k)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from expkit.duration import Time
from expkit.errors import UsageError
from expkit.trainer.callback import Callback
from expkit.trainer.contracts import Scheduler
from expkit.trainer.schedule import Steps, table, total_steps
from tests.trainer.doubles import batches, trainer


@dataclass
class Rates(Callback):
    seen: Any = field(default_factory=list, init=False)

    def before_train_batch(self, state: Any, logger: Any) -> None:
        self.seen.append(state.optimizer.param_groups[0]["lr"])


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
    with pytest.raises(ValueError, match="cannot be counted in steps"):
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


def test_a_schedule_of_a_training_in_seconds_follows_the_train_clock() -> None:
    rates = Rates()
    t = trainer(schedulers=Ramp(Time.parse("0.01dur")), callbacks=[rates], max_duration="0.2sec")
    t.fit()
    assert t.state.timestamp.train_s >= 0.2
    assert 1 < t.state.timestamp.batch == len(rates.seen)
    assert rates.seen[-1] < 0.2 * max(rates.seen)
