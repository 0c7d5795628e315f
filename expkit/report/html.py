"""The report as one offline HTML file: no script, no network, static SVG, tables behind the charts.

Everything is escaped by Jinja's autoescape; only SVG from vl-convert is put in as it is. Each chart is drawn twice,
for phones and for wider screens, because text in a scaled picture cannot be read.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from expkit.report.blocks import Block, Chart, Page
from expkit.report.svg import draw

NARROW, WIDE = 340, 720
_TEMPLATE = Path(__file__).parent / "page.html.j2"


def to_html(page: Page) -> str:
    """The whole page; equal pages give equal text."""
    from markupsafe import Markup

    drawings: dict[int, tuple[str, str]] = {}
    charts = [block for part in page.parts for block in part.blocks if isinstance(block, Chart)]
    for k, chart in enumerate(charts):
        drawings[id(chart)] = Markup(draw(chart, NARROW, f"n{k}")), Markup(draw(chart, WIDE, f"w{k}"))  # noqa: S704 - vl-convert escapes text
    return str(_template().render(page=page, kind=_kind, svg=lambda chart: drawings[id(chart)], breakable=_breakable)) + "\n"


def _kind(block: Block) -> str:
    return type(block).__name__


def _breakable(text: str) -> Any:
    """Long names may break after a plus, an underscore, a slash; everything is escaped first."""
    from markupsafe import Markup, escape

    pieces = Markup("").join(escape(c) + Markup("<wbr>") if c in "+_/" else escape(c) for c in text)
    return pieces


@functools.cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
