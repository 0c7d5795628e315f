"""Main effects."""

from __future__ import annotations

from expkit.report.blocks import Chart, Table
from expkit.sections.effects import Effects
from tests.report.example_summary import empty, example


def test_a_row_per_method_a_chart_per_axis_and_the_credit_folded() -> None:
    table, time, quality, *credit = Effects().blocks(example())
    assert isinstance(table, Table)
    assert [b.caption for b in credit if isinstance(b, Table) and b.folded] == [
        "Credit in speedup",
        "Credit in eval/accuracy",
        "What methods do together",
        "One after the other",
        "Levels within a method",
    ]
    assert isinstance(time, Chart) and isinstance(quality, Chart)
    row = table.rows[1]
    assert (row["method"].text, row["time"].text, row["time_resolved"].text) == (
        "label_smoothing",
        "0.996 [0.981, 1.011]",
        "no",
    )
    assert (row["quality"].text, row["quality_resolved"].text) == ("+0.0021 [+0.0006, +0.0036]", "yes")
    assert time.caption == "Mean over contexts and 95 % interval, n = 5 seeds. Grey: the noise floor."
    assert quality.caption.endswith("Grey: the non-inferiority margin, ±0.005.")


def test_without_effects_it_says_what_they_need() -> None:
    [text] = Effects().blocks(empty())
    assert "differ in one method only" in str(text)
