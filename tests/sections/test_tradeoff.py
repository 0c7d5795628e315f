"""Quality against time."""

from __future__ import annotations

from expkit.report.blocks import Chart
from expkit.sections.tradeoff import Tradeoff
from tests.report.example_summary import example


def test_all_arms_around_the_baseline_in_the_colours_of_the_curves() -> None:
    from expkit.sections.curves import Curves

    [chart] = Tradeoff().blocks(example())
    curves = next(iter(Curves().blocks(example())))
    assert isinstance(chart, Chart) and isinstance(curves, Chart)
    first = chart.spec["data"]["values"][0]
    assert (first["arm"], first["x"], first["y"], first["xlo"]) == ("none", 1.0, 0.0, None)
    assert [(e.label, e.colour) for e in chart.legend] == [(e.label, e.colour) for e in curves.legend]
    assert len(chart.table.rows) == 7
    assert "90 % of the quality difference" in chart.caption
