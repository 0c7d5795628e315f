"""What a sweep leaves out: constraints between methods, from file and declarations, and excluded conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from expkit import plugins
from expkit.errors import unknown
from expkit.spec.axes import Point
from expkit.spec.candidates import read_names
from expkit.spec.checks import capabilities, declared_conflicts, requires
from expkit.spec.draft import Draft
from expkit.spec.expressions import Expression, parse
from expkit.spec.recipe import Component, Recipe
from expkit.spec.section import read_pairs
from expkit.spec.sweep import Allowance, Conflict, Exclusion, Requirement
from expkit.spec.tree import Map, Mark, Node, Problems, Scalar, Seq, join, kind
from expkit.spec.values import MISSING, value_at


def read_constraints(
    node: Node | None, names: Mapping[str, str], provided: frozenset[str] | None, problems: Problems
) -> tuple[list[Conflict], list[Requirement], list[Allowance]]:
    """Constraints of the file; `names` maps what a method may be called to its name."""
    conflicts: list[Conflict] = []
    requirements: list[Requirement] = []
    allowances: list[Allowance] = []
    for path, item in read_maps(node, "ablate.constraints", problems):
        because = _because(item, path, problems)
        forms = [key for key in item.items if key != "because"]
        if forms == ["conflicts"]:
            methods = _known(
                read_names(item.get("conflicts"), join(path, "conflicts"), problems), names, path, problems
            )
            conflicts.append(Conflict(methods, because))
        elif forms == ["requires"]:
            requirements += _requirements(item.items["requires"].node, join(path, "requires"), because, names, provided,
                                          problems)  # fmt: skip
        elif forms == ["allow"]:
            allowances += _allowances(item.items["allow"].node, join(path, "allow"), because, names, problems)
        else:
            message = "must be {conflicts: [..]}, {requires: {..}} or {allow: [[..]]}, with because: where it helps"
            problems.add(item.mark, path, message)
    return conflicts, requirements, allowances


def read_allow(node: Node | None, names: Mapping[str, str], problems: Problems) -> list[Allowance]:
    """`ablate.allow`: pairs, or maps {pair: [mixup, cutmix], because: ...}."""
    if node is None or not isinstance(node, Seq):
        return [] if node is None else _allowances(node, "ablate.allow", "", names, problems)
    found: list[Allowance] = []
    for i, item in enumerate(node.items):
        path, because, pair = join("ablate.allow", i), "", item
        if isinstance(item, Map):
            for key in item.items.keys() - {"pair", "because"}:
                problems.add(item.items[key].mark, join(path, key), unknown("key", key, ("pair", "because")))
            because, pair = _because(item, path, problems), item.get("pair") or item
        found += _allowances(Seq((pair,), item.mark), path, because, names, problems)
    return found


def _allowances(node: Node, path: str, because: str, names: Mapping[str, str], problems: Problems) -> list[Allowance]:
    found = []
    for pair in read_pairs(node, path, problems):
        for name in pair:
            if name not in names:
                problems.add(node.mark, path, unknown("method of this sweep", name, names))
        known = tuple(names[name] for name in pair if name in names)
        if len(known) == 2:
            found.append(Allowance((known[0], known[1]), because))
    return found


def refuse_idle(allowances: Sequence[Allowance], methods: Sequence[Component], mark: Mark, problems: Problems) -> None:
    """An allowance that lifts nothing is a problem; what code of the user's own declares is not known here."""
    declared_pairs = {frozenset(pair) for pair in declared_conflicts(methods)}
    for allowance in allowances:
        if frozenset(allowance.pair) not in declared_pairs and not any(map(plugins.is_import_path, allowance.pair)):
            message = f"neither {allowance.pair[0]} nor {allowance.pair[1]} declares that they exclude each other"
            problems.add(mark, "ablate.allow", f"{message}; there is nothing to allow")


def read_maps(node: Node | None, path: str, problems: Problems) -> list[tuple[str, Map]]:
    """The maps of a list of maps, each with its path."""
    if node is None:
        return []
    if not isinstance(node, Seq):
        problems.add(node.mark, path, f"must be a list of maps, but got {kind(node)}")
        return []
    for i, item in enumerate(node.items):
        if not isinstance(item, Map):
            problems.add(item.mark, join(path, i), f"must be a map, but got {kind(item)}")
    return [(join(path, i), item) for i, item in enumerate(node.items) if isinstance(item, Map)]


def _because(item: Map, path: str, problems: Problems) -> str:
    node = item.get("because")
    if node is None or isinstance(node, Scalar):
        return node.text if node else ""
    problems.add(node.mark, join(path, "because"), f"must be text, but got {kind(node)}")
    return ""


def _known(found: Sequence[Scalar], names: Mapping[str, str], path: str, problems: Problems) -> tuple[str, ...]:
    for name in found:
        if name.text not in names:
            problems.add(name.mark, path, unknown("method of this sweep", name.text, names))
    return tuple(names[name.text] for name in found if name.text in names)


def _requirements(
    node: Node, path: str, because: str, names: Mapping[str, str], provided: frozenset[str] | None, problems: Problems
) -> list[Requirement]:
    """Needs that are not met anyway; without knowledge of the model no capability is checked."""
    if not isinstance(node, Map):
        problems.add(node.mark, path, f"must be a map of a method and what it needs, but got {kind(node)}")
        return []
    found = []
    for name, entry in node.items.items():
        if name not in names:
            problems.add(entry.mark, join(path, name), unknown("method of this sweep", name, names))
            continue
        wanted = Seq((entry.node,), entry.node.mark) if isinstance(entry.node, Scalar) else entry.node
        words = read_names(wanted, join(path, name), problems)
        for word in words:
            if word.text not in plugins.CAPABILITIES and word.text not in names:
                known = {*plugins.CAPABILITIES, *names}
                problems.add(word.mark, join(path, name), unknown("capability or method", word.text, known))
        needs = [w.text for w in words if w.text in names or (provided is not None and w.text not in provided)]
        if needs:
            found.append(Requirement(names[name], tuple(names.get(need, need) for need in needs), because))
    return found


def declared(
    candidates: Sequence[Component],
    constant: Sequence[Component],
    provided: frozenset[str] | None,
    allowed: Collection[frozenset[str]],
) -> tuple[list[Conflict], list[Requirement]]:
    """What the methods themselves say they cannot be with, and cannot be without."""
    conflicts = [
        Conflict(pair, f"{pair[0]} and {pair[1]} declare that they exclude each other", declared=True)
        for pair in declared_conflicts([*candidates, *constant])
        if frozenset(pair) not in allowed
    ]
    needs = {one.name: requires(one) - provided for one in candidates} if provided is not None else {}
    unmet = [
        Requirement(name, tuple(sorted(missing)), "neither the model nor the data provide it", declared=True)
        for name, missing in needs.items()
        if missing
    ]
    return conflicts, unmet


def provided_by(draft: Draft, points: Iterable[Point], problems: Problems) -> frozenset[str] | None:
    """What models and data provide at any of these points; None where own code makes it unknowable."""
    provided: frozenset[str] = frozenset()
    seen: dict[tuple[int, int], Any] = {}
    for point in points:
        model, data = draft.section("model", point, problems), draft.section("data", point, problems)
        if model is None or data is None or (id(model), id(data)) in seen:
            continue
        seen[id(model), id(data)] = (model, data)
        found = capabilities([model, data.train])
        if found is None:
            return None
        provided |= found
    return provided


def read_exclusions(node: Node | None, problems: Problems) -> list[Exclusion]:
    """Conditions and their reasons."""
    found = []
    for path, item in read_maps(node, "exclude", problems):
        for key in item.items.keys() - {"when", "because"}:
            problems.add(item.items[key].mark, join(path, key), unknown("key", key, ("when", "because")))
        when = item.get("when")
        if isinstance(when, Scalar) and when.text:
            expression = parse(when, join(path, "when"), problems)
            if expression is not None:
                found.append(Exclusion(expression, _because(item, path, problems)))
        else:
            problems.add((when or item).mark, join(path, "when"), "must be a condition such as has('ema')")
    return found


def check_expression(
    expression: Expression,
    names: Mapping[str, str],
    recipes: Sequence[Recipe],
    paths: Sequence[str],
    problems: Problems,
) -> None:
    """A method or a path that no trial of the sweep has is a problem; `recipes` have all methods between them."""
    for name, mark in expression.methods.items():
        if name not in names:
            problems.add(mark, "when", unknown("method of this sweep", name, names))
    for path, mark in expression.paths.items():
        if path in ("seed", "seeds"):
            problems.add(mark, "when", "a condition cannot ask for the seed; say in `seeds` which to run")
        elif path not in paths and all(value_at(recipe, path) is MISSING for recipe in recipes):
            problems.add(mark, "when", f"no trial of this sweep has {path!r}; {_near(path, recipes)}")


def _near(path: str, recipes: Sequence[Recipe]) -> str:
    from expkit.spec.dump import recipe_to_json  # needed for the sentence only

    known = {dotted for recipe in recipes for dotted in _dotted(recipe_to_json(recipe), "")}
    return unknown("path", path, (k for k in known if k.split(".")[0] == path.split(".")[0])).partition("; ")[2]


def _dotted(value: Any, path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [path]
    return [dotted for key, inner in value.items() for dotted in _dotted(inner, join(path, key))]
