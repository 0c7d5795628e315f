"""What a statistic is, as `expkit explain` says it; imports nothing, so that completion costs nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statistic:
    """One number of a report."""

    name: str
    text: str
    """Two sentences: what it is, and what to mind when it is read."""
    formula: str
    source: str = ""
    where: tuple[str, ...] = ()
    """Paths in summary.json; `[]` stands for each entry, and whatever lies below a path belongs to it."""
    also: tuple[str, ...] = ()
    """Other names that it goes by."""
