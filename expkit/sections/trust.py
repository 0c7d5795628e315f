"""The trust panel: the ways a comparison goes wrong, each looked at; the sentences hold the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Guard, Summary
from expkit.report.blocks import Block, Cell, Column, Table, Tone
from expkit.report.section import Section

LIGHTS: dict[str, tuple[str, Tone]] = {
    "red": ("✕ red", "bad"),
    "amber": ("! amber", "warn"),
    "not checked": ("? not checked", "quiet"),
    "green": ("✓ green", "good"),
}
COLUMNS = (
    Column("light", "light"),
    Column("guard", "guard"),
    Column("sentence", "what it found"),
)


@dataclass(frozen=True)
class Trust(Section):
    """One row a guard, the worst first."""

    title: ClassVar[str] = "Can this be trusted?"
    order: ClassVar[int] = 20

    def blocks(self, summary: Summary) -> Sequence[Block]:
        if not summary.guards:
            return []
        order = list(LIGHTS)
        guards = sorted(summary.guards, key=lambda guard: order.index(_light(guard)))
        counts = Counter(map(_light, guards))
        caption = ", ".join(f"{counts[light]} {light}" for light in order if counts[light])
        note = (
            "Red withholds the headline; amber is something to know; not checked: the store lacks what it would take. "
            "expkit explain guards says what each looks for."
        )
        return [Table(COLUMNS, tuple(map(_row, guards)), caption, note)]


def _light(guard: Guard) -> str:
    return guard.light if guard.checked else "not checked"


def _row(guard: Guard) -> dict[str, Cell]:
    text, tone = LIGHTS[_light(guard)]
    return {
        "light": Cell(text, tone=tone),
        "guard": Cell(guard.name),
        "sentence": Cell(guard.sentence),
    }
