"""The four forms of chart that a report has, as Vega-Lite specifications; the face adds the width, nothing here draws.

Labels stand inside the plot, above what they name, or in a legend under the chart, so that a long name costs no
width on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from expkit.report import vega
from expkit.report.blocks import Cell, Chart, Column, Entry, Table
from expkit.report.looks import COLOURS, GREY, PARTS, Style
from expkit.report.vega import field, layer

MOST = 24
"""Labelled rows that one chart shows; the table behind it has all."""
MOST_LINES = 10
ROW = 38  # pixels: a label and the mark under it


@dataclass(frozen=True)
class Words:
    """What is written around a chart."""

    title: str
    x: str
    y: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Estimate:
    """A labelled value with its interval, and the same as a reader will see it in a table."""

    label: str
    value: float
    lo: float | None
    hi: float | None
    n: int
    text: str


@dataclass(frozen=True)
class Step:
    """One point of a learning curve."""

    x: float
    y: float
    lo: float | None
    hi: float | None


@dataclass(frozen=True)
class Cross:
    """A labelled point with an interval each way, each as (value, low, high)."""

    label: str
    x: tuple[float, float | None, float | None]
    y: tuple[float, float | None, float | None]


def forest(
    words: Words,
    estimates: Sequence[Estimate],
    *,
    centre: float,
    band: tuple[float, float] | None,
    log: bool,
    what: str,
) -> Chart:
    """Intervals under each other against a line at `centre` and a band of what counts as nothing."""
    shown = estimates[:MOST]
    rows = [{"row": i, "name": e.label, "value": e.value, "lo": e.lo, "hi": e.hi} for i, e in enumerate(shown)]
    x = vega.measure(words.x, _reach([(e.value, e.lo, e.hi) for e in shown], centre, *(band or ())), log=log)
    y = vega.rows_down(len(rows), above=0.8, below=0.35)
    mark = {"type": "point", "filled": True, "size": 70, "opacity": 1, "color": COLOURS[0]}
    bar = {"type": "rule", "color": COLOURS[0], "strokeWidth": 3}
    layers = [
        *([vega.band(*band)] if band else []),
        vega.line_at("x", centre),
        layer(bar, {"x": field("lo", x), "x2": {"field": "hi"}, "y": field("row", y)}, needs="lo"),
        layer(mark, {"x": field("value", x), "y": field("row", y)}),
        vega.labels(rows, y, dy=-8),
    ]
    table = _estimates_table(words.x, estimates, what)
    return _chart(words, _spec(ROW * len(rows) + 10, rows, layers), table, shown, estimates)


def curves(
    words: Words,
    lines: Mapping[str, Sequence[Step]],
    looks: Mapping[str, Style],
    target: tuple[float, str] | None,
    table: Table,
) -> Chart:
    """Means over training with their intervals; the baseline is the grey one, drawn thick."""
    shown = dict(list(lines.items())[:MOST_LINES])
    styles = [looks[label] for label in shown]
    points = [(label, step) for label, steps in shown.items() for step in thinned(steps)]
    rows = [
        {"arm": label, "x": s.x, "y": s.y, "lo": s.lo, "hi": s.hi, "fill": looks[label].colour} for label, s in points
    ]
    x = vega.from_zero(words.x)
    y = vega.measure(words.y, _reach([(s.y, s.lo, s.hi) for _, s in points], *(target[:1] if target else ())))
    fill = {"field": "fill", "type": "nominal", "scale": None}
    area = {
        "x": field("x", x),
        "y": field("lo", y),
        "y2": {"field": "hi"},
        "detail": field("arm", vega.NOMINAL),
        "fill": fill,
    }
    line = {
        "x": field("x", x),
        "y": field("y", y),
        "color": vega.choices("arm", list(shown), [s.colour for s in styles]),
        "strokeDash": vega.choices("arm", list(shown), [list(s.dash) for s in styles]),
        "strokeWidth": vega.choices("arm", list(shown), [4 if s.colour == GREY else 2 for s in styles]),
    }
    layers = [layer({"type": "area", "opacity": 0.12}, area, needs="lo"), layer({"type": "line"}, line)]
    layers += [vega.line_at("y", target[0], dashed=True), vega.note_at(*target)] if target else []
    legend = [Entry(label, looks[label].colour, dash=looks[label].dash) for label in shown]
    return _chart(words, _spec(300, rows, layers), table, shown, lines, legend)


def crosses(
    words: Words,
    points: Sequence[Cross],
    looks: Mapping[str, Style],
    *,
    centre: tuple[float, float],
    band: tuple[float, float] | None,
    floor: float,
    table: Table,
) -> Chart:
    """Points with intervals both ways around a centre; a band of no time effect, a line at the worst still equal."""
    shown = points[:MOST_LINES]
    names = [p.label for p in shown]
    rows = [
        {"arm": p.label, "x": p.x[0], "xlo": p.x[1], "xhi": p.x[2], "y": p.y[0], "ylo": p.y[1], "yhi": p.y[2]}
        for p in shown
    ]
    x = vega.measure(words.x, _reach([p.x for p in shown], centre[0], *(band or ())), log=True)
    y = vega.measure(words.y, _reach([p.y for p in shown], centre[1], floor))
    colour = vega.choices("arm", names, [looks[n].colour for n in names])
    shape = vega.choices("arm", names, [looks[n].shape for n in names])
    bar, mark = {"type": "rule", "strokeWidth": 2}, {"type": "point", "filled": True, "opacity": 1, "size": 110}
    layers = [
        *([vega.band(*band)] if band else []),
        vega.line_at("x", centre[0]),
        vega.line_at("y", centre[1]),
        vega.line_at("y", floor, dashed=True),
        layer(bar, {"x": field("xlo", x), "x2": {"field": "xhi"}, "y": field("y", y), "color": colour}, needs="xlo"),
        layer(bar, {"x": field("x", x), "y": field("ylo", y), "y2": {"field": "yhi"}, "color": colour}, needs="ylo"),
        layer(mark, {"x": field("x", x), "y": field("y", y), "color": colour, "shape": shape}),
    ]
    legend = [Entry(name, looks[name].colour, shape=looks[name].shape) for name in names]
    return _chart(words, _spec(320, rows, layers), table, shown, points, legend)


def bars(words: Words, stacks: Mapping[str, Mapping[str, float]], table: Table) -> Chart:
    """A stacked bar per label, its name above it; the same parts in the same order everywhere."""
    shown = dict(list(stacks.items())[:MOST])
    parts = list(dict.fromkeys(part for stack in shown.values() for part in stack))
    colours = [PARTS[i % len(PARTS)] for i in range(len(parts))]
    rows: list[dict[str, Any]] = []
    for i, stack in enumerate(shown.values()):
        start = 0.0
        for part, value in stack.items():
            rows.append({"row": i + 0.05, "end": i + 0.38, "part": part, "from": start, "to": start + value})
            start += value
    x, y = vega.from_zero(words.x), vega.rows_down(len(shown), above=0.6, below=0.6)
    place = {"x": field("from", x), "x2": {"field": "to"}, "y": field("row", y), "y2": {"field": "end"}}
    mark = {"type": "rect", "stroke": "white", "strokeWidth": 0.7}
    layers = [
        layer(mark, {**place, "color": vega.choices("part", parts, colours)}),
        vega.labels([{"row": i, "name": name} for i, name in enumerate(shown)], y, dy=-2),
    ]
    legend = [Entry(name, colour, shape="square") for name, colour in zip(parts, colours, strict=True)]
    return _chart(words, _spec(ROW * len(shown) + 10, rows, layers), table, shown, stacks, legend)


def thinned(steps: Sequence[Step], most: int = 250) -> Sequence[Step]:
    """Every k-th step and the last one, so that a line has hardly more than `most`."""
    k = math.ceil(len(steps) / most)
    return steps if k <= 1 else [*steps[:-1:k], steps[-1]]


def _chart(
    words: Words, spec: vega.Spec, table: Table, shown: Sized, everything: Sized, legend: Sequence[Entry] = ()
) -> Chart:
    left_out = len(everything) > len(shown)
    rest = f" Shown are the first {len(shown)} of {len(everything)}; the table has all." if left_out else ""
    return Chart(words.title, spec, words.alt, words.caption + rest, table, tuple(legend))


def _spec(height: int, rows: list[dict[str, Any]], layers: list[vega.Spec]) -> vega.Spec:
    return {"height": height, "data": {"values": rows}, "layer": layers}


def _reach(triples: Sequence[tuple[float, float | None, float | None]], *more: float) -> list[float]:
    return [*(v for triple in triples for v in triple if v is not None), *more]


def _estimates_table(axis: str, estimates: Sequence[Estimate], what: str) -> Table:
    columns = (Column("label", what), Column("value", axis, align="right"), Column("n", "n", align="right"))
    rows = [
        {"label": Cell(e.label, code=True), "value": Cell(e.text, e.value), "n": Cell(str(e.n), e.n)} for e in estimates
    ]
    return Table(columns, tuple(rows), folded=True)
