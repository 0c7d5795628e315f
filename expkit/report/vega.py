"""Pieces of Vega-Lite specifications: scales, axes, reference lines and bands, labels inside the plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from expkit.report.looks import GREY

Spec = dict[str, Any]
NOMINAL: Spec = {"type": "nominal"}
ONE_ROW: Spec = {"values": [{}]}


def layer(mark: Spec, encoding: Spec, rows: Sequence[Spec] | None = None, needs: str = "") -> Spec:
    """One layer; with rows of its own, or only those of the chart's rows where the field `needs` has a value."""
    made: Spec = {"mark": mark, "encoding": encoding}
    if rows is not None:
        made["data"] = {"values": list(rows)}
    if needs:
        made["transform"] = [{"filter": f"datum.{needs} != null"}]
    return made


def field(name: str, channel: Spec) -> Spec:
    """A channel with its scale and axis, reading a field."""
    return {**channel, "field": name}


def line_at(axis: str, value: float, *, dashed: bool = False) -> Spec:
    """A grey line through the whole plot at a value of x or y."""
    mark = {
        "type": "rule",
        "color": GREY,
        "strokeWidth": 1.5,
        "aria": False,
        **({"strokeDash": [3, 3]} if dashed else {}),
    }
    return {"data": ONE_ROW, "mark": mark, "encoding": {axis: at(value)}}


def band(low: float, high: float) -> Spec:
    """A grey band of x values through the whole plot."""
    mark = {"type": "rect", "color": GREY, "opacity": 0.18, "aria": False}
    return {"data": ONE_ROW, "mark": mark, "encoding": {"x": at(low), "x2": {"datum": high}}}


def at(value: float) -> Spec:
    return {"datum": value, "type": "quantitative"}


def labels(rows: Sequence[Spec], y: Spec, dy: int) -> Spec:
    """Names at the plot's left edge; cut where they would leave it in a font an eighth wider than the one measured."""
    mark = {
        "type": "text",
        "align": "left",
        "baseline": "bottom",
        "dy": dy,
        "limit": {"expr": "0.86 * width"},
        "aria": False,
    }
    return layer(mark, {"x": {"value": 0}, "y": field("row", y), "text": field("name", NOMINAL)}, rows)


def note_at(value: float, text: str) -> Spec:
    """A few words on a horizontal line, at the left."""
    mark = {"type": "text", "align": "left", "baseline": "bottom", "dy": -3, "dx": 4}
    return layer(mark, {"x": {"value": 0}, "y": at(value), "text": field("text", NOMINAL)}, [{"text": text}])


def measure(title: str, reach: Sequence[float], *, log: bool = False) -> Spec:
    """A quantitative channel over all of `reach` with a little room, and few round ticks."""
    axis = {"title": title, "format": ",.12~g", "values": ticks(*padded(reach))}
    if not log or min(reach) <= 0:
        return {"type": "quantitative", "scale": {"domain": padded(reach), "nice": False, "zero": False}, "axis": axis}
    low, high = (math.exp(v) for v in padded([math.log(v) for v in reach]))
    axis["values"] = ticks(low, high)
    return {"type": "quantitative", "scale": {"type": "log", "domain": [low, high], "nice": False}, "axis": axis}


def from_zero(title: str) -> Spec:
    """A quantitative channel that begins at zero and ends where the data do."""
    axis = {"title": title, "format": ",.12~g", "tickCount": 5}
    return {"type": "quantitative", "scale": {"zero": True, "nice": False}, "axis": axis}


def rows_down(num_rows: int, above: float, below: float) -> Spec:
    """A channel of row numbers from the top down, without an axis; room in rows above the first and below the last."""
    scale = {"domain": [-above, num_rows - 1 + below], "nice": False, "zero": False, "reverse": True}
    return {"type": "quantitative", "axis": None, "scale": scale}


def choices(name: str, values: Sequence[str], shown_as: Sequence[Any]) -> Spec:
    """A channel that shows each value of a field as a given colour, dash, width or shape; its legend stands outside."""
    kind = "ordinal"  # said, for a range of one number alone is taken for the ends of a line: a stroke of width NaN
    scale = {"type": kind, "domain": list(values), "range": list(shown_as)}
    return {"field": name, "type": "nominal", "legend": None, "sort": list(values), "scale": scale}


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers inside [low, high], at most `most`; the step is 1, 2 or 5 times a power of ten."""
    if not low < high:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def padded(values: Sequence[float]) -> tuple[float, float]:
    """The range of the values and 6 % more on both sides; something around them where they are all equal."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = 0.06 * (high - low) or abs(high) * 0.05 or 1.0
    return low - room, high + room
