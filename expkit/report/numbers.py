"""Numbers as text: fixed decimals so that columns align, a dash where there is no number, never the word nan."""

from __future__ import annotations

import math
from collections.abc import Iterable

from expkit.analysis.model import Interval, Summary
from expkit.analysis.phrases import significant
from expkit.report.blocks import ABSENT, Cell, Tone

DASH = "–"


def fixed(value: float | None, decimals: int, *, signed: bool = False) -> str:
    """`1.220`; with a true minus and thousands set apart: `−12,345.0`. A dash for None, nan and inf."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value:{'+' if signed else ''},.{decimals}f}"
    zero = not any(digit in text for digit in "123456789")
    return text.lstrip("+-") if zero else text.replace("-", "−")


def seconds(value: float | None) -> str:
    """Three figures, whole above a hundred, as sentences write them: `0.413`, `4.13`, `41.3`, `413`."""
    if value is None or not math.isfinite(value):
        return DASH
    return significant(value).replace("-", "−")


def interval(it: Interval, decimals: int, *, signed: bool = False) -> str:
    """`1.220 [1.180, 1.260]`; without ends where there are none."""
    value = fixed(it.value, decimals, signed=signed)
    ends = (fixed(it.lo, decimals, signed=signed), fixed(it.hi, decimals, signed=signed))
    return value if DASH in ends else f"{value} [{ends[0]}, {ends[1]}]"


def level(it: Interval) -> str:
    """`95 %`"""
    return f"{100 * it.level:.3g} %"


def count(number: int, word: str, plural: str = "") -> str:
    """`1 trial`, `5 trials`, `1,024 trials`"""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def progress(summary: Summary) -> str:
    """`27 of 27 replicates complete, 5 pilots beside them`: the one count of a report, pilots apart."""
    total, complete = sum(summary.states.values()), summary.states.get("complete", 0)
    pilots, again = (sum(t.role == role for t in summary.trials) for role in ("pilot", "confirm"))
    others = [count(pilots, "pilot")] * bool(pilots) + [f"{count(again, 'replicate')} that confirm"] * bool(again)
    beside = f", {' and '.join(others)} beside them" if others else ""
    return f"{complete:,} of {count(total, 'replicate')} complete{beside}"


def moment(utc: str | None) -> str:
    """`2026-07-01 12:00:05 UTC` for the ISO form that records keep."""
    return utc.replace("T", " ").replace("Z", " UTC") if utc else DASH


def cell(text: str, value: float | None = None, tone: Tone = "") -> Cell:
    """A cell that is a quiet dash where the text is one."""
    return ABSENT if text == DASH else Cell(text, value if value is None or math.isfinite(value) else None, tone)


def ratio_cell(it: Interval) -> Cell:
    return cell(interval(it, 3), it.value)


def quality_decimals(summary: Summary) -> int:
    """One more figure than the non-inferiority margin has: 4 for 0.005 and for no margin at all."""
    return min(8, max(1, 1 - math.floor(math.log10(summary.delta)))) if summary.delta > 0 else 4


def metric_name(summary: Summary) -> str:
    return f"{summary.metric} [{summary.unit}]" if summary.unit else summary.metric


def better_if(summary: Summary) -> str:
    return "more is better" if summary.mode == "max" else "less is better"


def span(counts: Iterable[int]) -> str:
    """`5`, or `4 to 5` where they differ."""
    low, high = min(found := list(counts)), max(found)
    return f"{low}" if low == high else f"{low} to {high}"


def unique(levels: list[str]) -> str:
    """The one level that all intervals of a column share, or nothing to say."""
    return levels[0] if len(set(levels)) == 1 else ""
