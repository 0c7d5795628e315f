"""Learning curves."""

from __future__ import annotations

from dataclasses import replace

from expkit.report.blocks import Chart, Text
from expkit.sections.curves import Curves
from tests.report.example_summary import example


def charts(summary: object) -> list[Chart]:
    return [b for b in Curves().blocks(summary) if isinstance(b, Chart)]  # type: ignore[arg-type]


def test_by_time_and_by_step_with_the_baseline_first() -> None:
    by_time, by_step = charts(example())
    assert by_time.legend[0].label == by_step.legend[0].label == "none"
    assert by_time.legend == by_step.legend
    assert len(by_time.table.rows) == 8 * 16
    assert by_time.caption == "Mean over seeds and 95 % interval (shaded), n = 4 to 5."
    assert "none 0.8443" in by_time.alt


def test_target_is_marked_only_on_its_own_metric() -> None:
    base = example()
    other = replace(base, target=replace(base.target, metric="eval/loss"))
    assert "target 0.8412" in str(charts(base)[0].spec)
    assert "target 0.8412" not in str(charts(other)[0].spec)


def test_other_metrics_and_unknown_arms_are_not_drawn() -> None:
    base = example()
    curves = (replace(base.curves[0], metric="eval/loss"), replace(base.curves[1], arm="gone"))
    [text] = Curves().blocks(replace(base, curves=curves))
    assert isinstance(text, Text)
