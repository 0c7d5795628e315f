"""What a type hint allows and how that is said; the one place that takes type hints apart."""

from __future__ import annotations

import dataclasses
import functools
import re
import types
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from expkit.duration import Time
from expkit.spec.sentences import listed

DURATION = "such as 2ep, 500ba or 90m"


def field_hints(cls: Any) -> dict[str, Any]:
    """The type of each setting of a dataclass."""
    return _field_hints(cls)


@functools.cache
def _field_hints(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows, without their limits: `Annotated[int, ...] | None` -> (int, NoneType)."""
    if hasattr(hint, "__metadata__"):
        return alternatives(hint.__origin__)
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(a for part in get_args(hint) for a in alternatives(part))
    return (hint,)


def takes_lists(hint: Any) -> bool:
    """Whether a list is a value of this field, so that it cannot mean several values of it."""
    return any(is_kind(option, Sequence, Set) or option is list for option in alternatives(hint))


def is_open(option: Any) -> bool:
    """Whether the type says nothing that we could check: pydantic will."""
    closed = option in (bool, int, float, str, type(None), Time, Path, list, dict) or dataclasses.is_dataclass(option)
    return not closed and get_origin(option) is not Literal and not is_kind(option, Sequence, Set, Mapping)


def is_kind(option: Any, *kinds: type) -> bool:
    origin = get_origin(option) or option
    return isinstance(origin, type) and issubclass(origin, kinds) and not issubclass(origin, str | bytes)


def literals(options: tuple[Any, ...]) -> list[Any]:
    return [value for option in options if get_origin(option) is Literal for value in get_args(option)]


def expected(options: tuple[Any, ...]) -> str:
    """What a field takes, as the end of `must be ...`."""
    said: list[str] = []
    for option in options:
        if get_origin(option) is Literal:
            said += [repr(value) for value in get_args(option)]
        else:
            said.append(_WORDS.get(option) or _other(option))
    return listed(said)


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "null",
    Time: f"a duration ({DURATION})",
    Path: "a path",
}


def _other(option: Any) -> str:
    if is_kind(option, Sequence, Set):
        return "a list"
    if is_kind(option, Mapping):
        return "a map"
    if dataclasses.is_dataclass(option):
        return f"a map ({snake_case(getattr(option, '__name__', 'settings'))})"
    return str(getattr(option, "__name__", option))


def snake_case(name: str) -> str:
    """`MyNet2` -> `my_net2`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
