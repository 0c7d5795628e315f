"""Where statements and strings of SQL begin and end, while they are being typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""--[^\n]*(?P<line>\n|\Z)
    | /\*.*?(?P<block>\*/|\Z)
    | '(?:[^']|'')*(?P<string>'|\Z)
    | "(?:[^"]|"")*(?P<name>"|\Z)
    | \$(?P<tag>\w*)\$.*?(?P<dollar>\$(?P=tag)\$|\Z)
    | ;
    | [^-/'"$;]+
    | .""",
    re.S | re.X,
)


class Token(NamedTuple):
    """A piece of text that is a comment, a string, a quoted name, a semicolon, or what lies between those."""

    kind: str
    """comment, string, name, end or code."""
    start: int
    stop: int
    closed: bool


def tokens(text: str) -> Iterator[Token]:
    """All of a text, piece by piece; the last may still be open."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ("end" if match[0] == ";" else "code")
        named = {"line": "comment", "block": "comment", "dollar": "string"}.get(kind, kind)
        yield Token(named, match.start(), match.end(), kind in ("end", "code", "line") or bool(match[kind]))


def is_complete(text: str) -> bool:
    """Whether a statement may be run as it stands: it ends with a semicolon, comments aside, or with an empty line."""
    pieces = list(tokens(text))
    if not all(piece.closed for piece in pieces):
        return False
    said = [piece for piece in pieces if piece.kind != "comment" and text[piece.start : piece.stop].strip()]
    return not said or said[-1].kind == "end" or text.endswith("\n\n")


def split(text: str) -> list[str]:
    """The statements of a text, without their semicolons; empty ones and comments alone are left out."""
    found, start, said = [], 0, False
    for piece in [*tokens(text), Token("end", len(text), len(text), True)]:
        if piece.kind == "end":
            if said:
                found.append(text[start : piece.start].strip())
            start, said = piece.stop, False
        elif piece.kind != "comment":
            said = said or bool(text[piece.start : piece.stop].strip())
    return found


def open_string(text: str) -> int | None:
    """Where the string begins that the end of a text is inside of."""
    last = [*tokens(text)][-1:]
    return next((piece.start for piece in last if piece.kind == "string" and not piece.closed), None)


def code_of(text: str) -> str:
    """A text with comments and strings blanked out."""
    return "".join(
        text[piece.start : piece.stop] if piece.kind in ("code", "end", "name") else " " * (piece.stop - piece.start)
        for piece in tokens(text)
    )
