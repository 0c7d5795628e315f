"""Errors of pydantic in plain words: `must be a number less than 1, but got 1.5`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

_LIMITS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "of at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "of at most"),
    "multiple_of": ("multiple_of", "that is a multiple of"),
}
_VAGUE = frozenset({"literal_error", "none_required", "is_instance_of", "int_type", "float_type", "bool_type",
                    "string_type", "list_type", "tuple_type", "dict_type", "dataclass_type"})  # fmt: skip
"""What an alternative of a union says when it was not meant."""


def from_pydantic(error: Any, hints: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str | None]]:
    """One (path, sentence) a field; the sentence of a missing field is None."""
    by_field: dict[str, list[dict[str, Any]]] = {}
    for e in error.errors(include_url=False):
        by_field.setdefault(str(e["loc"][0]) if e["loc"] else "", []).append(e)
    found: list[tuple[tuple[str, ...], str | None]] = []
    for name, errors in by_field.items():
        telling = [e for e in errors if e["type"] not in _VAGUE] or errors
        for e in telling if len(telling) == len(errors) else telling[:1]:
            where = _real_parts(e["loc"], hints.get(name))
            found.append((where, None if e["type"] in ("missing", "missing_argument") else _sentence(e)))
    return found


def _real_parts(loc: Sequence[Any], hint: Any) -> tuple[str, ...]:
    """Without the union tags that pydantic puts between the parts of a path."""
    parts = [str(part) for part in loc]
    is_union = len(get_args(hint)) > 1 and not hasattr(hint, "__metadata__")
    return tuple(parts[:1] + [p for p in parts[1:] if p.isdigit() or not is_union])


def _sentence(e: Mapping[str, Any]) -> str:
    kind, got = e["type"], e.get("input")
    context = e.get("ctx", {})
    if kind in _LIMITS:
        key, text = _LIMITS[kind]
        noun = "a whole number" if isinstance(got, int) else "a number"
        return f"must be {noun} {text} {plain(context[key])}, but got {plain(got)}"
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error", e["msg"]))
    if kind == "string_pattern_mismatch":
        return f"must match {context['pattern']}, but got {plain(got)}"
    if kind in ("too_short", "too_long"):
        limit = context.get("min_length", context.get("max_length"))
        bound = "at least" if kind == "too_short" else "at most"
        return f"must have {bound} {limit} items, but got {context.get('actual_length')}"
    if kind == "finite_number":
        return f"must be a finite number, but got {plain(got)}"
    message = str(e["msg"]).replace("Input should be", "must be").replace("String should", "must")
    return f"{message[:1].lower()}{message[1:]}, but got {plain(got)}"


def plain(value: Any) -> str:
    """A value as YAML would show it, short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def listed(parts: Iterable[str]) -> str:
    """`a, b or c`."""
    names = list(dict.fromkeys(parts))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
