"""What a section of the report is made of; every face renders these few kinds, so a section writes no HTML.

All text is cleaned as a block is made, so no face can forget to. Numbers come formatted, with their value beside
them where a face may want to sort or compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from expkit.report.clean import clean, clean_lines, clean_values

Tone = Literal["", "good", "bad", "warn", "quiet"]
Align = Literal["left", "right"]


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table; `tone` says how it should feel, never the only carrier of a meaning."""

    text: str
    value: float | None = None
    tone: Tone = ""
    strong: bool = False
    code: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean(self.text))


@dataclass(frozen=True)
class Column:
    """A column with its unit; the unit stands in the header, not in the cells."""

    key: str
    title: str
    unit: str = ""
    align: Align = "left"
    minor: bool = False
    """Left out first where a terminal is narrow."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", clean(self.title))
        object.__setattr__(self, "unit", clean(self.unit))

    @property
    def header(self) -> str:
        return f"{self.title} [{self.unit}]" if self.unit else self.title


@dataclass(frozen=True)
class Text:
    """A paragraph; `note` is small print under what it explains."""

    text: str
    note: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean(self.text))


@dataclass(frozen=True)
class Table:
    """Rows by column key; a key that a row lacks shows as a dash. `folded` tables start closed where a face can."""

    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]
    caption: str = ""
    note: str = ""
    """How to read it: definitions, formula, direction."""
    folded: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "caption", clean(self.caption))
        object.__setattr__(self, "note", clean(self.note))

    def cell(self, row: Mapping[str, Cell], column: Column) -> Cell:
        return row.get(column.key, ABSENT)


@dataclass(frozen=True)
class Entry:
    """One line of a legend: a colour with a dash pattern, or with a shape, and whose they are."""

    label: str
    colour: str
    dash: tuple[int, ...] = ()
    shape: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", clean(self.label))


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification without a width (the face gives it) and the table of the numbers behind it."""

    title: str
    spec: Mapping[str, Any]
    alt: str
    """What a reader who cannot see it would want to be told."""
    caption: str
    """n, kind of interval, what is left out."""
    table: Table
    legend: tuple[Entry, ...] = ()
    """Under the chart and not in it, because names have any length; empty where marks are labelled directly."""

    def __post_init__(self) -> None:
        for name in ("title", "alt", "caption"):
            object.__setattr__(self, name, clean(getattr(self, name)))
        object.__setattr__(self, "spec", clean_values(self.spec))


@dataclass(frozen=True)
class Verdicts:
    """The sentences to take away, most important first, and in small print what they rest on."""

    lines: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(map(clean, self.lines)))
        object.__setattr__(self, "notes", tuple(map(clean, self.notes)))


@dataclass(frozen=True)
class Code:
    """Something to copy, or a log's last lines: kept line by line."""

    text: str
    language: str = ""
    caption: str = ""
    folded: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean_lines(self.text))
        object.__setattr__(self, "caption", clean(self.caption))


Block = Text | Table | Chart | Verdicts | Code
ABSENT = Cell("–", tone="quiet")


@dataclass(frozen=True)
class Part:
    """One section's contribution to a page."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """The whole report, before it has a face."""

    title: str
    subtitle: str
    parts: tuple[Part, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", clean(self.title))
        object.__setattr__(self, "subtitle", clean(self.subtitle))
