"""Keys of a sweep file: those that exist, and those of the grammar that this version does not know yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from expkit.errors import unknown
from expkit.spec.convert import BAD, checked
from expkit.spec.recipe import Natural
from expkit.spec.sweep import Design, DesignPart
from expkit.spec.tree import Map, Mark, Node, Problems, Scalar, Seq, join, kind

KEYS = ("version", "name", "extends", "recipe", "set", "ablate", "parameters", "zip", "budgets", "grids",
        "include", "exclude", "seeds", "order", "budget", "run", "report")  # fmt: skip
REQUIRED = ("version", "name", "recipe")
ABLATE = ("baseline", "always", "candidates", "design", "constraints", "allow")
DESIGNS = ("full", "leave_one_out", "add_one_in", "pairwise", "max_size", "fractional", "shapley")
NUMBERED: Mapping[str, tuple[str, Any, str]] = {
    "max_size": ("", Natural, "{max_size: 2}"),
    "fractional": ("resolution", Annotated[int, Field(ge=3, le=5)], "{fractional: {resolution: 5}}"),
    "shapley": ("permutations", Annotated[int, Field(ge=1, le=10_000)], "{shapley: {permutations: 16}}"),
}
"""Designs that are written with a number: the key that it stands under, its type, and how that looks."""
LATER = ("tune",)
_LATER_INSIDE = {
    "run": ("retries", "fail_fast", "early_stop", "gpus"),
    "budget": ("max_hours", "per_trial"),
}
_LATER_DESIGNS = ("search",)


def check_keys(root: Map, problems: Problems) -> None:
    """Unknown keys, keys that are not supported yet, and keys that must be there."""
    for key, entry in root.items.items():
        if key not in KEYS:
            problems.add(entry.mark, key, not_yet(key) if key in LATER else unknown("key", key, KEYS))
        for inner in _LATER_INSIDE.get(key, ()):
            if isinstance(entry.node, Map) and inner in entry.node.items:
                problems.add(entry.node.items[inner].mark, join(key, inner), not_yet(inner))
    for key in REQUIRED:
        if key not in root.items:
            problems.add(root.mark, key, "is required")
    version = root.get("version")
    if version is not None and not (isinstance(version, Scalar) and version.text == "1"):
        problems.add(version.mark, "version", f"must be 1, but got {kind(version)}")
    _check_ablate(root.get("ablate"), problems)


def _check_ablate(node: Node | None, problems: Problems) -> None:
    if node is None:
        return
    if not isinstance(node, Map):
        problems.add(node.mark, "ablate", f"must be a map, but got {kind(node)}")
        return
    for key, entry in node.items.items():
        if key not in ABLATE:
            problems.add(entry.mark, join("ablate", key), unknown("key", key, ABLATE))


def supported(key: str, node: Node) -> Node:
    """A record without the keys that have been refused already."""
    return node.without(*_LATER_INSIDE.get(key, ())) if isinstance(node, Map) else node


def not_yet(what: str) -> str:
    """The sentence for a part of the grammar that this version lacks."""
    return f"{what} is not supported yet in this version of expkit"


def read_design(node: Node | None, problems: Problems) -> Design:
    """A design by name, a one-key map such as {max_size: 2}, or a list of these, united."""
    mark = Mark("", 1, 1) if node is None else node.mark
    items: tuple[Node, ...] = node.items if isinstance(node, Seq) else () if node is None else (node,)
    if isinstance(node, Seq) and not items:
        problems.add(mark, "ablate.design", f"must have at least one design; there are: {', '.join(DESIGNS)}")
    parts = [part for item in items if (part := _design(item, problems))]
    return Design(tuple(dict.fromkeys(parts)) or (DesignPart("full"),), mark)


def _design(node: Node, problems: Problems) -> DesignPart | None:
    if isinstance(node, Scalar) and node.text in DESIGNS and node.text not in NUMBERED:
        return DesignPart(node.text)
    if isinstance(node, Map) and len(node.items) == 1 and (name := next(iter(node.items))) in NUMBERED:
        inner, path = node.items[name].node, join("ablate.design", name)
        least = _least(inner, join(path, "sets"), problems) if name == "fractional" else 0
        number = _number(name, inner, path, problems)
        return None if BAD in (number, least) else DesignPart(name, number, least)
    problems.add(node.mark, "ablate.design", _refusal(node))
    return None


def _number(name: str, node: Node, path: str, problems: Problems) -> Any:
    """The number of a design, BAD where it is not there."""
    key, hint, example = NUMBERED[name]
    if not key:
        return checked(node, hint, path, problems)
    more = {"sets"} if name == "fractional" else set()
    if isinstance(node, Map) and node.items.keys() - more == {key}:
        return checked(node.items[key].node, hint, join(path, key), problems)
    got = ", ".join(node.items) or "an empty map" if isinstance(node, Map) else kind(node)
    problems.add(node.mark, path, f"must be written as {example}, but got {got}")
    return BAD


def _least(node: Node, path: str, problems: Problems) -> Any:
    """How many sets a fraction has at least, 0 where nothing is said."""
    given = node.get("sets") if isinstance(node, Map) else None
    return 0 if given is None else checked(given, Natural, path, problems)


def _refusal(node: Node) -> str:
    if isinstance(node, Map) and len(node.items) > 1:
        return (
            f"has {len(node.items)} designs; a list unites them: [{', '.join(f'{{{key}: ..}}' for key in node.items)}]"
        )
    name = node.text if isinstance(node, Scalar) else next(iter(node.items), "") if isinstance(node, Map) else ""
    if name in NUMBERED:
        return f"{name} needs a number: {NUMBERED[name][2]}"
    if name in DESIGNS:
        return f"{name} takes no settings; write {name}"
    if name in _LATER_DESIGNS:
        return f"{not_yet(f'design {name}')}; there are: {', '.join(DESIGNS)}"
    return unknown("design", name, DESIGNS)
