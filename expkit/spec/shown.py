"""A recipe or sweep file as it will be used: what it extends merged in, presets and overrides applied, references
replaced. A recipe keeps the keys that its files set, or with `resolved` has every key; both load to an equal recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expkit.spec.convert import OVERRIDE, core_value
from expkit.spec.dump import dump_tree, recipe_to_json
from expkit.spec.files import load_draft, load_recipe, load_tree
from expkit.spec.identity import identity
from expkit.spec.merge import from_command_line
from expkit.spec.recipe import Recipe
from expkit.spec.sweep_file import is_sweep, load_sweep
from expkit.spec.tree import Map, Node, Problems, Scalar, Seq


@dataclass(frozen=True)
class Shown:
    """One file."""

    kind: str
    """recipe or sweep"""
    used: dict[str, Any]
    """The keys that are set, as JSON values."""
    resolved: dict[str, Any]
    """The recipe with every default filled in; of a sweep, the recipe that it varies, with its `set` applied."""
    identity: dict[str, Any]
    """What the id of that recipe is the hash of, versions of plug-ins among it."""

    def text(self, resolved: bool) -> str:
        """YAML."""
        return dump_tree(self.resolved if resolved else self.used)


def shown_file(
    path: Path, *, presets: Sequence[str] = (), overrides: Sequence[str] = (), trust_imports: Sequence[str] = ()
) -> Shown:
    """A checked file; SpecError with all its problems."""
    if is_sweep(load_tree(path, Problems())):
        sweep = load_sweep(path, presets=presets, overrides=overrides, trust_imports=trust_imports)
        tree = load_tree(path, Problems())
        return _shown("sweep", _plain(tree), sweep.recipe)
    recipe = load_recipe(path, presets=presets, overrides=overrides, trust_imports=trust_imports)
    problems = Problems()
    changes = from_command_line(overrides, OVERRIDE, problems)
    root = load_draft(path, presets, [changes], trust_imports, problems).root
    return _shown("recipe", _kept(recipe_to_json(recipe), root), recipe)


def _shown(kind: str, used: Any, recipe: Recipe) -> Shown:
    return Shown(kind, used, recipe_to_json(recipe), identity(recipe))


def _kept(values: dict[str, Any], root: Map) -> dict[str, Any]:
    """The values whose keys stand in the tree."""
    kept = {}
    for key, value in values.items():
        node = root.get(key)
        if node is not None:
            kept[key] = _kept(value, node) if isinstance(value, dict) and isinstance(node, Map) else value
    return kept


def _plain(node: Node) -> Any:
    """A tree as values; a scalar that has none without its field's type stays text."""
    match node:
        case Map(items=items):
            return {key: _plain(entry.node) for key, entry in items.items()}
        case Seq(items=items):
            return [_plain(item) for item in items]
        case Scalar():
            problems = Problems()
            value = core_value(node, "", problems)
            return node.text if problems.found else value
