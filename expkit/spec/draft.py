"""A recipe whose tree is merged but not yet typed, and the recipes that come of it when parameters and methods change.

A section is checked once for each value of the parameters it depends on, by its own paths or through references; so a
thousand trials that differ in their methods share one model, one data set and one optimizer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from expkit.errors import unknown
from expkit.spec.axes import OWN, Point
from expkit.spec.components import component
from expkit.spec.convert import core_value
from expkit.spec.interpolate import Interpolator, references
from expkit.spec.merge import MANY, NESTED, SINGLE, assigned, find, merged, split
from expkit.spec.recipe import Component, Recipe, Runtime
from expkit.spec.section import NO_MAP, RECORDS, by_label, check_vars, typed
from expkit.spec.tree import Entry, Map, Node, Problems, Scalar, kind, scalars
from expkit.spec.trust import Trust
from expkit.spec.values import MISSING

PLAIN = ("name", "seed")
REQUIRED = ("version", "name", "model", "data", "optimizer", "trainer", "metrics")
KEYS = ("version", "name", "extends", "vars", *SINGLE, *NESTED, *MANY, "allow", *RECORDS, "seed", "presets")
MAX_KEPT = 10_000
"""Sections kept at a time, so that a plan of any size needs the same memory."""
_SECTIONS = (*PLAIN, *SINGLE, *NESTED, "callbacks", "allow", *RECORDS)
_ABSENT: dict[str, Any] = {"callbacks": {}, "allow": (), "runtime": Runtime(), "seed": 0}


@dataclass(frozen=True)
class Parameter:
    """A path of the recipe and the values that a sweep gives it."""

    path: str
    nodes: tuple[Node, ...]
    values: tuple[Any, ...]
    """The same as values, by the type of the field."""
    mark: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class Method:
    """An algorithm as a sweep switches it on: its name and what the sweep sets for it at one level."""

    name: str
    settings: Map


class Draft:
    """A merged recipe tree with the trust of its project."""

    def __init__(
        self,
        root: Map,
        trust: Trust,
        parameters: Sequence[Parameter] = (),
        allow: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.root = root
        self.trust = trust
        self.parameters = tuple(parameters)
        self.allow = tuple(allow)
        self._by_depth = sorted(range(len(self.parameters)), key=lambda i: len(split(root, self.parameters[i].path)))
        self._sections: dict[tuple[Any, ...], Any] = {}
        self._shared: dict[Point, dict[str, Any]] = {}
        self._points: dict[Point, Map] = {}

    def with_parameters(self, parameters: Sequence[Parameter]) -> Draft:
        """The same recipe, to be varied."""
        return Draft(self.root, self.trust, parameters, self.allow)

    def allowing(self, pairs: Iterable[tuple[str, str]]) -> Draft:
        """The same recipe, in which these pairs of methods may be on together."""
        return Draft(self.root, self.trust, self.parameters, (*self.allow, *pairs))

    def recipe(self, problems: Problems) -> Recipe | None:
        """The recipe itself, None where something is wrong with it."""
        self._check_keys(problems)
        point = tuple(OWN for _ in self.parameters)
        made = {key: self.section(key, point, problems) for key in _SECTIONS}
        own = [Method(name, Map({}, self.root.mark)) for name in self.own_methods()]
        methods = [self.method(method, point, problems) for method in own]
        if problems.found:
            return None
        return self._assemble(made, by_label([m for m in methods if m], self.root, problems))

    def own_methods(self) -> tuple[str, ...]:
        """Names of the algorithms that the recipe itself switches on."""
        node = self.root.get("algorithms")
        return tuple(node.items) if isinstance(node, Map) else ()

    def variant(
        self, point: Point, methods: Iterable[Component], problems: Problems, seed: int | None = None
    ) -> Recipe | None:
        """The recipe at a point with exactly these methods."""
        made = self._shared.get(point)
        if made is None:
            before = len(problems.found)
            made = {key: self.section(key, point, problems) for key in _SECTIONS}
            if len(problems.found) > before:
                return None
            if len(self._shared) > 64:
                self._shared.clear()
            self._shared[point] = made
        return self._assemble(made, by_label(methods, self.root, problems), seed)

    def _assemble(
        self, made: Mapping[str, Any], algorithms: Mapping[str, Component], seed: int | None = None
    ) -> Recipe:
        return Recipe(
            name=made["name"], model=made["model"], data=made["data"], optimizer=made["optimizer"],
            scheduler=made["scheduler"], algorithms=algorithms, callbacks=made["callbacks"],
            trainer=made["trainer"], metrics=made["metrics"], seed=made["seed"] if seed is None else seed,
            runtime=made["runtime"], allow=self._allowed(made["allow"], algorithms),
        )  # fmt: skip

    def _allowed(
        self, own: Sequence[tuple[str, str]], algorithms: Mapping[str, Component]
    ) -> tuple[tuple[str, str], ...]:
        """Those of the allowed pairs of which both are on."""
        pairs = (*own, *self.allow)
        if not pairs:
            return ()
        on = {key: method.name for method in algorithms.values() for key in (method.name, method.label)}
        named = [sorted((on[a], on[b])) for a, b in pairs if a in on and b in on]
        return tuple(sorted({(a, b) for a, b in named}))

    def _check_keys(self, problems: Problems) -> None:
        for key in self.root.items.keys() - set(KEYS):
            problems.add(self.root.items[key].mark, key, unknown("key", key, KEYS))
        for key in REQUIRED:
            if key not in self.root.items:
                problems.add(self.root.mark, key, "is required")
        version = self.root.get("version")
        if version is not None and not (isinstance(version, Scalar) and version.text == "1"):
            problems.add(version.mark, "version", f"must be 1, but got {kind(version)}")
        if (variables := self.root.get("vars")) is not None:
            check_vars(variables, problems)
        if (methods := self.root.get("algorithms")) is not None and not isinstance(methods, Map):
            problems.add(methods.mark, "algorithms", NO_MAP.format(key="algorithms", got=kind(methods)))

    def section(self, key: str, point: Point, problems: Problems) -> Any:
        """What stands under one top-level key, checked; None where it is absent or wrong."""
        cached = (key, *(point[i] for i in self._depends(key)))
        if cached not in self._sections:
            before = len(problems.found)
            root = self.tree(point, problems)
            node = root.get(key)
            made = _ABSENT.get(key)
            if node is not None:
                made = typed(key, Interpolator(root, problems).node(node, key, root), self.trust, problems)
            if len(problems.found) > before:
                return made
            if len(self._sections) > MAX_KEPT:
                self._sections.clear()
            self._sections[cached] = made
        return self._sections[cached]

    def method(self, method: Method, point: Point, problems: Problems) -> Component | None:
        """An algorithm at a point: what the recipe sets for it, and on top what the sweep sets."""
        root = self.tree(point, problems)
        own = root.get("algorithms")
        below = own.items.get(method.name) if isinstance(own, Map) else None
        at = below.mark if below and not method.settings.items else method.settings.mark
        node: Node = method.settings
        if below is not None:
            node = merged(below.node, method.settings) if isinstance(below.node, Map) else below.node
        path = f"algorithms.{method.name}"
        plain = Interpolator(root, problems).node(node, path, node if isinstance(node, Map) else root)
        return component(method.name, at, plain, "algorithms", path, self.trust, problems)

    def method_depends(self, method: Method) -> tuple[int, ...]:
        """Which parameters the settings of an algorithm depend on."""
        return self._closure([f"algorithms.{method.name}"], [method.settings])

    def tree(self, point: Point, problems: Problems) -> Map:
        """The recipe's tree with the parameters of a point put in."""
        if not self.parameters:
            return self.root
        if point not in self._points:
            if len(self._points) > 64:
                self._points.clear()
            root = self.root
            for i in self._by_depth:  # a whole component before what is set inside it
                if point[i] != OWN:
                    node = self.parameters[i].nodes[point[i]]
                    root = assigned(root, self.parameters[i].path, Entry(node.mark, node), problems)
            self._points[point] = root
        return self._points[point]

    def variable(self, path: str) -> Any:
        """What the recipe's file says at a path below `vars`; MISSING where it says nothing."""
        node = find(self.root, split(self.root, path)) if path.startswith("vars.") else None
        return MISSING if node is None else core_value(node, path, Problems())

    def depending(self, index: int) -> list[str]:
        """The sections that a parameter changes, algorithms aside."""
        return [key for key in (*SINGLE, *NESTED, "callbacks", "trainer") if index in self._depends(key)]

    def path_depends(self, path: str) -> tuple[int, ...]:
        """Which parameters the value at a path depends on."""
        return self._closure([path], [])

    @functools.lru_cache(maxsize=64)  # noqa: B019 (a draft lives as long as its plan)
    def _depends(self, key: str) -> tuple[int, ...]:
        return self._closure([key], [])

    def _closure(self, paths: list[str], nodes: list[Node]) -> tuple[int, ...]:
        """Indices of the parameters at, above or below these paths, references followed."""
        found: set[int] = set()
        seen: set[str] = set()
        while paths or nodes:
            if not nodes:
                path = paths.pop()
                if path in seen:
                    continue
                seen.add(path)
                hit = {i for i, p in enumerate(self.parameters) if _overlap(split(self.root, path), p.path, self.root)}
                found |= hit
                nodes += [n for i in hit for n in self.parameters[i].nodes]
                nodes += self._at(path)
                continue
            for scalar in scalars(nodes.pop()):
                paths += references(scalar.text)
        return tuple(sorted(found))

    def _at(self, path: str) -> list[Node]:
        node = find(self.root, split(self.root, path))
        return [] if node is None else [node]


def _overlap(parts: Sequence[str], path: str, root: Map) -> bool:
    other = split(root, path)
    short = min(len(parts), len(other))
    return list(parts[:short]) == other[:short]
