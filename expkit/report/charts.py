"""Vega-Lite specifications of the few chart forms a report has; the face adds the width, nothing here draws.

Colours are those of Okabe and Ito without yellow, which vanishes on white; dash and shape say the same once more.
Greys are mid-tones that hold on a white and on a black page. Labels stand inside the plot, above what they name,
so that a long name costs no width on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from expkit.report.blocks import Cell, Chart, Column, Entry, Table

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ((1, 0), (6, 3), (2, 2), (10, 3), (8, 3, 2, 3), (4, 4))
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
GREY = "#808080"
PARTS = (*COLOURS, "#999999", "#555555", "#004D73", "#7A3500")
MOST = 24
"""Marks with a label of their own that one chart shows; the table behind it has all."""
MOST_LINES = 10
ROW = 38  # pixels: a label and the mark under it


@dataclass(frozen=True)
class Style:
    """How one arm looks, the same in every chart of a page."""

    colour: str
    dash: tuple[int, ...]
    shape: str


@dataclass(frozen=True)
class Estimate:
    """A labelled value with its interval, as a row of `forest` shows it."""

    label: str
    value: float
    lo: float | None
    hi: float | None
    n: int
    text: str
    """The same as a reader will see it in a table: `1.220 [1.180, 1.260]`."""


@dataclass(frozen=True)
class Point:
    """A labelled point with intervals both ways."""

    label: str
    x: tuple[float, float | None, float | None]
    y: tuple[float, float | None, float | None]


def styles(labels: Sequence[str], baseline: str) -> dict[str, Style]:
    """A look for each label in order: grey and solid for the baseline, colour with dash and shape for the others.

    Dash and shape turn one further with each round of colours, so that no two of 36 share all three.
    """
    looks = {baseline: Style(GREY, (1, 0), "circle")}
    for i, label in enumerate(label for label in labels if label != baseline):
        turned = i + i // len(COLOURS)
        looks[label] = Style(COLOURS[i % len(COLOURS)], DASHES[turned % len(DASHES)], SHAPES[(turned + 1) % len(SHAPES)])
    return looks


def forest(
    title: str,
    axis: str,
    estimates: Sequence[Estimate],
    *,
    centre: float,
    band: tuple[float, float] | None,
    log: bool,
    caption: str,
    alt: str,
    label: str = "arm",
) -> Chart:
    """Intervals under each other against a line at `centre` and a band of what counts as nothing."""
    shown = list(estimates[:MOST])
    rows = [_row(i, each) for i, each in enumerate(shown)]
    reach = [v for e in shown for v in (e.value, e.lo, e.hi) if v is not None] + [centre, *(band or ())]
    x = {"type": "quantitative", "scale": _scale(reach, log), "axis": _axis(axis, ticks(min(reach), max(reach)))}
    y = {"field": "row", "type": "quantitative", "axis": None, "scale": {"domain": [-0.8, len(rows) - 0.35], "nice": False, "zero": False, "reverse": True}}  # fmt: skip
    has_ends = [row for row in rows if row["lo"] is not None]
    layers: list[dict[str, Any]] = [
        {"data": _values([{}]), "mark": {"type": "rule", "color": GREY, "strokeWidth": 1.5}, "encoding": {"x": {"datum": centre, "type": "quantitative"}}},
        {"data": _values(has_ends), "mark": {"type": "rule", "color": COLOURS[0], "strokeWidth": 3}, "encoding": {"x": {**x, "field": "lo"}, "x2": {"field": "hi"}, "y": y}},
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "color": COLOURS[0]}, "encoding": {"x": {**x, "field": "value"}, "y": y}},
        {"mark": {"type": "text", "align": "left", "dy": -13, "limit": {"expr": "0.86 * width"}, "aria": False}, "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "name", "type": "nominal"}}},
    ]  # fmt: skip
    if band is not None:
        layers.insert(0, _band({"x": {"datum": band[0], "type": "quantitative"}, "x2": {"datum": band[1]}}))
    spec = {"height": ROW * len(rows) + 10, "data": {"values": rows}, "layer": layers}
    return Chart(title, spec, alt, _left_out(caption, estimates, MOST, f"{label}s"), _forest_table(axis, estimates, label))


def curves(
    title: str, x_axis: str, y_axis: str, lines: Sequence[tuple[str, Sequence[tuple[float, float, float | None, float | None]]]],
    *, looks: Mapping[str, Style], target: float | None, target_text: str, caption: str, alt: str, table: Table,
) -> Chart:  # fmt: skip
    """Means over training with their intervals; the baseline is the grey one, drawn thick."""
    shown = lines[:MOST_LINES]
    labels = [name for name, _ in shown]
    colour, dash, _ = _channels(labels, looks)
    rows = [
        {"arm": name, "x": x, "y": y, "lo": lo, "hi": hi, "fill": looks[name].colour}
        for name, points in shown
        for x, y, lo, hi in thinned(points)
    ]
    reach = [v for row in rows for v in (row["y"], row["lo"], row["hi"]) if isinstance(v, float)]
    reach += [target] if target is not None else []
    x = {"field": "x", "type": "quantitative", "scale": {"zero": True, "nice": False}, "axis": {"title": x_axis, "tickCount": 5, "format": ",~f"}}
    y_scale = {"domain": _padded(reach), "nice": False, "zero": False}
    y = {"type": "quantitative", "scale": y_scale, "axis": {"title": y_axis, "values": ticks(*_padded(reach))}}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "area", "opacity": 0.12}, "transform": [{"filter": "datum.lo != null"}], "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}, "detail": {"field": "arm", "type": "nominal"}, "fill": {"field": "fill", "type": "nominal", "scale": None}}},
        {"mark": {"type": "line", "interpolate": "linear", "clip": True}, "encoding": {"x": x, "y": {**y, "field": "y"}, "color": colour, "strokeDash": dash, "strokeWidth": _channel(labels, [4 if looks[label].colour == GREY else 2 for label in labels])}},
    ]  # fmt: skip
    if target is not None:
        layers += [
            {"data": _values([{}]), "mark": {"type": "rule", "color": GREY, "strokeDash": [3, 3]}, "encoding": {"y": {"datum": target, "type": "quantitative"}}},
            {"data": _values([{"t": target_text}]), "mark": {"type": "text", "align": "left", "baseline": "bottom", "dy": -3, "dx": 4}, "encoding": {"x": {"value": 0}, "y": {"datum": target, "type": "quantitative"}, "text": {"field": "t", "type": "nominal"}}},
        ]  # fmt: skip
    spec = {"height": 300, "data": {"values": rows}, "layer": layers}
    return Chart(title, spec, alt, _left_out(caption, lines, MOST_LINES, "arms"), table, tuple(Entry(name, looks[name].colour, dash=looks[name].dash) for name in labels))


def crosses(
    title: str, x_axis: str, y_axis: str, points: Sequence[Point],
    *, looks: Mapping[str, Style], centre: tuple[float, float], x_band: tuple[float, float] | None, floor: float, log: bool, caption: str, alt: str, table: Table,
) -> Chart:  # fmt: skip
    """Points with intervals both ways around a centre; a band of no time effect, a line at the worst still equal."""
    shown = points[:MOST_LINES]
    labels = [p.label for p in shown]
    rows = [
        {"arm": p.label, "x": p.x[0], "xlo": p.x[1], "xhi": p.x[2], "y": p.y[0], "ylo": p.y[1], "yhi": p.y[2]}
        for p in shown
    ]
    xs = [v for p in shown for v in p.x if v is not None] + [centre[0], *(x_band or ())]
    ys = [v for p in shown for v in p.y if v is not None] + [centre[1], floor]
    x = {"type": "quantitative", "scale": _scale(xs, log), "axis": _axis(x_axis, ticks(min(xs), max(xs)))}
    y = {"type": "quantitative", "scale": {"domain": _padded(ys), "nice": False, "zero": False}, "axis": {"title": y_axis, "values": ticks(*_padded(ys))}}
    colour, _, shape = _channels(labels, looks)
    layers: list[dict[str, Any]] = [
        {"data": _values([{}]), "mark": {"type": "rule", "color": GREY}, "encoding": {"x": {"datum": centre[0], "type": "quantitative"}}},
        {"data": _values([{}]), "mark": {"type": "rule", "color": GREY}, "encoding": {"y": {"datum": centre[1], "type": "quantitative"}}},
        {"data": _values([{}]), "mark": {"type": "rule", "color": GREY, "strokeDash": [3, 3]}, "encoding": {"y": {"datum": floor, "type": "quantitative"}}},
        {"mark": {"type": "rule", "strokeWidth": 2}, "transform": [{"filter": "datum.xlo != null"}], "encoding": {"x": {**x, "field": "xlo"}, "x2": {"field": "xhi"}, "y": {**y, "field": "y"}, "color": colour}},
        {"mark": {"type": "rule", "strokeWidth": 2}, "transform": [{"filter": "datum.ylo != null"}], "encoding": {"x": {**x, "field": "x"}, "y": {**y, "field": "ylo"}, "y2": {"field": "yhi"}, "color": colour}},
        {"mark": {"type": "point", "filled": True, "opacity": 1, "size": 110}, "encoding": {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}, "color": colour, "shape": shape}},
    ]  # fmt: skip
    if x_band is not None:
        layers.insert(0, _band({"x": {"datum": x_band[0], "type": "quantitative"}, "x2": {"datum": x_band[1]}}))
    spec = {"height": 320, "data": {"values": rows}, "layer": layers}
    return Chart(title, spec, alt, _left_out(caption, points, MOST_LINES, "arms"), table, tuple(Entry(name, looks[name].colour, shape=looks[name].shape) for name in labels))


def bars(
    title: str, axis: str, stacks: Sequence[tuple[str, Sequence[tuple[str, float]]]],
    *, caption: str, alt: str, table: Table,
) -> Chart:  # fmt: skip
    """A stacked bar per arm, its label above it; the same parts in the same order everywhere."""
    shown = stacks[:MOST]
    parts = list(dict.fromkeys(part for _, stack in shown for part, _ in stack))
    rows: list[dict[str, Any]] = []
    for i, (name, stack) in enumerate(shown):
        start = 0.0
        for part, value in stack:
            rows.append({"row": i + 0.05, "end": i + 0.38, "part": part, "from": start, "to": start + value})
            start += value
    names = [{"row": i, "name": name} for i, (name, _) in enumerate(shown)]
    y_scale = {"domain": [-0.6, len(shown) - 0.4], "nice": False, "zero": False, "reverse": True}
    y = {"field": "row", "type": "quantitative", "axis": None, "scale": y_scale}
    x = {"field": "from", "type": "quantitative", "axis": _axis(axis, None), "scale": {"zero": True, "nice": False}}
    colours = [PARTS[i % len(PARTS)] for i in range(len(parts))]
    colour = {"field": "part", "type": "nominal", "legend": None, "scale": {"domain": parts, "range": colours}}
    layers = [
        {"mark": {"type": "rect", "stroke": "white", "strokeWidth": 0.7}, "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"field": "end"}, "color": colour}},
        {"data": _values(names), "mark": {"type": "text", "align": "left", "baseline": "bottom", "dy": -2, "limit": {"expr": "0.86 * width"}, "aria": False}, "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "name", "type": "nominal"}}},
    ]  # fmt: skip
    spec = {"height": ROW * len(shown) + 10, "data": {"values": rows}, "layer": layers}
    return Chart(title, spec, alt, _left_out(caption, stacks, MOST, "arms"), table, tuple(Entry(name, colour, shape="square") for name, colour in zip(parts, colours, strict=True)))


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers inside [low, high], at most `most`; the step is 1, 2 or 5 times a power of ten."""
    if not low < high:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def thinned(points: Sequence[tuple[float, float, float | None, float | None]], most: int = 250) -> Sequence[tuple[float, float, float | None, float | None]]:  # fmt: skip
    """Every k-th point and the last one, so that a line has at most `most`."""
    k = math.ceil(len(points) / most)
    return points if k <= 1 else [*points[:-1:k], points[-1]]


def _row(i: int, each: Estimate) -> dict[str, Any]:
    ends = (each.lo, each.hi) if each.lo is not None and each.hi is not None else (None, None)
    return {"row": i, "name": each.label, "value": each.value, "lo": ends[0], "hi": ends[1]}


def _forest_table(axis: str, estimates: Sequence[Estimate], label: str) -> Table:
    columns = (Column("label", label), Column("value", axis, align="right"), Column("n", "n", align="right"))
    rows = [
        {"label": Cell(e.label, code=True), "value": Cell(e.text, e.value), "n": Cell(str(e.n), e.n)} for e in estimates
    ]
    return Table(columns, tuple(rows), folded=True)


def _left_out(caption: str, things: Sequence[Any], most: int, word: str) -> str:
    rest = len(things) - most
    return f"{caption} Shown are the first {most} of {len(things)} {word}; the table has all." if rest > 0 else caption


def _values(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"values": rows}


def _band(place: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": _values([{}]),
        "mark": {"type": "rect", "color": GREY, "opacity": 0.18, "aria": False},
        "encoding": place,
    }


def _padded(values: Sequence[float]) -> list[float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = 0.06 * (high - low) or abs(high) * 0.05 or 1.0
    return [low - room, high + room]


def _scale(reach: Sequence[float], log: bool) -> dict[str, Any]:
    if not log or min(reach) <= 0:
        return {"domain": _padded(reach), "nice": False, "zero": False}
    low, high = _padded([math.log(v) for v in reach])
    return {"type": "log", "domain": [math.exp(low), math.exp(high)], "nice": False}


def _axis(title: str, values: list[float] | None) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": title, "format": ",.12~g", "tickCount": 5}
    return axis if values is None else {**axis, "values": values}


def _channel(labels: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    names = list(labels)
    return {"field": "arm", "type": "nominal", "legend": None, "sort": names, "scale": {"domain": names, "range": list(values)}}  # fmt: skip


def _channels(labels: Sequence[str], looks: Mapping[str, Style]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    shown = [looks[label] for label in labels]
    colour = _channel(labels, [look.colour for look in shown])
    return colour, _channel(labels, [list(look.dash) for look in shown]), _channel(labels, [look.shape for look in shown])
