"""`${vars.x}`, `${path.to.key}`, `${.sibling}` and `${env:NAME,default}`: the only references a file may hold.

A value that is one reference takes over what it names, map or list too; inside a longer text it is put in as text.
`$${` writes a plain `${`.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace

from expkit.errors import unknown
from expkit.spec.merge import split
from expkit.spec.tree import Entry, Map, Node, Problems, Scalar, Seq, join, shown

MAX_DEPTH = 50
MAX_TEXT = 10_000
MAX_NODES = 100_000
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^{}$]*)\}|(?P<open>\$\{)")
_ENV = re.compile(r"env:(?P<name>[A-Za-z_]\w*)(?:,(?P<default>.*))?", re.DOTALL)


class _Unresolved(Exception):
    """A reference that was complained about."""


class Interpolator:
    """Replaces the references of one tree; `root` is what absolute paths start from."""

    def __init__(self, root: Map, problems: Problems) -> None:
        self.root = root
        self.problems = problems
        self.active: list[int] = []
        self.nodes = 0

    def node(self, node: Node, path: str, scope: Map) -> Node:
        """The node without references; `scope` is the map it stands in, for `${.sibling}`."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            return self._refuse(node, path, f"references lead to more than {MAX_NODES:,} values")
        match node:
            case Scalar():
                return self._scalar(node, path, scope) if "${" in node.text else node
            case Seq():
                return replace(node, items=tuple(self.node(n, join(path, i), scope) for i, n in enumerate(node.items)))
            case Map():
                items = {k: Entry(e.mark, self.node(e.node, join(path, k), node)) for k, e in node.items.items()}
                return replace(node, items=items)

    def _refuse(self, node: Node, path: str, message: str) -> Node:
        if not any(p.message == message for p in self.problems.found):
            self.problems.add(node.mark, path, message)
        return Scalar("", node.mark, "wrong")

    def _scalar(self, node: Scalar, path: str, scope: Map) -> Node:
        try:
            whole = _REFERENCE.fullmatch(node.text)
            if whole and whole["inside"] is not None:
                return self._whole(node, whole["inside"], path, scope)
            text = _REFERENCE.sub(lambda match: self._part(match, node, path, scope), node.text)
        except _Unresolved:
            return Scalar("", node.mark, "wrong")
        if len(text) > MAX_TEXT:
            return self._refuse(node, path, f"references make a text of more than {MAX_TEXT:,} characters")
        refers = any(match["inside"] is not None for match in _REFERENCE.finditer(node.text))
        return Scalar(text, node.mark, "made" if refers else node.style)

    def _whole(self, node: Scalar, inside: str, path: str, scope: Map) -> Node:
        found = self._target(node, inside, path, scope)
        if isinstance(found, Scalar):
            return Scalar(found.text, node.mark, "made" if found.style == "plain" else found.style)
        return found

    def _part(self, match: re.Match[str], node: Scalar, path: str, scope: Map) -> str:
        if match["open"]:
            self.problems.add(
                node.mark, path, "${ is not closed by }, or holds another reference; $${ writes it as text"
            )
            raise _Unresolved
        if match["inside"] is None:
            return "${"
        found = self._target(node, match["inside"], path, scope)
        if isinstance(found, Scalar):
            if found.style == "wrong":
                raise _Unresolved
            return found.text
        self.problems.add(node.mark, path, f"${{{match['inside']}}} is no single value and cannot be part of a text")
        raise _Unresolved

    def _target(self, node: Scalar, inside: str, path: str, scope: Map) -> Node:
        """What one reference stands for, itself free of references."""
        if inside.startswith("env:"):
            return self._environment(node, inside, path)
        if id(node) in self.active or len(self.active) > MAX_DEPTH:
            self.problems.add(node.mark, path, f"${{{inside}}} leads back to itself")
            raise _Unresolved
        found, parent = self._look_up(node, inside, path, scope)
        self.active.append(id(node))
        try:
            return self.node(found, path, parent)
        finally:
            self.active.pop()

    def _environment(self, node: Scalar, inside: str, path: str) -> Node:
        match = _ENV.fullmatch(inside)
        if match is None:
            self.problems.add(
                node.mark, path, f"${{{shown(inside, False)}}} must be ${{env:NAME}} or ${{env:NAME,default}}"
            )
            raise _Unresolved
        value: str | None = os.environ.get(match["name"], match["default"])
        if value is None:
            self.problems.add(
                node.mark, path, f"the environment variable {match['name']} is not set and has no default"
            )
            raise _Unresolved
        return Scalar(value, node.mark, "made")

    def _look_up(self, node: Scalar, inside: str, path: str, scope: Map) -> tuple[Node, Map]:
        parent = scope if inside.startswith(".") else self.root
        parts = split(parent, inside.removeprefix("."))
        for i, part in enumerate(parts):
            found = parent.get(part)
            if found is None:
                self.problems.add(
                    node.mark, path, f"${{{shown(inside, False)}}}: {unknown('name', part, parent.items)}"
                )
                raise _Unresolved
            if i == len(parts) - 1:
                return found, parent
            if not isinstance(found, Map):
                break
            parent = found
        self.problems.add(node.mark, path, f"${{{shown(inside, False)}}}: {part!r} holds no further names")
        raise _Unresolved


def references(text: str) -> list[str]:
    """The absolute paths that a text refers to."""
    found = (match["inside"] for match in _REFERENCE.finditer(text))
    return [inside for inside in found if inside and not inside.startswith((".", "env:"))]
