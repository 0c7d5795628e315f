"""Schedules by table: step k trains at f(k), from the first on, whatever the ssr; warm-ups never train at zero."""

from __future__ import annotations

import math
from typing import Any

import pytest

from expkit import plugins, schedulers
from expkit.duration import Time
from expkit.errors import PluginError
from expkit.trainer.contracts import Scheduler
from expkit.trainer.schedule import Steps, table
from tests.trainer.doubles import trainer

REQUIRED: dict[str, dict[str, Any]] = {
    "step": {"step_size": "0.25dur"}, "multi_step": {"milestones": ["0.5dur"]}, "exponential": {"gamma": 0.5},
    "cosine_warm_restarts": {"t_0": "0.5dur"},
}  # fmt: skip
NAMES = plugins.names("schedulers")


def factors(name: str, settings: dict[str, Any], total: int, *, per_epoch: int = 4, ssr: float = 1.0) -> list[float]:
    scheduler = plugins.build("schedulers", name, {**REQUIRED.get(name, {}), **settings})
    assert isinstance(scheduler, Scheduler)
    return table(scheduler.factor, Steps(total, per_epoch, 10, 40.0, ssr))


def half_cosine(*shares: float) -> list[float]:
    return [(1 + math.cos(math.pi * share)) / 2 for share in shares]


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("constant", {}, [1.0] * 8),
        ("constant", {"alpha": 0.5, "t_max": "3ba"}, [0.5] * 3 + [1.0] * 5),
        ("constant", {"alpha": 2.0}, [2.0] * 8),
        ("linear", {}, [1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]),
        ("linear", {"alpha_i": 0.2, "alpha_f": 1.0, "t_max": "4ba"}, [0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0, 1.0]),
        ("linear", {"t_max": "2ba"}, [1.0, 0.5] + [0.0] * 6),
        ("linear", {"t_max": "4ep"}, [1 - k / 16 for k in range(8)]),
        ("linear", {"t_max": "0.375ep", "alpha_f": 0.4}, [1.0, 0.6] + [0.4] * 6),
        ("polynomial", {}, [(1 - k / 8) ** 2 for k in range(8)]),
        ("polynomial", {"power": 1.0, "alpha_f": 0.2}, [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]),
        ("polynomial", {"power": 0.5, "t_max": "4ba"}, [1.0, 0.75**0.5, 0.5**0.5, 0.5] + [0.0] * 4),
        ("cosine", {}, half_cosine(*(k / 8 for k in range(8)))),
        ("cosine", {"t_max": "1ep"}, half_cosine(0, 0.25, 0.5, 0.75) + [0.0] * 4),
        ("cosine", {"t_max": "160sp"}, half_cosine(*(k / 16 for k in range(8)))),
        ("cosine", {"alpha_f": 0.2, "t_max": "2ba"}, [1.0, 0.6] + [0.2] * 6),
        ("cosine_warm_restarts", {"t_0": "4ba"}, half_cosine(0, 0.25, 0.5, 0.75) * 2),
        ("cosine_warm_restarts", {"t_0": "2ba", "t_mult": 2.0}, half_cosine(0, 0.5, 0, 0.25, 0.5, 0.75, 0, 0.125)),
        ("cosine_warm_restarts", {"t_0": "2ba", "alpha_f": 0.5}, [1.0, 0.75] * 4),
        ("step", {"step_size": "2ba", "gamma": 0.5}, [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125]),
        ("step", {"step_size": "1ep"}, [1.0] * 4 + [0.1] * 4),
        ("step", {"step_size": "0.6ep", "gamma": 0.5}, [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.25]),
        ("multi_step", {"milestones": ["0.5dur", "6ba"]}, [1.0] * 4 + [0.1, 0.1, 0.01, 0.01]),
        ("multi_step", {"milestones": ["6ba", "1ep", "9ba"], "gamma": 0.5}, [1.0] * 4 + [0.5, 0.5, 0.25, 0.25]),
        ("multi_step", {"milestones": ["2ba", "2ba"]}, [1.0, 1.0] + [0.01] * 6),
        ("exponential", {"gamma": 0.5}, [0.5 ** (k / 4) for k in range(8)]),
        ("exponential", {"gamma": 0.9, "decay_period": "2ba"}, [0.9 ** (k / 2) for k in range(8)]),
        ("exponential", {"gamma": 0.9, "decay_period": "40tok"}, [0.9**k for k in range(8)]),
    ],
)  # fmt: skip
def test_step_k_of_8_trains_at_f_of_k_and_no_factor_comes_twice_defect_D2(
    name: str, settings: dict[str, Any], expected: list[float]
) -> None:
    assert factors(name, settings, 8) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("constant", {"alpha": 0.5}, [0.125, 0.25, 0.375, 0.5] + [0.5] * 4),
        ("constant", {"alpha": 0.5, "t_max": "6ba"}, [0.125, 0.25, 0.375, 0.5, 0.5, 0.5, 1.0, 1.0]),
        ("linear", {"alpha_i": 0.8}, [0.2, 0.4, 0.6, 0.8, 0.8, 0.6, 0.4, 0.2]),
        ("linear", {"t_max": "6ba", "alpha_f": 0.5}, [0.25, 0.5, 0.75, 1.0, 1.0, 0.75, 0.5, 0.5]),
        ("linear", {"t_max": "12ba"}, [0.25, 0.5, 0.75, 1.0, 1.0, 0.875, 0.75, 0.625]),
        ("polynomial", {}, [0.25, 0.5, 0.75, 1.0, 1.0, 0.75**2, 0.5**2, 0.25**2]),
        ("cosine", {}, [0.25, 0.5, 0.75, 1.0, *half_cosine(0, 0.25, 0.5, 0.75)]),
        ("cosine", {"t_max": "6ba"}, [0.25, 0.5, 0.75, 1.0, *half_cosine(0, 0.5), 0.0, 0.0]),
        ("multi_step", {"milestones": ["6ba"]}, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 0.1, 0.1]),
        ("step", {"step_size": "6ba"}, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 0.1, 0.1]),
        ("exponential", {"gamma": 0.5}, [(k + 1) / 4 * 0.5 ** (k / 4) for k in range(4)]
                                         + [0.5 ** (k / 4) for k in range(4, 8)]),
        ("cosine_warm_restarts", {"t_0": "4ba"}, [min(1.0, (k + 1) / 4) * f for k, f in
                                                  enumerate(half_cosine(0, 0.25, 0.5, 0.75) * 2)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("warmup", ["4ba", "1ep", "0.5dur", "40sp", "160tok"])
def test_step_k_of_a_warm_up_of_4_trains_at_k_plus_1_quarters(
    name: str, settings: dict[str, Any], expected: list[float], warmup: str
) -> None:
    assert factors(name, {**settings, "warmup": warmup}, 8) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_up_of_nothing_is_none_and_warns_of_nothing_issues_428_and_3205(name: str) -> None:
    plain = factors(name, {}, 8)
    for warmup in ("0ba", "0dur", "0ep", "0.01dur"):
        assert factors(name, {"warmup": warmup}, 8) == plain


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_up_as_long_as_the_training_is_no_division_by_zero_issue_1077(name: str) -> None:
    settings = {"milestones": ["9ba"]} if name == "multi_step" else {"step_size": "9ba"} if name == "step" else {}
    for warmup in ("4ba", "1dur", "1ep"):
        warm = factors(name, {**settings, "warmup": warmup}, 4)
        if name not in ("exponential", "cosine_warm_restarts"):  # those decay from the first step on
            assert warm == [0.25, 0.5, 0.75, 1.0]
        assert warm[0] > 0
        assert all(math.isfinite(f) for f in warm)


@pytest.mark.parametrize("name", ["linear", "polynomial", "cosine"])
def test_a_warm_up_longer_than_t_max_is_followed_by_the_end(name: str) -> None:
    for t_max in ("2ba", "4ba"):
        assert factors(name, {"warmup": "4ba", "t_max": t_max, "alpha_f": 0.5}, 6) == [0.25, 0.5, 0.75, 1.0, 0.5, 0.5]


@pytest.mark.parametrize("name", NAMES)
def test_the_ssr_scales_everything_and_shares_just_once_defect_D6(name: str) -> None:
    lengths = {"warmup": "4ba", "t_max": "12ba", "step_size": "4ba", "t_0": "8ba", "decay_period": "1ep",
               "milestones": ["4ba", "0.5dur", "2ep"]}  # fmt: skip
    known = {setting.name for setting in plugins.settings(plugins.load("schedulers", name))}
    settings = {key: value for key, value in lengths.items() if key in known}
    whole = factors(name, settings, 16)
    half = factors(name, settings, 8, ssr=0.5)
    assert half[2:] == pytest.approx(whole[4::2])  # within a warm-up step k has (k + 1) / W, of another W
    assert half[0] == pytest.approx(0.5)


@pytest.mark.parametrize("name", NAMES)
def test_scale_warmup_false_leaves_a_warm_up_its_length_unless_it_is_a_share(name: str) -> None:
    kept = factors(name, {"warmup": "4ba", "scale_warmup": False}, 8, ssr=0.5)
    assert kept == factors(name, {"warmup": "8ba"}, 8, ssr=0.5) == factors(name, {"warmup": "0.5dur"}, 8, ssr=0.5)
    share = {"warmup": "0.5dur"}
    assert factors(name, {**share, "scale_warmup": False}, 8, ssr=0.5) == factors(name, share, 8, ssr=0.5)


def test_a_share_that_no_float_holds_is_a_whole_step_all_the_same() -> None:
    assert 0.07 * 100 > 7
    assert factors("multi_step", {"milestones": ["0.07dur"]}, 100) == pytest.approx([1.0] * 7 + [0.1] * 93)


def test_flat_after_the_end_because_an_estimate_of_it_may_move() -> None:
    for name in ("linear", "cosine", "polynomial"):
        scheduler: Any = plugins.build("schedulers", name, {"alpha_f": 0.2})
        for step in (10, 11, 99):
            assert scheduler.factor(step, Steps(total=10, per_epoch=10)) == pytest.approx(0.2)


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_up_in_seconds_is_refused_where_the_file_is_read(name: str) -> None:
    with pytest.raises(PluginError, match="warmup is counted in ep, ba, sp, tok or dur, but got 90sec"):
        plugins.build("schedulers", name, {**REQUIRED.get(name, {}), "warmup": "90s"})


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("step", {"step_size": "90s"}, "step_size is counted in ep, ba, sp, tok or dur, but got 90sec"),
        ("step", {"step_size": "0ba"}, "step_size must be positive, but got 0ba"),
        ("step", {"step_size": 3}, "3 is not a duration"),
        ("step", {}, "step_size"),
        ("multi_step", {"milestones": ["1ep", "5iter"]}, "milestones is counted in ep, ba, sp, tok or dur"),
        ("multi_step", {"milestones": []}, "milestones"),
        ("cosine", {"t_max": "0dur"}, "t_max must be positive, but got 0dur"),
        ("cosine_warm_restarts", {"t_0": "0ba"}, "t_0 must be positive"),
        ("cosine_warm_restarts", {"t_0": "2ba", "t_mult": 0.5}, "t_mult"),
        ("exponential", {"gamma": 0}, "gamma"),
        ("exponential", {"gamma": 0.9, "decay_period": "0ep"}, "decay_period must be positive"),
        ("polynomial", {"power": 0}, "power"),
        ("linear", {"alpha_i": -1}, "alpha_i"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_schedule_is_refused(name: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PluginError, match=sentence):
        plugins.build("schedulers", name, settings)


@pytest.mark.parametrize("name", NAMES)
def test_the_trainer_gives_each_step_the_rate_of_the_table(name: str) -> None:
    scheduler: Any = plugins.build("schedulers", name, {**REQUIRED.get(name, {}), "warmup": "2ba"})
    t = trainer(schedulers=scheduler)
    seen = []
    step = t.state.optimizer.step
    t.state.optimizer.step = lambda *a: (seen.append(t.state.optimizer.param_groups[0]["lr"]), step(*a))  # type: ignore[method-assign,func-returns-value]
    t.fit()
    assert seen == pytest.approx(table(scheduler.factor, Steps(8, 4, 6), base=0.1), rel=1e-12)


@pytest.mark.parametrize(
    ("theirs", "given", "ours", "settings"),
    [
        ("Step", ["2ba"], "step", {"step_size": "2ba"}),
        ("MultiStep", [["2ba"], 0.5], "multi_step", {"milestones": ["2ba"], "gamma": 0.5}),
        ("Constant", [0.5, "3ba"], "constant", {"alpha": 0.5, "t_max": "3ba"}),
        ("Linear", [0.9, 0.1], "linear", {"alpha_i": 0.9, "alpha_f": 0.1}),
        ("Exponential", [0.9], "exponential", {"gamma": 0.9}),
        ("CosineAnnealing", ["1ep"], "cosine", {"t_max": "1ep"}),
        ("CosineAnnealingWarmRestarts", ["2ba", 2], "cosine_warm_restarts", {"t_0": "2ba", "t_mult": 2}),
        ("Polynomial", [3.0], "polynomial", {"power": 3.0}),
        ("MultiStepWithWarmup", ["2ba", ["4ba"]], "multi_step", {"milestones": ["4ba"], "warmup": "2ba"}),
        ("ConstantWithWarmup", ["2ba"], "constant", {"warmup": "2ba"}),
        ("LinearWithWarmup", ["2ba", 0.5], "linear", {"warmup": "2ba", "alpha_i": 0.5}),
        ("CosineAnnealingWithWarmup", ["2ba", "1ep", 0.1], "cosine", {"warmup": "2ba", "t_max": "1ep", "alpha_f": 0.1}),
        ("PolynomialWithWarmup", ["2ba", 1.0], "polynomial", {"warmup": "2ba", "power": 1.0}),
    ],
)  # fmt: skip
def test_composers_names_make_ours_with_composers_arguments(
    theirs: str, given: list[Any], ours: str, settings: dict[str, Any]
) -> None:
    if "warmup" in settings:
        settings = {**settings, "scale_warmup": False}  # Composer's default
    made = getattr(schedulers, f"{theirs}Scheduler")(*given)
    assert made == plugins.build("schedulers", ours, settings)
    assert isinstance(made, plugins.load("schedulers", ours))


def test_composers_arguments_have_composers_names() -> None:
    made = schedulers.CosineAnnealingWithWarmupScheduler(t_warmup="1ep", alpha_f=0.02, scale_warmup=True)
    assert made == schedulers.Cosine(warmup="1ep", alpha_f=0.02, scale_warmup=True)


def test_composers_names_refuse_what_composer_would_refuse() -> None:
    with pytest.raises(TypeError, match="StepScheduler takes step_size, gamma, but got 3 arguments"):
        schedulers.StepScheduler("2ba", 0.1, 5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'warmup'"):
        schedulers.CosineAnnealingWithWarmupScheduler(warmup="2ba")
    with pytest.raises(AttributeError, match="has no attribute 'CosineScheduler'"):
        _ = schedulers.CosineScheduler
    assert schedulers.Cosine is plugins.load("schedulers", "cosine")
    assert Time.parse("2ba") == schedulers.ConstantWithWarmupScheduler("2ba").warmup
