"""`-p name=value`: values for the $names of a query."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from expkit.errors import UsageError

Value = str | int | float
_NAME = re.compile(r"[A-Za-z_]\w*")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ID12 = re.compile(r"[0-9a-f]{12}")


def parameters(given: Iterable[str]) -> dict[str, Value]:
    """Values by name; UsageError for what is not NAME=VALUE or comes twice."""
    found: dict[str, Value] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.removeprefix("$")
        if not equals or not _NAME.fullmatch(name):
            raise UsageError(f"a parameter is NAME=VALUE, such as target=0.8, but got {text!r}")
        if name in found:
            raise UsageError(f"parameter {name!r} is given twice")
        found[name] = value_of(value)
    return found


def value_of(text: str) -> Value:
    """A number where it reads as one, else the text; in double quotes always text.

    Twelve hex digits are a trial's id, also where they might be a number. A number with a leading zero is text.
    """
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    if _ID12.fullmatch(text):
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and not re.match(r"[-+]?0[0-9]", text) and math.isfinite(float(text)):
        return float(text)
    return text
