"""The verdict box: what to take away, in three sentences at most, then what those have no room for and rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Summary, VerdictBox
from expkit.analysis.phrases import listing
from expkit.report.blocks import Block, Text, Verdicts
from expkit.report.numbers import better_if, count, progress
from expkit.report.section import Section

DIRECTION = "Speedup = baseline time / arm time; more than one is faster."
MOST_METHODS = 6
"""That have a line each; the section on effects has all."""


@dataclass(frozen=True)
class Verdict(Section):
    """Headline sentences, each method and verdict, where the target came from, which clock ran, which way is better."""

    title: ClassVar[str] = "Verdict"
    order: ClassVar[int] = 10

    def blocks(self, summary: Summary) -> Sequence[Block]:
        lines = summary.headline or (_nothing(summary),)
        notes = (
            *summary.box.further,
            *_methods(summary),
            summary.box.scope,
            summary.target.sentence,
            _terms(summary.box),
            summary.clock_sentence,
            f"{DIRECTION} {summary.metric}: {better_if(summary)}.",
        )
        running = [Text(_running(summary))] if summary.running else []
        said = {"", *lines}  # who earned it stands in the headline, where no confirmation has its place
        return [*running, Verdicts(lines, tuple(note for note in notes if note not in said))]


def _methods(summary: Summary) -> list[str]:
    """A line a method where the headline is not withheld."""
    box = summary.box
    if not box.further:
        return []
    shown = [f"{one.method}: {one.verdict}. {one.sentence}" for one in box.methods[:MOST_METHODS]]
    more = len(box.methods) - len(shown)
    return [*shown, f"{count(more, 'more method')}: under What each method does."] if more > 0 else shown


def _terms(box: VerdictBox) -> str:
    """What was fixed in advance and what was not, in one line."""
    parts = (("Fixed in advance", box.fixed), ("not fixed", box.not_fixed), ("not on record", box.unknown))
    said = "; ".join(f"{name}: {listing(values)}" for name, values in parts if values)
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _running(summary: Summary) -> str:
    return f"This sweep is still running: {progress(summary)}. The numbers below use what is complete and will change."


def _nothing(summary: Summary) -> str:
    total = sum(summary.states.values())
    if not total:
        return "Nothing has run yet, so there is nothing to compare."
    if not summary.states.get("complete"):
        return f"None of {count(total, 'replicate')} is complete, so there is nothing to compare."
    return "No comparison can be made from what is complete."
