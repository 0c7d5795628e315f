"""The table of arms and the chart of their speedups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from expkit.analysis.model import Interval
from expkit.report.blocks import Chart, Table
from expkit.sections.arms import Arms, tone_of
from tests.report.example_summary import all_failed, empty, example


def test_a_row_per_arm_with_everything_about_it() -> None:
    table, chart, more = Arms().blocks(example())
    assert isinstance(table, Table) and isinstance(chart, Chart) and isinstance(more, Table)
    assert [c.header for c in table.columns] == [
        "arm",
        "verdict",
        "speedup [×, 95 % interval]",
        "n [pairs]",
        "quality difference [90 % interval]",
        "eval/accuracy [mean, 95 % interval]",
        "time to target [s, hits]",
    ]
    first, second = table.rows[0], table.rows[1]
    assert (first["arm"].text, first["verdict"].text, first["speedup"].text) == ("none", "baseline", "1")
    assert {key: cell.text for key, cell in second.items()} == {
        "arm": "progressive_resizing",
        "verdict": "TRADE: faster, worse",
        "speedup": "1.228 [1.201, 1.255]",
        "pairs": "5",
        "difference": "−0.0208 [−0.0230, −0.0186]",
        "quality": "0.8254 [0.8224, 0.8284]",
        "target": "> 3.34 s (0/5)",
    }
    assert [row["trials"].text for row in more.rows].count("4 / 5") == 1


def test_a_withheld_arm_says_how_many_and_an_equal_one_says_whose_equal() -> None:
    base = example()
    arms = tuple(replace(a, equals="ema") if a.label == "label_smoothing" else a for a in base.arms)
    [table, *_] = Arms().blocks(replace(base, arms=arms))
    assert isinstance(table, Table)
    verdicts = {row["arm"].text: row["verdict"].text for row in table.rows}
    assert verdicts["ema+label_smoothing+progressive_resizing"] == "WITHHELD (4 of 5 trials)"
    assert verdicts["label_smoothing"].endswith("(equals ema)")


def test_chart_has_the_noise_floor_and_the_fastest() -> None:
    _, chart, _ = Arms().blocks(example())
    assert isinstance(chart, Chart)
    assert chart.caption.startswith("Mean and 95 % interval, n = 4 to 5 pairs of seeds.")
    assert chart.caption.endswith("The grey band is the noise floor, ×0.979 to ×1.021.")
    assert "progressive_resizing 1.228 [1.201, 1.255]" in chart.alt


def test_no_speedup_no_chart_and_no_arm_a_sentence() -> None:
    assert not [b for b in Arms().blocks(all_failed()) if isinstance(b, Chart)]
    assert len(list(Arms().blocks(empty()))) == 1


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [
        ("FASTER AND BETTER", "good"),
        ("FASTER at equal quality", "good"),
        ("FASTER, quality not established", "warn"),
        ("BETTER, time unresolved", "good"),
        ("TRADE: slower, better", "warn"),
        ("SLOWER AND WORSE", "bad"),
        ("WORSE at equal time", "bad"),
        ("FAILED", "bad"),
        ("WITHHELD", "warn"),
        ("NO EFFECT (bounded by 2.1 %)", "quiet"),
        ("INCONCLUSIVE", "quiet"),
    ],
)
def test_tone(verdict: str, tone: str) -> None:
    assert tone_of(replace(example().arms[1], verdict=verdict)) == tone


def test_a_sweep_of_which_all_failed_shows_no_speedup_of_one_and_no_hits() -> None:
    base = example()
    arms = tuple(replace(a, complete=0, failed=a.planned, speedup=Interval()) for a in base.arms)
    table = Arms().blocks(replace(base, arms=arms))[0]
    assert isinstance(table, Table)
    assert {row[key].text for row in table.rows for key in ("speedup", "target")} == {"–"}
