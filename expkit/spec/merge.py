"""Laying one tree over another: maps merge by key, lists replace, a component named differently replaces the whole."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from expkit import plugins
from expkit.errors import unknown
from expkit.spec.hints import snake_case
from expkit.spec.tree import Entry, Map, Mark, Node, Problems, Scalar

SINGLE = {"model": "models", "optimizer": "optimizers", "scheduler": "schedulers"}
"""Top-level keys that hold one component -> plug-in kind."""
NESTED = {"data": "datasets"}
"""Top-level keys whose every entry holds one component."""
EVALUATORS = ("data", "eval")
"""Where several components may stand by labels instead of one."""
MANY = {"algorithms": "algorithms", "callbacks": "callbacks"}
"""Top-level keys that hold a map of components."""
DESIGN = ("ablate", "design")
"""Of a sweep: another design takes the place of the whole, as another component does."""
_IMPORT_PATH = re.compile(r"py:[\w.]+:\w+")


def normalised(root: Map) -> Map:
    """Every single component as a one-key map: `{name: resnet, depth: 8}` becomes `{resnet: {depth: 8}}`."""
    items = dict(root.items)
    for key in SINGLE.keys() & items.keys():
        items[key] = Entry(items[key].mark, one_key(items[key].node))
    for key in NESTED.keys() & items.keys():
        node = items[key].node
        if isinstance(node, Map):
            inner = {k: Entry(e.mark, _normal((key, k), e.node)) for k, e in node.items.items()}
            items[key] = Entry(items[key].mark, replace(node, items=inner))
    return replace(root, items=items)


def _normal(path: tuple[str, str], node: Node) -> Node:
    if path == EVALUATORS and labelled(node):
        assert isinstance(node, Map)
        return replace(node, items={label: Entry(e.mark, one_key(e.node)) for label, e in node.items.items()})
    return one_key(node)


def labelled(node: Node | None) -> bool:
    """Whether this is a map of labels and components, `{val: {austen: {split: validation}}}`, and not one component.

    One key that names a data set, or code of the user's own, is that component whatever its settings are.
    """
    if not isinstance(node, Map) or isinstance(node.get("name"), Scalar):
        return False
    if not any(_may_be_component(entry.node) for entry in node.items.values()):
        return False
    (first, *more) = node.items
    return bool(more) or not (first.startswith("py:") or plugins.known("datasets", first))


def _may_be_component(node: Node) -> bool:
    if isinstance(node, Scalar):
        return "${" in node.text
    if not isinstance(node, Map) or isinstance(node.get("name"), Scalar):
        return isinstance(node, Map)
    return len(node.items) == 1 and all(isinstance(entry.node, Map) for entry in node.items.values())


def one_key(node: Node) -> Node:
    """A component in its one-key form, whichever form it was written in; anything else as it is."""
    name = node.items.get("name") if isinstance(node, Map) else None
    if not isinstance(node, Map) or name is None or not isinstance(name.node, Scalar):
        return node
    settings = Map({k: e for k, e in node.items.items() if k != "name"}, node.mark)
    return Map({name.node.text: Entry(name.node.mark, settings)}, node.mark)


def merged(base: Map, over: Map, path: tuple[str, ...] = ()) -> Map:
    """`over` on top of `base`; positions stay those of the file that said it."""
    if path == EVALUATORS and labelled(base) and labelled(over):
        path = path[:1]  # each label holds a component, as `train` does
    elif (is_component(path) or path == DESIGN) and base.items.keys() != over.items.keys():
        return over
    items = dict(base.items)
    for key, entry in over.items.items():
        below = items[key].node if key in items else None
        if isinstance(below, Map) and isinstance(entry.node, Map):
            entry = Entry(entry.mark, merged(below, entry.node, (*path, key)))
        items[key] = entry
    return replace(base, items=items)


def is_component(path: Sequence[str], root: Map | None = None) -> bool:
    """Whether one component stands at this path of a recipe; of evaluators with labels only `root` tells."""
    if root is not None and tuple(path[:2]) == EVALUATORS and labelled(find(root, EVALUATORS)):
        return len(path) == 3
    return (len(path) == 1 and path[0] in SINGLE) or (len(path) == 2 and path[0] in NESTED)


def overridden(root: Map, overrides: Map, problems: Problems) -> Map:
    """A recipe with dotted overrides laid over it, in their order."""
    for path, entry in overrides.items.items():
        root = assigned(root, path, entry, problems)
    return root


def assigned(root: Map, path: str, entry: Entry, problems: Problems) -> Map:
    """A recipe with one value set; a component that is not the one in the recipe is a problem, not a replacement."""
    parts = split(root, path)
    if (problem := _other_component(root, parts)) is not None:
        problems.add(entry.mark, path, problem)
        return root
    return merged(root, normalised(_nest(parts, entry)))


def _nest(parts: Sequence[str], entry: Entry) -> Map:
    for part in reversed(parts[1:]):
        entry = Entry(entry.mark, Map({part: entry}, entry.mark))
    return Map({parts[0]: entry}, entry.mark)


def _other_component(root: Map, parts: Sequence[str]) -> str | None:
    evaluators = find(root, EVALUATORS)
    inside = tuple(parts[:2]) == EVALUATORS and len(parts) > 3  # a label alone may be a new one
    if inside and isinstance(evaluators, Map) and labelled(evaluators) and parts[2] not in evaluators.items:
        return unknown("evaluator", parts[2], evaluators.items)
    for depth in (1, 2, 3):
        holder = find(root, parts[:depth]) if is_component(parts[:depth], root) and len(parts) > depth else None
        if isinstance(holder, Map) and holder.items and parts[depth] not in holder.items:
            (name, *_), at = holder.items, ".".join(parts[:depth])
            rest = parts[depth + 1 :] or parts[depth:]
            return f"{at} is {name!r} here, not {parts[depth]!r}; did you mean {'.'.join([at, name, *rest])}?"
    return None


def split(root: Map, path: str) -> list[str]:
    """A dotted path in parts; keys that hold dots themselves, and components by their label, are recognised."""
    parts: list[str] = []
    node: Node | None = root
    while path:
        key = _first(node, path)
        path = path[len(key) + 1 :]
        real = _by_label(node, key) if isinstance(node, Map) and key not in node.items else key
        parts.append(real)
        node = node.get(real) if isinstance(node, Map) else None
    return parts or [""]


def _first(node: Node | None, path: str) -> str:
    if isinstance(node, Map):
        fitting = [k for k in node.items if k and (path == k or path.startswith(k + "."))]
        if fitting:
            return max(fitting, key=len)
    if match := _IMPORT_PATH.match(path):
        return match.group()
    return path.split(".", 1)[0]


def _by_label(node: Map, key: str) -> str:
    return next(
        (name for name, e in node.items.items() if name.startswith("py:") and label_of(name, e.node) == key), key
    )


def label_of(name: str, settings: Node | None) -> str:
    """What a component is called: `as:`, or its name, or the last part of its import path in snake_case."""
    given = settings.get("as") if isinstance(settings, Map) else None
    if isinstance(given, Scalar):
        return given.text
    return default_label(name)


def default_label(name: str) -> str:
    """The label of a component without `as`."""
    if not name.startswith("py:"):
        return name
    return snake_case(name.rpartition(":")[2])


def find(root: Node, parts: Sequence[str]) -> Node | None:
    """The node at a path, None where there is none."""
    node: Node | None = root
    for part in parts:
        node = node.get(part) if isinstance(node, Map) else None
    return node


def from_command_line(given: Sequence[str], file: str, problems: Problems) -> Map:
    """`["a.b=1"]` as a map of dotted overrides; the value is read by the rules of the files."""
    from expkit.spec.reader import read_text  # PyYAML is needed for values only

    entries: dict[str, Entry] = {}
    for text in given:
        key, sign, value = text.partition("=")
        mark = Mark(file, 1, 1)
        if not sign or not key.strip():
            problems.add(mark, "", f"{text!r} sets nothing; the form is path.to.key=value")
        elif key.strip() in entries:
            problems.add(mark, key.strip(), f"is given twice with {file}")
        else:
            entries[key.strip()] = Entry(mark, read_text(value, file, problems))
    return Map(entries, Mark(file, 1, 1))


def chosen_presets(root: Map, names: Sequence[str], problems: Problems) -> list[Map]:
    """The override maps of the presets asked for."""
    presets = root.get("presets")
    known: Mapping[str, Entry] = presets.items if isinstance(presets, Map) else {}
    chosen = []
    for name in names:
        entry = known.get(name)
        if entry is None:
            problems.add(presets.mark if presets else root.mark, "presets", unknown("preset", name, known))
        elif isinstance(entry.node, Map):
            chosen.append(entry.node)
        else:
            problems.add(entry.node.mark, f"presets.{name}", "must be a map of overrides such as {trainer.ssr: 0.5}")
    return chosen
