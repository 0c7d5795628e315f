"""One component of a recipe: a plug-in with its settings checked, or code of the user's own as written."""

from __future__ import annotations

import re
from typing import Any

from expkit import plugins
from expkit.errors import PluginError
from expkit.spec.convert import BAD, build, core_value
from expkit.spec.merge import default_label
from expkit.spec.recipe import Component
from expkit.spec.tree import Map, Mark, Node, Problems, Scalar, join, kind
from expkit.spec.trust import Trust

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def single(node: Node, plugin_kind: str, path: str, trust: Trust, problems: Problems) -> Component | None:
    """The component written as a one-key map `{resnet: {depth: 8}}`; None where something is wrong with it."""
    if not isinstance(node, Map) or len(node.items) != 1:
        if isinstance(node, Scalar) and node.style == "wrong":
            return None
        got = f"a map of {len(node.items)} keys" if isinstance(node, Map) and node.items else kind(node)
        known = plugins.names(plugin_kind)
        example = node.text if isinstance(node, Scalar) and node.text in known else next(iter(known), "NAME")
        wanted = f"must be a component with its settings, such as {{{example}: {{}}}}, but got {got}"
        problems.add(node.mark, path, f"{wanted}; there are: {', '.join(known) or 'none'}")
        return None
    ((name, entry),) = node.items.items()
    return component(name, entry.mark, entry.node, plugin_kind, join(path, name), trust, problems)


def component(
    name: str, at: Mark, node: Node, plugin_kind: str, path: str, trust: Trust, problems: Problems
) -> Component | None:
    """The component of this name; `at` is where the name stands, `node` its settings."""
    if not isinstance(node, Map):
        problems.add(node.mark, path, f"must be a map of settings, but got {kind(node)}; write {{}} for none")
        return None
    label = _label(name, node, path, problems)
    given = node.without("as")
    if plugins.is_import_path(name):
        settings = _own_code(name, at, given, path, trust, problems)
    else:
        settings = _plugin(name, at, given, plugin_kind, path, problems)
    return None if settings is BAD or label is None else Component(name, label, settings)


def _label(name: str, node: Map, path: str, problems: Problems) -> str | None:
    given = node.get("as")
    if given is None:
        return default_label(name)
    if isinstance(given, Scalar) and _LABEL.fullmatch(given.text):
        return given.text
    problems.add(given.mark, join(path, "as"), f"must be a name of letters, digits and _, but got {kind(given)}")
    return None


def _own_code(name: str, at: Mark, node: Map, path: str, trust: Trust, problems: Problems) -> Any:
    try:
        module, _ = plugins.parse_import_path(name)
    except PluginError as e:
        problems.add(at, path, str(e))
        return BAD
    if not plugins.trusted(module, trust.patterns):
        problems.add(at, path, plugins.untrusted(name))
        return BAD
    return core_value(node, path, problems)


def _plugin(name: str, at: Mark, node: Map, plugin_kind: str, path: str, problems: Problems) -> Any:
    try:
        cls = plugins.load(plugin_kind, name)
    except PluginError as e:
        problems.add(at, path, str(e))
        return BAD
    made = build(cls, node, path, problems, what=f"setting of {name}", adapter=plugins.adapter(cls))
    return BAD if made is BAD else plugins.dump(made)
