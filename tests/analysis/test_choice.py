"""Which arms are worth running again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from expkit.analysis.choice import fastest, named
from expkit.analysis.estimates import Interval
from expkit.analysis.model import Arm, Summary
from expkit.errors import UsageError
from tests.report.example_summary import example


def with_arms(**ends: tuple[float, float, float]) -> Summary:
    """Arms by label: speedup, and the ends of their quality difference."""
    base = example()
    some = base.arms[1]
    made = [
        replace(some, label=label, speedup=Interval(speedup, speedup * 0.98, speedup * 1.02, 5),
                quality_difference=Interval((lo + hi) / 2, lo, hi, 5, 0.9))
        for label, (speedup, lo, hi) in ends.items()
    ]  # fmt: skip
    return replace(base, arms=(base.arms[0], *made))


def labels(arms: tuple[Arm, ...]) -> list[str]:
    return [arm.label for arm in arms]


def test_the_fastest_come_first_and_what_is_worse_or_slower_does_not_come() -> None:
    summary = with_arms(
        slow=(0.9, -0.001, 0.001), worse=(1.5, -0.02, -0.01), good=(1.2, -0.001, 0.001), fair=(1.1, -0.02, 0.02),
        better=(0.99, 0.001, 0.003),
    )  # fmt: skip
    chosen = fastest(summary, 3)
    assert labels(chosen.arms) == ["good", "fair", "better"]
    assert chosen.of == 5
    assert chosen.rule == "the 3 fastest of 5 arms on the train clock that were not shown to be worse in eval/accuracy"
    assert labels(fastest(summary, 1).arms) == ["good"]


def test_an_arm_that_is_another_one_by_construction_or_never_ran_is_not_chosen() -> None:
    summary = with_arms(good=(1.2, -0.001, 0.001), same=(1.3, -0.001, 0.001), lost=(1.4, -0.001, 0.001))
    base, good, same, lost = summary.arms
    odd = (base, good, replace(same, equals="good"), replace(lost, speedup=Interval()))
    assert labels(fastest(replace(summary, arms=odd), 3).arms) == ["good"]


def test_where_nothing_is_gained_nothing_is_confirmed_unless_somebody_names_it() -> None:
    summary = with_arms(slow=(0.9, -0.001, 0.001), other=(0.8, -0.001, 0.001))
    with pytest.raises(UsageError, match="there is nothing to confirm; --arm LABEL"):
        fastest(summary, 3)
    chosen = named(summary, ["other", "other"])
    assert (labels(chosen.arms), chosen.rule) == (["other"], "named by hand, out of 2 arms")
    with pytest.raises(UsageError, match="unknown arm 'none'"):
        named(summary, ["none"])
