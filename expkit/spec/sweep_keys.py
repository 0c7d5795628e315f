"""Keys of a sweep file: those that exist, and those of the grammar that this version does not know yet."""

from __future__ import annotations

from expkit.errors import unknown
from expkit.spec.sweep import Design
from expkit.spec.tree import Map, Mark, Node, Problems, Scalar, Seq, join, kind

KEYS = ("version", "name", "extends", "recipe", "set", "ablate", "parameters", "exclude", "seeds", "order", "budget",
        "run", "report")  # fmt: skip
REQUIRED = ("version", "name", "recipe")
ABLATE = ("baseline", "always", "candidates", "design", "constraints")
DESIGNS = ("full",)
LATER = ("budgets", "tune", "zip", "grids", "include", "allow")
_LATER_INSIDE = {
    "run": ("retries", "fail_fast", "early_stop", "gpus"),
    "budget": ("max_hours", "per_trial"),
    "ablate": ("allow", "zip", "grids", "include"),
}
_LATER_DESIGNS = ("leave_one_out", "add_one_in", "pairwise", "max_size", "fractional", "shapley", "search")


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
        if key not in (*ABLATE, *_LATER_INSIDE["ablate"]):
            problems.add(entry.mark, join("ablate", key), unknown("key", key, ABLATE))


def supported(key: str, node: Node) -> Node:
    """A record without the keys that have been refused already."""
    return node.without(*_LATER_INSIDE.get(key, ())) if isinstance(node, Map) else node


def not_yet(what: str) -> str:
    """The sentence for a part of the grammar that this version lacks."""
    return f"{what} is not supported yet in this version of expkit"


def read_design(node: Node | None, problems: Problems) -> Design:
    """The design by name; others are refused with the names of those that exist."""
    if node is None:
        return Design("full", Mark("", 1, 1))
    if isinstance(node, Scalar) and node.text in DESIGNS:
        return Design(node.text, node.mark)
    problems.add(node.mark, "ablate.design", _refusal(node))
    return Design("full", node.mark)


def _refusal(node: Node) -> str:
    if isinstance(node, Seq):
        return f"{not_yet('a list of designs')}; there is: {', '.join(DESIGNS)}"
    name = node.text if isinstance(node, Scalar) else next(iter(node.items), "")
    if name in _LATER_DESIGNS:
        return f"{not_yet(f'design {name}')}; there is: {', '.join(DESIGNS)}"
    return unknown("design", name, DESIGNS)
