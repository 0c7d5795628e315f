"""A recipe back to text and to JSON; what is written loads to an equal recipe.

Text is quoted wherever another reader might take it for something else: 'no', '012', '1e-3' stay what they are.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from expkit.duration import Time
from expkit.spec.hints import snake_case
from expkit.spec.merge import default_label
from expkit.spec.recipe import Component, Pilot, Recipe

_SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_RESERVED = frozenset({"true", "false", "null", "none", "on", "off", "yes", "no", "y", "n"})
_UNPRINTABLE = re.compile(
    "[^\\x20-\\x7e\\u00a0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
)


def dump_recipe(recipe: Recipe) -> str:
    """YAML with every default filled in, for the trial's folder."""
    return dump_tree(recipe_to_json(recipe))


def recipe_to_json(recipe: Recipe) -> dict[str, Any]:
    """The recipe as JSON values in the form of a recipe file, components as one-key maps."""
    allow = {"allow": [list(pair) for pair in recipe.allow]} if recipe.allow else {}
    return {
        "version": 1,
        "name": recipe.name,
        "model": _one(recipe.model),
        "data": {"train": _one(recipe.data.train), "eval": _evaluators(recipe.data.eval)},
        "optimizer": _one(recipe.optimizer),
        "scheduler": _one(recipe.scheduler) if recipe.scheduler else None,
        "algorithms": _many(recipe.algorithms),
        "callbacks": _many(recipe.callbacks),
        **allow,
        "trainer": _record(recipe.trainer),
        "metrics": _record(recipe.metrics),
        "seed": recipe.seed,
        "runtime": _record(recipe.runtime),
    }


def _one(component: Component) -> dict[str, Any]:
    named = {} if component.label == default_label(component.name) else {"as": component.label}
    return {component.name: {**named, **component.settings}}


def _evaluators(evaluators: Mapping[str, Component]) -> dict[str, Any]:
    alone = evaluators.get("eval") if len(evaluators) == 1 else None
    return _one(alone) if alone else {label: _one(component) for label, component in evaluators.items()}


def _many(components: Mapping[str, Component]) -> dict[str, Any]:
    return {name: settings for c in components.values() for name, settings in _one(c).items()}


def _record(value: Any) -> Any:
    if isinstance(value, Time):
        return str(value)
    if isinstance(value, Pilot):
        return {snake_case(type(value).__name__): _fields(value)}
    if isinstance(value, Mapping):
        return {key: _record(inner) for key, inner in value.items()}
    return _fields(value) if dataclasses.is_dataclass(value) else value


def _fields(value: Any) -> dict[str, Any]:
    return {f.name: _record(getattr(value, f.name)) for f in dataclasses.fields(value)}


def dump_tree(value: Mapping[str, Any], indent: int = 0) -> str:
    """JSON values as block YAML; lists, and maps in lists, on one line."""
    lines = []
    for key, inner in value.items():
        head = " " * indent + _text(key)
        if isinstance(inner, Mapping) and inner:
            lines.append(f"{head}:\n{dump_tree(inner, indent + 2)}")
        else:
            lines.append(f"{head}: {_flow(inner)}\n")
    return "".join(lines)


def _flow(value: Any) -> str:
    match value:
        case Mapping():
            return "{" + ", ".join(f"{_text(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_flow, value)) + "]"
        case str():
            return _text(value.replace("${", "$${"))
        case float():
            return _float(value)
        case _:
            return json.dumps(value)


def _float(value: float) -> str:
    if value != value:
        return ".nan"
    return repr(value).replace("inf", ".inf")


def _text(text: str) -> str:
    if _SAFE.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return _UNPRINTABLE.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    return f"\\U{ord(match.group()):08X}"
