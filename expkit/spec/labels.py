"""A value as it stands in the label of an arm: short, without spaces, another text for every other value."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from expkit.duration import Time
from expkit.spec.sentences import plain
from expkit.spec.tree import Mark, Scalar
from expkit.spec.words import core

MOST = 60
_APART = re.compile(r"[\s%+\[\]]")
"""What separates the parts of a label."""


def label_text(value: Any) -> str:
    """`0.1`, `2ep`, `["a","b"]`; a component as `sgd[lr=0.5]`; what is long by its size and a hash."""
    match value:
        case str() | Time() | Path():
            text = _encoded(value)
            return text if not isinstance(value, str) or _is_text(value) else json.dumps(text)
        case float():
            return repr(value + 0.0)
        case Mapping() if len(value) == 1 and all(isinstance(inner, Mapping) for inner in value.values()):
            ((name, settings),) = value.items()
            inside = ",".join(f"{key}={label_text(inner)}" for key, inner in settings.items())
            return f"{name}[{_short(inside, len(settings))}]" if settings else str(name)
        case list() | tuple() | Mapping():
            text = json.dumps(_encoded(value), separators=(",", ":")).replace("e+", "e")
            return f"{text[0]}{_short(text[1:-1], len(value))}{text[-1]}"
        case _:
            return plain(value)


def roman(number: int) -> str:
    """`IV`, as resolutions are written; up to 39."""
    return "X" * (number // 10) + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[number % 10]


def _is_text(text: str) -> bool:
    """Whether a word without quotes would be text as well, and no number, truth or null."""
    return isinstance(core(Scalar(text, Mark("", 1, 1))), str)


def _short(text: str, size: int) -> str:
    return text if len(text) <= MOST else f"{size}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _encoded(value: Any) -> Any:
    match value:
        case Mapping():
            return {_encoded(str(key)): _encoded(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_encoded(inner) for inner in value]
        case str() | Time() | Path():
            return _APART.sub(lambda found: f"%{ord(found.group()):02X}", str(value))
        case _:
            return value
