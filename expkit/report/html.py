"""The report as one offline HTML file: no script, no network, static SVG, tables behind the charts.

Everything is escaped by Jinja's autoescape; only SVG from vl-convert is put in as it is. Each chart is drawn twice,
for phones and for wider screens, because text in a scaled picture cannot be read; neighbours share a row.
"""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path
from typing import Any

from expkit.report.blocks import Block, Chart, Column, Page, Part, Table
from expkit.report.svg import draw

NARROW, PAIR, WIDE = 340, 560, 740
SHAPES = {
    "circle": "M2 6a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "square": "M2.5 1.5h9v9h-9z",
    "diamond": "M7 0l5.5 6l-5.5 6l-5.5 -6z",
    "triangle-up": "M7 1l6 10h-12z",
    "triangle-down": "M7 11l6 -10h-12z",
    "cross": "M5 1h4v3h3v4h-3v3h-4v-3h-3v-4h3z",
}
"""Outlines of a legend's symbols in a box of 14 by 12."""
_TEMPLATE = Path(__file__).parent / "page.html.j2"


def to_html(page: Page) -> str:
    """The whole page; equal pages give equal text."""
    from markupsafe import Markup

    drawings: dict[int, tuple[str, str]] = {}
    rows = {part.name: _rows(part) for part in page.parts}
    for row in itertools.chain.from_iterable(rows.values()):
        for chart in row:
            if isinstance(chart, Chart):
                k, width = len(drawings), WIDE if len(row) == 1 else PAIR
                drawings[id(chart)] = Markup(draw(chart, NARROW, f"n{k}")), Markup(draw(chart, width, f"w{k}"))  # noqa: S704 - vl-convert escapes text
    lengths: dict[tuple[int, str], str] = {}  # asked for at every cell

    def length(table: Table, column: Column) -> str:
        key = id(table), column.key
        if key not in lengths:
            lengths[key] = _length(table, column)
        return lengths[key]

    helpers = {
        "kind": _kind,
        "svg": lambda chart: drawings[id(chart)],
        "breakable": _breakable,
        "length": length,
        "shapes": SHAPES,
    }
    return str(_template().render(page=page, rows=rows, **helpers)) + "\n"


def _rows(part: Part) -> list[list[Block]]:
    """Blocks one a row, but charts that follow each other together."""
    grouped = itertools.groupby(part.blocks, key=lambda block: isinstance(block, Chart))
    return [row for charts, blocks in grouped for row in ([list(blocks)] if charts else [[block] for block in blocks])]


def _length(table: Table, column: Column) -> str:
    """How much room a column wants: sentences more than names, names more than words."""
    longest = max((len(table.cell(row, column).text) for row in table.rows), default=0)
    return "long" if longest > 32 else "medium" if longest > 14 else "short"


def _kind(block: Block) -> str:
    return type(block).__name__


def _breakable(text: str) -> Any:
    """Long names may break after a plus or a slash; everything is escaped first."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"[+/]", r"\g<0><wbr>", str(escape(text))))  # noqa: S704 - no entity has either of them


@functools.cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
