"""Every chart is valid Vega-Lite, draws without a network, and its labels do not overlap or leave the picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import altair
import pytest

from expkit.analysis.model import Summary
from expkit.report.blocks import Chart
from expkit.report.charts import MOST, MOST_LINES, Step, thinned
from expkit.report.section import make_page
from expkit.report.svg import draw, specification
from tests.report.example_summary import example, hostile, many

WIDTHS = (340, 560, 740)


def charts_of(summary: Summary) -> list[Chart]:
    return [b for part in make_page(summary).parts for b in part.blocks if isinstance(b, Chart)]


@dataclass(frozen=True)
class Box:
    """Where a text lies; the width is estimated at 6.4 pixels a letter, as wide fonts have at 12 pixels."""

    text: str
    left: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        return abs(self.bottom - other.bottom) < 11 and self.left < other.right and other.left < self.right


@pytest.mark.parametrize("k", range(6))
def test_specification_is_valid(k: int) -> None:
    altair.LayerChart.from_dict(dict(specification(charts_of(example())[k], 560)))


def test_there_are_the_charts_that_the_page_promises() -> None:
    assert [c.title for c in charts_of(example())] == [
        "Speedup at equal budget",
        "Main effects on time",
        "Main effects on quality",
        "Quality against time at equal budget",
        "eval/accuracy by training time",
        "eval/accuracy by step",
        "Where the time went",
    ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("k", range(7))
def test_texts_of_a_chart_neither_overlap_nor_leave_it(k: int, width: int) -> None:
    svg = draw(charts_of(example())[k], width, "c")
    root = ET.fromstring(svg)
    assert float(root.attrib["width"]) == pytest.approx(width, abs=1)
    boxes = text_boxes(root)
    assert len(boxes) > 3
    assert [(a.text, b.text) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)] == []
    assert [b.text for b in boxes if b.left < -1 or b.right > width + 1] == []


def test_every_chart_says_n_and_its_interval_and_has_its_table_and_its_alternative() -> None:
    for chart in charts_of(example()):
        assert "n = " in chart.caption
        assert len(chart.table.rows) >= 3
        assert len(chart.alt) > 30
        assert "interval" in chart.caption or chart.title == "Where the time went"


def test_axes_carry_their_units() -> None:
    titles = [text for c in charts_of(example()) for text in re.findall(r"'title': '([^']+)'", str(c.spec))]
    assert "speedup on train_s [×], faster to the right" in titles
    assert "training time, train_s [s]" in titles
    assert "step [batches]" in titles
    assert "seconds per replicate [s]" in titles


def test_many_arms_leave_out_the_rest_and_say_so() -> None:
    by_title = {c.title: c for c in charts_of(many(6))}
    forest, lines = by_title["Speedup at equal budget"], by_title["eval/accuracy by step"]
    assert f"Shown are the first {MOST} of 63" in forest.caption
    assert len(forest.table.rows) == 63
    assert f"Shown are the first {MOST_LINES} of 64" in lines.caption


def test_long_names_are_cut_before_the_edge_of_the_drawing() -> None:
    for chart in charts_of(hostile()):
        for box in text_boxes(ET.fromstring(draw(chart, 340, "c"))):
            assert box.right - box.left < 1.5 * 340  # 200 characters would be more than twice that


def test_hostile_names_stay_text_in_the_drawing() -> None:
    for k, chart in enumerate(charts_of(hostile())):
        svg = draw(chart, 340, f"c{k}")
        root = ET.fromstring(svg)  # still one well-formed element
        assert not {e.tag.split("}")[1] for e in root.iter()} & {"script", "img", "image", "foreignObject", "a"}
        assert not [name for e in root.iter() for name in e.attrib if name.startswith("on")]


def test_ids_do_not_clash_between_charts_and_equal_charts_are_equal_text() -> None:
    chart = charts_of(example())[0]
    first, again, other = draw(chart, 560, "a"), draw(chart, 560, "a"), draw(chart, 560, "b")
    assert first == again
    ids = [set(re.findall(r'id="([^"]+)"', svg)) for svg in (first, other)]
    assert not ids[0] & ids[1]


def test_long_lines_are_thinned_and_keep_their_end() -> None:
    steps = [Step(float(i), 0.0, None, None) for i in range(10_001)]
    short = thinned(steps)
    assert len(short) <= 251
    assert (short[0].x, short[-1].x) == (0.0, 10_000.0)
    assert thinned(steps[:10]) == steps[:10]


def text_boxes(root: ET.Element) -> list[Box]:
    """Horizontal texts with their place on the whole drawing; turned ones (y-axis titles) are left out."""
    found: list[Box] = []

    def walk(element: ET.Element, x: float, y: float) -> None:
        moved = re.fullmatch(r"translate\(([-\d.]+),\s*([-\d.]+)\)", element.get("transform", ""))
        if element.get("transform") and not moved:
            return
        x, y = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
        if element.tag.endswith("}text") and element.text:
            width = 6.4 * len(element.text)
            left = {"start": x, "middle": x - width / 2, "end": x - width}[element.get("text-anchor", "start")]
            found.append(Box(element.text, left, left + width, y))
        for child in element:
            walk(child, x, y)

    walk(root, 0.0, 0.0)
    return found
