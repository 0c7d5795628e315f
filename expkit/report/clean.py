"""Text from anywhere made safe to show: no escape sequences, no control or direction-changing characters.

Escaping for HTML or Markdown is the face's business; this takes out what no face may pass on.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]")
_JOINER = "\u200d"  # holds composed emoji together; changes no order and hides nothing


def clean(text: str) -> str:
    """One line: escape sequences and invisible characters dropped, any white space one blank."""
    return " ".join(clean_lines(text).split())


def clean_lines(text: str) -> str:
    """Several lines, as a log's tail has them; line ends become \\n, tabs four blanks."""
    plain = _ANSI.sub("", text).replace("\t", "    ")
    lines = re.split(r"\r\n|[\n\r\v\f\x85\u2028\u2029]", plain)
    return "\n".join("".join(c for c in line if _visible(c)) for line in lines)


def clean_values(value: Any) -> Any:
    """The same for every text inside JSON values, keys included; a chart's specification, say."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_values(each) for each in value]
    return value


def _visible(character: str) -> bool:
    return character == _JOINER or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn"}
