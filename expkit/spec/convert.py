"""Trees become values by the type of the field they stand in; whatever does not fit is said in plain words."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, get_args, get_origin

from expkit.duration import Time
from expkit.errors import PluginError, unknown
from expkit.spec import words
from expkit.spec.hints import (
    DURATION,
    alternatives,
    expected,
    field_hints,
    is_kind,
    is_open,
    literals,
    snake_case,
)
from expkit.spec.sentences import from_pydantic
from expkit.spec.tree import Map, Mark, Node, Problems, Scalar, Seq, join, kind

OVERRIDE = "--set"
"""The `file` of a value given on the command line."""


class _Bad:
    """Stands for a value that has been complained about."""


BAD: Any = _Bad()


def build(cls: type, node: Node, path: str, problems: Problems, what: str = "key", adapter: Any = None) -> Any:
    """An instance of a dataclass from a map, or BAD; unknown keys, wrong types and broken limits go to `problems`."""
    if not isinstance(node, Map):
        problems.add(node.mark, path, f"must be a map of {_plural(what)}, but got {kind(node)}; write {{}} for none")
        return BAD
    hints = field_hints(cls)
    before = len(problems.found)
    values = {}
    for key, entry in node.items.items():
        if key in hints:
            values[key] = _finite(convert(entry.node, hints[key], join(path, key), problems), entry.node,
                                  join(path, key), problems)  # fmt: skip
        else:
            problems.add(entry.mark, join(path, key), unknown(what, key, hints))
    good = {key: value for key, value in values.items() if value is not BAD}
    made = _validated(cls, good, node, path, problems, adapter)
    return made if len(problems.found) == before else BAD


def _finite(value: Any, node: Node, path: str, problems: Problems) -> Any:
    """The value, or BAD where it holds a number that JSON has no word for; no setting means anything at infinity."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else (value,)
    if all(not isinstance(one, float) or math.isfinite(one) for one in inner):
        return value
    problems.add(node.mark, path, "must be a finite number")
    return BAD


def _validated(cls: type, values: dict[str, Any], node: Map, path: str, problems: Problems, adapter: Any) -> Any:
    from pydantic import ValidationError

    try:
        return (adapter or _adapter(cls)).validate_python(values)
    except ValidationError as e:
        for where, message in from_pydantic(e, field_hints(cls)):
            if message is None and where[0] in node.items:
                continue  # said already: it is there, but of the wrong type
            mark = position(node, where)
            problems.add(mark, ".".join([*([path] if path else []), *where]), message or "is required")
    except (PluginError, ValueError, TypeError) as e:
        problems.add(node.mark, path, str(e))
    return BAD


def position(node: Node, where: Iterable[str]) -> Mark:
    """The place of the deepest part of a path that the tree has."""
    for part in where:
        if isinstance(node, Map) and part in node.items:
            node = node.items[part].node
        elif isinstance(node, Seq) and part.isdigit() and int(part) < len(node.items):
            node = node.items[int(part)]
    return node.mark


@functools.cache
def _adapter(cls: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


def convert(node: Node, hint: Any, path: str, problems: Problems) -> Any:
    """The value of a node in a field of this type, or BAD."""
    options = alternatives(hint)
    match node:
        case Scalar():
            return _scalar(node, options, path, problems)
        case Seq():
            return _sequence(node, options, path, problems)
        case Map():
            return _map(node, options, path, problems)


def checked(node: Node, hint: Any, path: str, problems: Problems) -> Any:
    """As `convert`, and within the limits that the type sets."""
    from pydantic import TypeAdapter, ValidationError

    value = convert(node, hint, path, problems)
    if value is BAD:
        return BAD
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as e:
        problems.add(node.mark, path, from_pydantic(e, {})[0][1] or "is required")
    return BAD


def _scalar(node: Scalar, options: tuple[Any, ...], path: str, problems: Problems) -> Any:
    if node.style == "wrong":
        return BAD
    problem = words.suspicious(node, switch=bool in options)
    if problem is not None:
        problems.add(node.mark, path, problem)
        return BAD
    for read in (_null, _bool, _int, _float, _literal, _text):
        value = read(node, options, path, problems)
        if value is not _NO:
            return value
    problems.add(node.mark, path, f"must be {expected(options)}, but got {kind(node)}{_advice(node, options)}")
    return BAD


def _advice(node: Scalar, options: tuple[Any, ...]) -> str:
    if node.style == "quoted" and _number(node, options):
        return "; without the quotes it would be a number"
    near = difflib.get_close_matches(node.text, map(str, literals(options)), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


_NO: Any = object()


def _null(node: Scalar, options: tuple[Any, ...], *_: Any) -> Any:
    return None if type(None) in options and node.style != "quoted" and node.text in words.NULL else _NO


def _bool(node: Scalar, options: tuple[Any, ...], *_: Any) -> Any:
    value = words.as_bool(node.text) if bool in options and node.style != "quoted" else None
    return _NO if value is None else value


def _int(node: Scalar, options: tuple[Any, ...], *_: Any) -> Any:
    value = words.as_int(node.text) if int in options and node.style != "quoted" else None
    return _NO if value is None else value


def _float(node: Scalar, options: tuple[Any, ...], *_: Any) -> Any:
    value = words.as_float(node.text) if float in options and node.style != "quoted" else None
    return _NO if value is None else value


def _number(node: Scalar, options: tuple[Any, ...]) -> bool:
    return (float in options or int in options) and words.as_float(node.text) is not None


def _literal(node: Scalar, options: tuple[Any, ...], *_: Any) -> Any:
    for value in literals(options):
        if value == node.text or (not isinstance(value, str) and repr(value) == repr(words.core(node))):
            return value
    return _NO


def _text(node: Scalar, options: tuple[Any, ...], path: str, problems: Problems) -> Any:
    if Time in options:
        return _time(node, path, problems, others=len(options) > 1 and str in options)
    is_null = node.style != "quoted" and node.text in words.NULL
    if Path in options and not is_null:
        return _path(node)
    if str in options and not is_null:
        return node.text
    if any(is_open(option) for option in options):
        return words.core(node)
    return _NO


def _time(node: Scalar, path: str, problems: Problems, others: bool) -> Any:
    try:
        return Time.parse(node.text)
    except ValueError as e:
        if others:
            return node.text
        problems.add(node.mark, path, str(e) if node.text else f"must be a duration, but got nothing; {DURATION}")
        return BAD


def _path(node: Scalar) -> Path:
    """A path is meant from the file that says it; on the command line from where one stands."""
    folder = Path() if node.mark.file == OVERRIDE else Path(node.mark.file).parent
    return (folder / node.text).absolute()


def _sequence(node: Seq, options: tuple[Any, ...], path: str, problems: Problems) -> Any:
    for option in options:
        if is_kind(option, Sequence, Set):
            items = [
                convert(item, hint, join(path, i), problems)
                for i, (item, hint) in enumerate(zip(node.items, _item_hints(option, len(node.items)), strict=False))
            ]
            return BAD if BAD in items else items
        if is_open(option):
            return _core_tree(node, path, problems)
    problems.add(node.mark, path, f"must be {expected(options)}, but got a list")
    return BAD


def _item_hints(option: Any, count: int) -> Sequence[Any]:
    args = get_args(option) or (Any,)
    if get_origin(option) is tuple and args[-1] is not Ellipsis and len(args) == count:
        return args
    return [args[0]] * count


def _map(node: Map, options: tuple[Any, ...], path: str, problems: Problems) -> Any:
    records = [option for option in options if dataclasses.is_dataclass(option) and option is not Time]
    if records and len(options) > 1 and isinstance(records[0], type):
        return _named_record(node, records, path, problems)
    for option in options:
        if option in records and isinstance(option, type):
            return build(option, node, path, problems)
        if is_kind(option, Mapping):
            hint = (get_args(option) or (str, Any))[-1]
            values = {k: convert(e.node, hint, join(path, k), problems) for k, e in node.items.items()}
            return BAD if BAD in values.values() else values
        if is_open(option):
            return _core_tree(node, path, problems)
    problems.add(node.mark, path, f"must be {expected(options)}, but got a map")
    return BAD


def _named_record(node: Map, records: list[Any], path: str, problems: Problems) -> Any:
    """Where other values are possible too, a record is written as a one-key map of its name: `{pilot: {seeds: 5}}`."""
    named = {snake_case(record.__name__): record for record in records}
    keys = list(node.items)
    if len(keys) != 1 or keys[0] not in named:
        where = node.items[keys[0]].mark if keys else node.mark
        problems.add(where, path, unknown("form", ", ".join(keys), named))
        return BAD
    return build(named[keys[0]], node.items[keys[0]].node, join(path, keys[0]), problems)


def _core_tree(node: Node, path: str, problems: Problems) -> Any:
    match node:
        case Scalar():
            return _scalar(node, (Any,), path, problems)
        case Seq(items=items):
            values = [_core_tree(item, join(path, i), problems) for i, item in enumerate(items)]
            return BAD if BAD in values else values
        case Map(items=entries):
            pairs = {k: _core_tree(e.node, join(path, k), problems) for k, e in entries.items()}
            return BAD if BAD in pairs.values() else pairs


def core_value(node: Node, path: str, problems: Problems) -> Any:
    """The value of a node in a place of unknown type, or BAD."""
    return _core_tree(node, path, problems)


def _plural(what: str) -> str:
    first, _, rest = what.partition(" ")
    return f"{first}s {rest}".strip()
