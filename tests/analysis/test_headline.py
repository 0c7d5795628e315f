"""The headline: three sentences at most, whatever was found, each with its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from expkit.analysis.estimates import AtQuality
from expkit.analysis.headline import by_verdict, headline
from expkit.analysis.model import Arm, Effect, EqualQuality, Guard, Interval, TargetInfo
from expkit.analysis.noise import Floor
from tests.analysis.studies import study_of
from tests.report.example_summary import example

STUDY = study_of(["none", "a"], range(3), lambda label, seed, rng: (10.0, 0.85))
FLOOR = Floor(0.021, Interval(1.0, 0.98, 1.02, 5), 5, True)
TARGET = TargetInfo("eval/accuracy", "max", 0.8, "lowest_final", "pilot")
TERMS = (
    "Noise floor 2.1 % (on the train clock, 5 A/A pairs); equal quality means not worse by 0.005 of eval/accuracy; "
    "one workload, one machine: no claim beyond."
)
BASE, *_ = example().arms


def arm(label: str, verdict: str, speedup: float = 1.2, time_class: str = "FASTER") -> Arm:
    ratio = Interval(speedup, speedup - 0.06, speedup + 0.06, 5)
    return replace(BASE, label=label, baseline=False, verdict=verdict, speedup=ratio, time_class=time_class, complete=5)


def said(*arms: Arm, effects: tuple[Effect, ...] = (), red: tuple[Guard, ...] = (), **target: bool) -> tuple[str, ...]:
    return headline(STUDY, [BASE, *arms], effects, FLOOR, red, replace(TARGET, **target))


def test_what_is_faster_is_named_with_its_numbers_the_fastest_first() -> None:
    one, two = arm("a", "FASTER at equal quality", 1.2), arm("b", "FASTER AND BETTER", 1.3)
    assert said(one, two, arm("c", "SLOWER", 0.5)) == (
        "2 of 3 arms are faster at no loss of quality: b x1.30 [1.24, 1.36] (n=5) and better and "
        "a x1.20 [1.14, 1.26] (n=5).", TERMS,
    )  # fmt: skip
    assert said(one)[0] == "1 of 1 arm is faster at no loss of quality: a x1.20 [1.14, 1.26] (n=5)."


def test_never_and_1_more() -> None:
    def of(num: int) -> str:
        return said(*(arm(f"m{i}", "FASTER at equal quality", 1.2 + i / 10) for i in range(num)))[0]

    assert "m3 x1.50" in of(4) and "m0 x1.20" in of(4) and "more" not in of(4)
    assert of(6).endswith("m3 x1.50 [1.44, 1.56] (n=5) and 3 more.")


def test_where_nothing_is_faster_at_equal_quality_the_fastest_stands_with_its_verdict() -> None:
    slow, trade = arm("a", "SLOWER", 0.9, "SLOWER"), arm("b", "TRADE: faster, worse")
    assert said(slow, trade)[0] == (
        "No combination of 2 is shown to be faster at equal quality; the fastest, b, is x1.20 [1.14, 1.26] (n=5): "
        "TRADE: faster, worse."
    )
    assert said()[0] == "There is no arm beside the baseline, so nothing is compared."
    lost = replace(arm("a", "WITHHELD", 9.0), time_class="")
    assert said(lost)[0] == "No combination of 1 is shown to be faster at equal quality."


def test_a_trade_that_pays_at_equal_quality_is_the_answer() -> None:
    def at(quality: float, lo: float, *, preset: bool = True) -> AtQuality:
        return AtQuality(quality, preset, 9.0, 8.0, Interval(1.09, lo, 1.15, 5), 1.09)

    def first(*points: AtQuality) -> str:
        curves = [EqualQuality("a", (0.5, 1.0), 5, at=points)]
        return headline(STUDY, [BASE, arm("a", "TRADE: faster, worse")], (), FLOOR, (), TARGET, curves=curves)[0]

    assert first(at(0.8, 1.03)) == (
        "1 of 1 arm is faster at equal quality, eval/accuracy 0.8000 by whole runs at several budgets: "
        "a x1.09 [1.03, 1.15] (n=5)."
    )
    for points in ([at(0.8, 1.01)], [at(0.8, 1.03, preset=False)], []):  # below the floor, chosen by the data, none
        assert first(*points).startswith("No combination of 1 is shown to be faster at equal quality")


def test_who_earned_it_is_the_second_of_three() -> None:
    effect = replace(
        example().effects[0], resolved_time=True, time=Interval(1.2, 1.14, 1.26, 5), resolved_quality=False
    )
    lines = said(arm("a", "FASTER at equal quality"), effects=(effect,), exploratory=True)
    assert len(lines) == 3
    assert lines[1] == (
        f"Strongest main effects, averaged over all contexts: {effect.method} x1.20 [1.14, 1.26] (n=5) (faster)."
    )
    assert lines[2] == (
        "Noise floor 2.1 % (on the train clock, 5 A/A pairs); TARGET SET AFTER DATA: exploratory; "
        "one workload, one machine: no claim beyond."
    )


@pytest.mark.parametrize("num", [1, 2, 3])
def test_red_withholds_with_one_sentence_and_names_the_others(num: int) -> None:
    reds = tuple(Guard(f"g{i}", "red", None, f"Reason {i}.") for i in range(num))
    lines = said(arm("a", "WITHHELD"), red=reds)
    assert lines[0] == "Headline withheld: Reason 0."
    assert len(lines) == min(num + 1, 3)
    assert lines[-1] == "One workload, one machine: no claim beyond."


def test_every_verdict_has_a_line_the_most_interesting_first() -> None:
    arms = [BASE, arm("a", "SLOWER"), arm("b", "NO EFFECT (bounded by 2.1 %)"), arm("c", "FASTER AND BETTER"),
            *(arm(f"m{i}", "INCONCLUSIVE") for i in range(9))]  # fmt: skip
    assert by_verdict(arms) == (
        "FASTER AND BETTER (1 arm): c.", "SLOWER (1 arm): a.", "NO EFFECT (bounded by 2.1 %) (1 arm): b.",
        "INCONCLUSIVE (9 arms): m0, m1, m2, m3, m4, m5 and 3 more.",
    )  # fmt: skip
