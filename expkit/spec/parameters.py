"""Parameters of a sweep: paths of the recipe with the values that they take, each value checked once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from expkit import plugins
from expkit.duration import Time
from expkit.errors import PluginError
from expkit.spec.candidates import label_text
from expkit.spec.convert import BAD, convert
from expkit.spec.draft import RECORDS, Draft, Method, Parameter
from expkit.spec.hints import alternatives, field_hints
from expkit.spec.identity import Identifier, spell
from expkit.spec.merge import MANY, NESTED, SINGLE, split
from expkit.spec.recipe import Recipe
from expkit.spec.tree import Map, Mark, Node, Problems, Seq, join, kind

FORMS = ("values", "value")
RANGES = ("min", "max", "distribution", "mu", "sigma", "q", "probabilities")


def read_parameters(
    node: Node | None, draft: Draft, candidates: Collection[str], problems: Problems
) -> list[Parameter]:
    """Each path with its distinct values; what cannot be one is a problem at its place."""
    if node is None:
        return []
    if not isinstance(node, Map):
        problems.add(node.mark, "parameters", f"must be a map of paths and lists of values, but got {kind(node)}")
        return []
    found = []
    for path, entry in node.items.items():
        shown_path = join("parameters", path)
        items = _items(entry.node, shown_path, problems)
        refused = _refused(split(draft.root, path), candidates)
        if refused:
            problems.add(entry.mark, shown_path, refused)
        elif items:
            found.append(_parameter(path, entry.mark, items, draft, problems))
    return [parameter for parameter in found if parameter]


def _items(node: Node, path: str, problems: Problems) -> Sequence[Node]:
    if isinstance(node, Map) and len(node.items) == 1 and (form := next(iter(node.items))) in FORMS:
        inner = node.items[form].node
        node = inner if form == "values" else Seq((inner,), inner.mark)
    if isinstance(node, Map) and node.items.keys() & set(RANGES):
        problems.add(node.mark, path, "ranges and distributions are not supported yet in this version; list the values")
        return ()
    if not isinstance(node, Seq):
        problems.add(node.mark, path, f"must be a list of values, but got {kind(node)}")
        return ()
    if not node.items:
        problems.add(node.mark, path, "must have at least one value, but the list is empty")
    return node.items


def _refused(parts: Sequence[str], candidates: Collection[str]) -> str | None:
    if parts[0] == "seed":
        return "seeds have a key of their own: seeds: [1, 2, 3]"
    if parts[0] in ("metrics", "runtime", "name", "version", "presets", "extends") or parts[:2] == [
        "trainer",
        "checkpoint",
    ]:
        return f"{'.'.join(parts[:2])} does not change what is trained, so all its values would be one trial"
    if parts[0] == "algorithms" and len(parts) > 1 and parts[1] in candidates:
        rest = ".".join(parts[2:]) or "SETTING"
        return f"{parts[1]} is a candidate; list its values there: candidates: {{{parts[1]}: {{{rest}: [..]}}}}"
    return None


def _parameter(path: str, mark: Mark, items: Sequence[Node], draft: Draft, problems: Problems) -> Parameter | None:
    hint = hint_of(draft, path)
    found: dict[str, tuple[Node, Any]] = {}
    for i, item in enumerate(items):
        where = join(join("parameters", path), i)
        if isinstance(item, Map) and len(split(draft.root, path)) < 3:
            problems.add(item.mark, where, "whole components as values are not supported yet in this version")
            continue
        value = convert(item, hint, where, problems)
        if value is not BAD:
            found.setdefault(label_text(value), (item, _as_json(value)))
    if not found:
        return None
    return Parameter(path, tuple(n for n, _ in found.values()), tuple(v for _, v in found.values()), mark)


def _as_json(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0
    return str(value) if isinstance(value, Time) or hasattr(value, "__fspath__") else value


def hint_of(draft: Draft, path: str) -> Any:
    """The type of the field at a path, Any where nothing is known of it."""
    parts = split(draft.root, path)
    if parts[0] in RECORDS:
        return _inside(RECORDS[parts[0]], parts[1:])
    for kinds, depth in ((SINGLE, 1), (NESTED, 2), (MANY, 1)):
        if parts[0] in kinds and len(parts) == depth + 2 and not plugins.is_import_path(parts[depth]):
            try:
                return field_hints(plugins.load(kinds[parts[0]], parts[depth])).get(parts[-1], Any)
            except PluginError:
                return Any  # said where the component is built
    return field_hints(Recipe).get(path, Any) if path == "seed" else Any


def _inside(cls: type, parts: Sequence[str]) -> Any:
    hint: Any = cls
    for part in parts:
        records = [a for a in alternatives(hint) if hasattr(a, "__dataclass_fields__")]
        hint = field_hints(records[0]).get(part, Any) if records else Any
    return hint


def check_values(draft: Draft, methods: Sequence[Method], problems: Problems) -> None:
    """Builds what each value changes, the other parameters at their first; values of one trial are a problem.

    `methods` are the algorithms of every arm at each of their levels.
    """
    first = tuple(0 for _ in draft.parameters)
    ids = Identifier()
    for i, parameter in enumerate(draft.parameters):
        depending = [m for m in methods if i in draft.method_depends(m)]
        if not draft.depending(i) and not depending:
            message = "nothing that is trained depends on it, so all its values would be one trial"
            problems.add(parameter.mark, join("parameters", parameter.path), message)
            continue
        spelled: dict[str, int] = {}
        for k, node in enumerate(parameter.nodes):
            point = (*first[:i], k, *first[i + 1 :])
            made = [m for method in depending if (m := draft.method(method, point, problems))]
            recipe = draft.variant(point, (), problems)
            if recipe is None:
                continue
            text = ids.text_of(recipe) + "".join(spell(one, "algorithms") for one in made)
            if spelled.setdefault(text, k) != k:
                same = f"values {spelled[text] + 1} and {k + 1} of the list mean the same trial"
                problems.add(node.mark, join("parameters", parameter.path), same)
