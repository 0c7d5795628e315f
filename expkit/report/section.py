"""Section: one part of a report, found by name in `expkit/sections`; a page is all of them in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Summary
from expkit.plugins import Plugin, build, names
from expkit.report.blocks import Block, Page, Part
from expkit.report.numbers import count, moment, progress


@dataclass(frozen=True)
class Section(Plugin, ABC):
    """Turns a summary into blocks; says in a sentence what is missing rather than showing an empty table."""

    title: ClassVar[str]
    order: ClassVar[int]
    """Place on the page; own sections stand at 10, 20, ... so that outside ones can go between."""

    @abstractmethod
    def blocks(self, summary: Summary) -> Sequence[Block]:
        """What this section shows; nothing at all where it has nothing to say."""


def make_page(summary: Summary) -> Page:
    """All sections, own and outside ones, by their order; a section without blocks leaves no heading."""
    found = {name: build("sections", name, {}) for name in names("sections")}
    ordered = sorted(found.items(), key=lambda each: (getattr(each[1], "order", 1000), each[0]))
    parts = [
        Part(name, section.title, tuple(section.blocks(summary)))
        for name, section in ordered
        if isinstance(section, Section)
    ]
    return Page(f"Report of sweep {summary.sweep}", _subtitle(summary), tuple(p for p in parts if p.blocks))


def _subtitle(summary: Summary) -> str:
    made = f"made {moment(summary.generated_utc)}" if summary.generated_utc else ""
    running = "still running" if summary.running else ""
    return " · ".join(filter(None, [f"{count(len(summary.arms), 'arm')}", progress(summary), running, made]))
