"""The value at a dotted path of a finished recipe, as conditions ask for it; a whole component is its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from expkit.duration import Time
from expkit.spec.recipe import Component, Recipe

MISSING: Any = object()
"""What this recipe does not have; another of the same sweep may."""


def value_at(recipe: Recipe, path: str) -> Any:
    """A setting, durations as text; MISSING where the recipe has none of this path."""
    head, _, rest = path.partition(".")
    if head in ("model", "optimizer", "scheduler"):
        return _in_component(getattr(recipe, head), rest)
    if head == "data":
        which, _, rest = rest.partition(".")
        return _in_component(recipe.data.train, rest) if which == "train" else _in_evaluators(recipe, which, rest)
    if head in ("algorithms", "callbacks"):
        found = [_in_component(component, rest) for component in getattr(recipe, head).values()]
        return next((value for value in found if value is not MISSING), MISSING)
    return _inside(recipe, path) if head in ("trainer", "runtime", "metrics", "name") else MISSING


def _in_evaluators(recipe: Recipe, which: str, rest: str) -> Any:
    if which != "eval":
        return MISSING
    if [*recipe.data.eval] == ["eval"]:
        return _in_component(recipe.data.eval["eval"], rest)
    label, _, rest = rest.partition(".")
    return _in_component(recipe.data.eval.get(label), rest)


def _in_component(component: Component | None, rest: str) -> Any:
    if component is not None and not rest:
        return component.name
    for name in (component.name, component.label) if component else ():
        if rest == name:
            return name
        if component and rest.startswith(name + "."):
            return _inside(component.settings, rest[len(name) + 1 :])
    return MISSING


def _inside(value: Any, path: str) -> Any:
    while path:
        if isinstance(value, Mapping):
            key = max((k for k in value if path == k or path.startswith(f"{k}.")), key=len, default=None)
            if key is None:
                return MISSING
            value, path = value[key], path[len(key) + 1 :]
        else:
            head, _, path = path.partition(".")
            if not dataclasses.is_dataclass(value) or not hasattr(value, head):
                return MISSING
            value = getattr(value, head)
    return str(value) if isinstance(value, Time) else value
