"""The report as Markdown for a pull request: GitHub's tables, names in code spans, everything else escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from expkit.report.blocks import Block, Cell, Chart, Code, Page, Table, Text, Verdicts

_SPECIAL = re.compile(r"[\\`*\[\]<|~$]|(?<![^\W_])_|_(?![^\W_])|!(?=\[)|&(?=[#\w])")
_MENTION = re.compile(r"@(?=\w)")
_LEADING = re.compile(r"^(?=>|[-+=#][-+=#\s]|[-+=#]$)|^\d+(?=[.)](?:\s|$))")


def to_markdown(page: Page) -> str:
    """The whole page; folded blocks inside `<details>`, charts as the sentence that describes them."""
    lines = [f"# {escape(page.title)}", "", escape(page.subtitle), ""]
    for part in page.parts:
        lines += [f"## {escape(part.title)}", ""]
        for block in part.blocks:
            lines += [*_block(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def escape(text: str) -> str:
    """Text that shows as it is: no markup, no HTML, nobody mentioned, no list or heading begun by accident."""
    plain = _SPECIAL.sub(lambda m: "&amp;" if m[0] == "&" else "&lt;" if m[0] == "<" else "\\" + m[0], text)
    quiet = _MENTION.sub("@\u200b", plain)
    return _LEADING.sub(lambda m: m[0] + "\\", quiet)


def code(text: str, *, in_table: bool = False) -> str:
    """A code span with a fence longer than any run of backticks inside."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    shown = text.replace("|", "\\|") if in_table else text
    return f"{fence}{room}{shown}{room}{fence}"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Verdicts):
        first, *others = block.lines
        yield f"> **{escape(first).strip()}**"
        for line in (*others, *block.notes):
            yield from [">", f"> {escape(line)}"]
    elif isinstance(block, Text):
        yield escape(block.text)
    elif isinstance(block, Chart):
        yield f"Chart: {escape(block.title)}. {escape(block.alt)} {escape(block.caption)}"
    elif isinstance(block, Table):
        yield from _folded(block.caption or "Table", list(_table(block))) if block.folded else _captioned(block)
    else:
        yield from (
            _folded(block.caption or "Text", _code(block))
            if block.folded
            else [escape(block.caption), "", *_code(block)]
        )


def _folded(caption: str, lines: list[str]) -> list[str]:
    return ["<details>", f"<summary>{_html(caption)}</summary>", "", *lines, "", "</details>"]


def _html(text: str) -> str:
    """Inside an HTML line Markdown still reads inline marks, so both are escaped."""
    return escape(text).replace(">", "&gt;")


def _captioned(table: Table) -> Iterator[str]:
    if table.caption:
        yield from [f"**{escape(table.caption)}**", ""]
    yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield "| " + " | ".join(escape(c.header) for c in table.columns) + " |"
    yield "|" + "|".join(" ---: " if c.align == "right" else " --- " for c in table.columns) + "|"
    for row in table.rows:
        yield "| " + " | ".join(_cell(table.cell(row, c)) for c in table.columns) + " |"
    if table.note:
        yield from ["", escape(table.note)]


def _cell(cell: Cell) -> str:
    text = code(cell.text, in_table=True) if cell.code and cell.text else escape(cell.text)
    return f"**{text}**" if cell.strong and cell.text else text


def _code(block: Code) -> list[str]:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
    return [f"{fence}{block.language}", *block.text.splitlines(), fence]
