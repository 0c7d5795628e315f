"""The methods of a sweep: candidates with their levels, and the sets `baseline` and `always`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from expkit import plugins
from expkit.errors import PluginError, unknown
from expkit.spec.convert import BAD, convert
from expkit.spec.draft import Draft, Method
from expkit.spec.hints import field_hints, takes_lists
from expkit.spec.labels import label_text
from expkit.spec.merge import label_of
from expkit.spec.sweep import Candidate, Level
from expkit.spec.tree import Entry, Map, Mark, Node, Problems, Scalar, Seq, join, kind

MAX_LEVELS = 1000


def read_candidates(node: Node | None, path: str, draft: Draft, problems: Problems) -> tuple[Candidate, ...]:
    """Candidates from a map of names and settings, or from a list of names."""
    found: list[Candidate] = []
    for name, at, settings in _named(node, path, problems):
        if isinstance(settings, Map):
            label = label_of(name, _with_own(draft, name, settings))
            if any(label in (c.name, c.label) for c in found):
                problems.add(at, join(path, name), f"another candidate is called {label!r}; name one with `as:`")
            found.append(Candidate(name, label, _levels(name, label, at, settings, join(path, name), problems)))
        else:
            message = f"must be a map of settings, but got {kind(settings)}; write {{}} for the recipe's"
            problems.add(settings.mark, join(path, name), message)
    return tuple(found)


def _named(node: Node | None, path: str, problems: Problems) -> list[tuple[str, Mark, Node]]:
    if isinstance(node, Map):
        return [(name, entry.mark, entry.node) for name, entry in node.items.items()]
    found: list[tuple[str, Mark, Node]] = []
    for name in read_names(node, path, problems):
        if any(name.text == other for other, _, _ in found):
            problems.add(name.mark, path, f"{name.text} is named twice")
        found.append((name.text, name.mark, Map({}, name.mark)))
    return found


def read_names(node: Node | None, path: str, problems: Problems) -> list[Scalar]:
    """A list of words, with their places."""
    if node is None:
        return []
    items: Sequence[Node] = node.items if isinstance(node, Seq) else ()
    if not isinstance(node, Seq):
        problems.add(node.mark, path, f"must be a list of names, but got {kind(node)}")
    for i, item in enumerate(items):
        if not isinstance(item, Scalar) or not item.text:
            problems.add(item.mark, join(path, i), f"must be a name, but got {kind(item)}")
    return [item for item in items if isinstance(item, Scalar) and item.text]


def _with_own(draft: Draft, name: str, settings: Map) -> Node | None:
    own = draft.root.get("algorithms")
    below = own.get(name) if isinstance(own, Map) else None
    return settings if "as" in settings.items or below is None else below


def _levels(name: str, label: str, at: Mark, settings: Map, path: str, problems: Problems) -> tuple[Level, ...]:
    """Every combination of the values that a candidate's settings list."""
    hints = _hints(name)
    listed = {key: items for key, e in settings.items.items() if (items := _values(e.node, hints.get(key, Any)))}
    plain_map = Map(settings.items, at)
    if not listed:
        return (Level(label, Method(name, plain_map)),)
    texts = {key: _distinct(items, hints.get(key, Any), join(path, key), problems) for key, items in listed.items()}
    count = 1
    for choices in texts.values():
        count *= len(choices)
    if count > MAX_LEVELS:
        problems.add(at, path, f"has {count:,} levels; at most {MAX_LEVELS:,} can be told apart")
        return ()
    return tuple(_level(name, label, plain_map, dict(zip(texts, chosen, strict=True)), settings)
                 for chosen in itertools.product(*(choices.items() for choices in texts.values())))  # fmt: skip


def _level(name: str, label: str, base: Map, chosen: Mapping[str, tuple[str, Node]], settings: Map) -> Level:
    for key, (_, node) in chosen.items():
        base = base.with_entry(key, Entry(settings.items[key].mark, node))
    inside = ",".join(f"{key}={text}" for key, (text, _) in chosen.items())
    return Level(f"{label}[{inside}]", Method(name, base))


def _hints(name: str) -> dict[str, Any]:
    if plugins.is_import_path(name):
        return {}
    try:
        return field_hints(plugins.load("algorithms", name))
    except PluginError:
        return {}  # said where the candidate is built


def _values(node: Node, hint: Any) -> tuple[Node, ...]:
    """The values a setting lists, none where it is one value."""
    if isinstance(node, Map) and list(node.items) == ["values"] and isinstance(inner := node.get("values"), Seq):
        return inner.items
    return node.items if isinstance(node, Seq) and not takes_lists(hint) else ()


def _distinct(items: Sequence[Node], hint: Any, path: str, problems: Problems) -> dict[str, Node]:
    """Values by the text they have in a label; two spellings of one value are one."""
    found: dict[str, Node] = {}
    for i, item in enumerate(items):
        value = told(item, hint, join(path, i), problems)
        if value is not BAD:
            found.setdefault(label_text(value), item)
    return found


def told(node: Node, hint: Any, path: str, problems: Problems) -> Any:
    """The value of a setting as a label tells it: by the type of its field, a reference as it is written; or BAD."""
    if isinstance(node, Scalar) and "${" in node.text:
        return node.text
    return convert(node, hint, path, problems)


def read_set(
    node: Node | None, path: str, candidates: Sequence[Candidate], draft: Draft, problems: Problems
) -> tuple[Level, ...]:
    """A set of methods by name or level: candidates, methods of the recipe, or any other with its defaults."""
    found: dict[str, Level] = {}
    for name in read_names(node, path, problems):
        level = named_level(name, path, candidates, draft, problems)
        if level is None:
            continue
        if level.method.name in found:
            problems.add(name.mark, path, f"{level.method.name} is named twice")
        found[level.method.name] = level
    return tuple(found.values())


def named_level(
    name: Scalar, path: str, candidates: Sequence[Candidate], draft: Draft, problems: Problems
) -> Level | None:
    """The method that is called so: a candidate or one of its levels, a method of the recipe, or any other."""
    for candidate in candidates:
        labels = {level.label: level for level in candidate.levels}
        if name.text in labels:
            return labels[name.text]
        if name.text in (candidate.name, candidate.label):
            return _only_level(name, path, candidate, problems)
    if name.text in draft.own_methods():
        return Level(label_of(name.text, _with_own(draft, name.text, Map({}, name.mark))), _own(name))
    if plugins.is_import_path(name.text) or name.text in plugins.names("algorithms"):
        return Level(label_of(name.text, None), _own(name))
    known = {*plugins.names("algorithms"), *draft.own_methods(), *(c.label for c in candidates)}
    problems.add(name.mark, path, unknown("algorithm", name.text, known))
    return None


def settled_level(name: str, at: Mark, settings: Map, path: str, draft: Draft, problems: Problems) -> Level | None:
    """A method with settings of its own, which are in its label."""
    label = label_of(name, _with_own(draft, name, settings))
    hints = _hints(name)
    inside = []
    for key, entry in settings.without("as").items.items():
        value = told(entry.node, hints.get(key, Any), join(path, key), problems)
        if value is BAD:
            return None
        inside.append(f"{key}={label_text(value)}")
    return Level(f"{label}[{','.join(inside)}]" if inside else label, Method(name, Map(settings.items, at)))


def _own(name: Scalar) -> Method:
    return Method(name.text, Map({}, name.mark))


def _only_level(name: Scalar, path: str, candidate: Candidate, problems: Problems) -> Level | None:
    if len(candidate.levels) == 1:
        return candidate.levels[0]
    if candidate.levels:
        labels = ", ".join(repr(level.label) for level in candidate.levels)
        problems.add(name.mark, path, f"{candidate.label} has several levels; name one of {labels}")
    return None
