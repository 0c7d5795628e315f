"""Checks of what stands in a file that anybody may have written: the type that is expected, or a sentence."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from typing import Any

from expkit.duration import Timestamp
from expkit.errors import CheckpointError


@contextlib.contextmanager
def blaming(where: str) -> Iterator[None]:
    """Whatever is found wrong inside becomes a CheckpointError that begins with the name of the file."""
    try:
        yield
    except RecursionError:
        raise CheckpointError(f"{where} cannot be used: it is nested deeper than anything we write") from None
    except OSError as e:
        raise CheckpointError(f"{where} cannot be read: {e.strerror or e}") from None
    except (ValueError, TypeError, OverflowError) as e:
        raise CheckpointError(f"{where} cannot be used: {_first_line(e)}") from None


@contextlib.contextmanager
def calling(place: str, address: str) -> Iterator[None]:
    """A copy at `place` goes by its address in what CheckpointErrors say."""
    try:
        yield
    except CheckpointError as e:
        raise CheckpointError(str(e).replace(place, address)) from None


def json_of(data: bytes) -> Any:
    """JSON without NaN, without a key that comes twice; ValueError for all else."""
    try:
        return json.loads(data, parse_constant=_refuse, object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise ValueError("it is no JSON but something binary") from None
    except json.JSONDecodeError as e:
        raise ValueError(f"it is no JSON ({e.msg} at line {e.lineno})") from None


def mapping(value: Any, what: str) -> dict[str, Any]:
    """A dict whose keys are texts."""
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return value
    raise ValueError(f"{what} must be a map, but is {shown(value)}")


def sequence(value: Any, what: str) -> list[Any]:
    """A list, or a tuple as one."""
    if isinstance(value, list | tuple):
        return list(value)
    raise ValueError(f"{what} must be a list, but is {shown(value)}")


def text(value: Any, what: str) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise ValueError(f"{what} must be a text, but is {shown(value)}")


def boolean(value: Any, what: str) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{what} must be true or false, but is {shown(value)}")


def integer(value: Any, what: str, least: int = 0) -> int:
    """A whole number, neither too small nor larger than 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63:
        return value
    raise ValueError(f"{what} must be a whole number, at least {least}, but is {shown(value)}")


def number(value: Any, what: str) -> float:
    """A float, NaN and inf among them."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f"{what} must be a number, but is {shown(value)}")


def seconds(value: Any, what: str) -> float:
    """A finite number, not negative."""
    if 0 <= (read := number(value, what)) < math.inf:
        return read
    raise ValueError(f"{what} must be seconds, but is {shown(value)}")


def timestamp(value: Any, what: str) -> Timestamp:
    """A moment; counters that an older file does not have are 0."""
    given = mapping(value, what)
    if unknown := given.keys() - set(Timestamp._fields):
        raise ValueError(f"{what} has a counter {shown(min(unknown))}; there are {', '.join(Timestamp._fields)}")
    counters: Any = {
        name: seconds(value, f"{what}.{name}") if name == "train_s" else integer(value, f"{what}.{name}")
        for name, value in given.items()
    }
    return Timestamp(**counters)


def shown(value: Any) -> str:
    """A value as it fits into a sentence."""
    said = f"{type(value).__name__}" if isinstance(value, dict | list) and len(value) > 8 else repr(value)
    return said if len(said) <= 80 else f"{said[:77]}..."


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key of it comes twice")
    return made


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
