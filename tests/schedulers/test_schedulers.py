from __future__ import annotations

import math
from typing import Any

import pytest

from expkit import plugins
from expkit.errors import PluginError
from expkit.trainer.contracts import Scheduler
from expkit.trainer.schedule import Steps


def factors(name: str, settings: dict[str, Any], total: int) -> list[float]:
    scheduler = plugins.build("schedulers", name, settings)
    assert isinstance(scheduler, Scheduler)
    return [scheduler.factor(step, Steps(total=total, per_epoch=total)) for step in range(total)]


def test_step_k_trains_at_f_of_k_and_no_factor_comes_twice_defect_D2() -> None:
    assert factors("linear", {}, 4) == [1.0, 0.75, 0.5, 0.25]
    assert factors("cosine", {}, 4) == pytest.approx([(1 + math.cos(math.pi * k / 4)) / 2 for k in range(4)])
    assert factors("constant", {}, 3) == [1.0] * 3


def test_warm_up_of_w_steps_trains_at_k_plus_1_over_w_never_at_zero() -> None:
    assert factors("constant", {"warmup": "4ba"}, 6) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert factors("linear", {"warmup": "2ba"}, 6) == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    assert factors("cosine", {"warmup": "0.5dur"}, 4) == pytest.approx([0.5, 1.0, 1.0, 0.5])


def test_alpha_f_is_where_the_line_ends() -> None:
    assert factors("linear", {"alpha_f": 0.2}, 4) == pytest.approx([1.0, 0.8, 0.6, 0.4])
    scheduler: Any = plugins.build("schedulers", "cosine", {"alpha_f": 0.2})
    assert scheduler.factor(10, Steps(total=10, per_epoch=10)) == pytest.approx(0.2)
    assert scheduler.factor(99, Steps(total=10, per_epoch=10)) == pytest.approx(0.2)  # an estimate of the end may move


@pytest.mark.parametrize("name", ["constant", "linear", "cosine"])
def test_a_warm_up_as_long_as_the_training_is_no_division_by_zero(name: str) -> None:
    assert factors(name, {"warmup": "1dur"}, 4) == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("name", ["constant", "linear", "cosine"])
def test_a_warm_up_in_seconds_is_refused_where_the_file_is_read(name: str) -> None:
    with pytest.raises(PluginError, match="warmup is counted in ep, ba, sp, tok or dur, but got 90sec"):
        plugins.build("schedulers", name, {"warmup": "90s"})
