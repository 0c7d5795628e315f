"""Nested values by dotted key, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ABSENT = "(absent)"


@dataclass(frozen=True)
class Difference:
    """One key whose values are not the same; ABSENT where one side lacks it."""

    key: str
    a: Any
    b: Any


def flat(values: Mapping[str, Any], prefix: str = "", *, empty: bool = False) -> Iterator[tuple[str, Any]]:
    """Every value with its dotted key; a list is one value, a map without keys is one only where `empty` asks so."""
    for key, value in values.items():
        if isinstance(value, Mapping) and (value or not empty):
            yield from flat(value, f"{prefix}{key}.", empty=empty)
        else:
            yield f"{prefix}{key}", value


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    """What differs, sorted by key; two NaN are the same, `true` and 1 are not, a map that is empty is as good as none
    where the other side has keys in it."""
    left, right = dict(flat(a, empty=True)), dict(flat(b, empty=True))
    keys = sorted(left.keys() | right.keys())
    above = {key[:at] for key in keys for at in range(len(key)) if key[at] == "."}
    pairs = {key: (left.get(key, ABSENT), right.get(key, ABSENT)) for key in keys if key not in above}
    return [Difference(key, *pair) for key, pair in pairs.items() if not _same(*pair)]


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b or (a != a and b != b))
