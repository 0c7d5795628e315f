"""Three questions side by side."""

from __future__ import annotations

from dataclasses import replace

from expkit.analysis.estimates import AtQuality, EqualQuality, Front, Interval
from expkit.analysis.model import Summary
from expkit.report.blocks import Chart, Table, Text
from expkit.sections.equal_quality import EqualQualities
from expkit.sections.tradeoff import Tradeoff
from tests.report.example_summary import example


def budgets() -> Summary:
    base = example()
    arms = tuple(replace(a, label=f"{a.label} trainer.ssr={b}") for a in base.arms[:2] for b in ("0.5", "1.0"))
    at = AtQuality(0.8412, True, 3.6, 3.0, Interval(1.2, 1.1, 1.3, 5), 1.21)
    found = EqualQuality(
        "ema", (0.5, 1.0), 5, (2.0, 4.0), (0.82, 0.85), (0.83, 0.85), (at,), 1.18, 1.24, (), "x1.18 to x1.24."
    )
    return replace(base, arms=arms, equal_quality=(found,))


def test_a_row_answers_all_three_and_the_points_are_folded() -> None:
    table, points = EqualQualities().blocks(budgets())
    assert isinstance(table, Table) and isinstance(points, Table)
    [row] = table.rows
    assert row["time"].text == "0.956 [0.935, 0.977]"
    assert row["quality"].text.startswith("+0.0061")
    assert (row["equal"].text, row["at"].text) == ("1.200 [1.100, 1.300]", "0.8412")
    assert row["range"].text == "1.180 to 1.240"
    assert points.folded
    assert points.rows[0]["smooth"].text == "1.210"


def test_where_budgets_were_not_varied_it_says_how_to() -> None:
    [text] = EqualQualities().blocks(example())
    assert isinstance(text, Text)
    assert "budgets: {ssr: [0.25, 0.5, 1.0]}" in text.text


def test_curves_without_a_common_quality_have_a_row_with_the_reason() -> None:
    apart = EqualQuality("ema", (0.5, 1.0), 5, sentence="No common quality.")
    table, points = EqualQualities().blocks(replace(budgets(), equal_quality=(apart,)))
    assert isinstance(table, Table) and isinstance(points, Table)
    assert (table.rows[0]["equal"].text, table.rows[0]["sentence"].text) == ("–", "No common quality.")
    assert points.rows == ()


def test_the_share_of_fronts_stands_beside_the_crosses() -> None:
    front = Front("", 5, (("ema", 0.61), ("label_smoothing", 0.2), ("progressive_resizing", 0.01)))
    [chart] = Tradeoff().blocks(replace(example(), fronts=(front,)))
    assert isinstance(chart, Chart)
    cells = {row["arm"].text: row["front"].text for row in chart.table.rows}
    assert (cells["ema"], cells["label_smoothing"]) == ("0.61 front", "0.20 possible")
    assert (cells["progressive_resizing"], cells["ema+label_smoothing"]) == ("0.01", "–")
    assert chart.table.note.endswith("approximate, n = 5 seeds.")
