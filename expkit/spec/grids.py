"""Grids of a sweep, whose union is run, and arms that are included by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from expkit.errors import unknown
from expkit.spec.axes import OWN, Axes
from expkit.spec.candidates import named_level, read_candidates, settled_level
from expkit.spec.draft import Draft, Method
from expkit.spec.identity import Identifier, spell
from expkit.spec.parameters import Table
from expkit.spec.rules import read_maps
from expkit.spec.seeds import read_seeds
from expkit.spec.sweep import Candidate, Grid, Include, Level
from expkit.spec.tree import Entry, Map, Node, Problems, Scalar, join, kind

GRID_KEYS = ("candidates", "parameters", "zip")
INCLUDE_KEYS = ("algorithms", "parameters", "seeds")


class GridReader:
    """Reads all grids of a sweep; what the sweep itself says of candidates and parameters holds in each of them."""

    def __init__(self, root: Map, candidates: Node | None, draft: Draft, problems: Problems) -> None:
        self.root, self.draft, self.problems = root, draft, problems
        self.maps = read_maps(root.get("grids"), "grids", problems)
        shared = read_candidates(candidates, "ablate.candidates", draft, problems)
        self.own = [self._candidates(item, path, shared) for path, item in self.maps] or [shared]
        self.candidates = self._united()
        self.table = Table(draft, {c.name for c in self.candidates}, problems)
        self.axes = self.table.grids(
            (root.get("parameters"), root.get("zip")),
            [(path, item.get("parameters"), item.get("zip")) for path, item in self.maps],
            root.get("budgets"),
        )

    def _candidates(self, item: Map, path: str, shared: Sequence[Candidate]) -> tuple[Candidate, ...]:
        for key in item.items.keys() - set(GRID_KEYS):
            self.problems.add(item.items[key].mark, join(path, key), unknown("key", key, GRID_KEYS))
        own = read_candidates(item.get("candidates"), join(path, "candidates"), self.draft, self.problems)
        replaced = {c.name for c in own}
        return (*(c for c in shared if c.name not in replaced), *own)

    def _united(self) -> tuple[Candidate, ...]:
        """Each candidate once with the levels that it has in any grid; one label with two meanings is a problem."""
        found: dict[str, Candidate] = {}
        for candidate in (c for candidates in self.own for c in candidates):
            known = found.get(candidate.name)
            levels = {level.label: level for level in known.levels} if known else {}
            for level in candidate.levels:
                if not self._same(levels.setdefault(level.label, level), level):
                    message = (
                        f"{level.label} has other settings in another grid; give both a name by writing one as a "
                        "list, such as {half_life: [12ba]}, or by `as:`"
                    )
                    self.problems.add(level.method.settings.mark, "grids", message)
            found[candidate.name] = replace(known or candidate, levels=tuple(levels.values()))
        return tuple(found.values())

    def _same(self, one: Level, other: Level) -> bool:
        return one is other or _settings(one.method.settings) == _settings(other.method.settings)

    def grids(self, draft: Draft, forced: frozenset[str]) -> tuple[Grid, ...]:
        """The grids; candidates that `always` keeps on belong to each of them."""
        kept = [c for c in self.candidates if c.name in forced]
        num = len(draft.parameters)
        return tuple(
            Grid((*candidates, *(c for c in kept if c.name not in {own.name for own in candidates})), Axes(num, axes))
            for candidates, axes in zip(self.own, self.axes, strict=True)
        )


def _settings(node: Node) -> object:
    """What a tree says, places aside."""
    match node:
        case Scalar():
            return node.text, node.style == "quoted"
        case Map(items=entries):
            return {key: _settings(entry.node) for key, entry in entries.items()}
        case _:
            return [_settings(item) for item in node.items]


class IncludeReader:
    """Reads `include`: first the values that it sets, then, once all parameters are known, its arms."""

    def __init__(self, node: Node | None, table: Table, problems: Problems) -> None:
        self.problems = problems
        self.budgets = table.budgets
        self.maps = read_maps(node, "include", problems)
        self.values = [self._values(item, path, table) for path, item in self.maps]

    def _values(self, item: Map, path: str, table: Table) -> dict[int, int]:
        for key in item.items.keys() - set(INCLUDE_KEYS):
            self.problems.add(item.items[key].mark, join(path, key), unknown("key", key, INCLUDE_KEYS))
        node, found = item.get("parameters"), {}
        if node is not None and not isinstance(node, Map):
            message = f"must be a map of paths and one value each, but got {kind(node)}"
            self.problems.add(node.mark, join(path, "parameters"), message)
        for name, entry in node.items.items() if isinstance(node, Map) else ():
            index = table.single(name, entry.mark, entry.node, join(join(path, "parameters"), name))
            if index is not None:
                found[index[0]] = index[1]
        return found

    def _budgets(self, values: dict[int, int]) -> list[dict[int, int]]:
        """The values at each budget, but where the arm names its own."""
        if self.budgets is None or self.budgets.parameters[0] in values:
            return [values]
        return [{**values, self.budgets.parameters[0]: row} for (row,) in self.budgets.rows]

    def includes(
        self, draft: Draft, candidates: Sequence[Candidate], constant: Sequence[Method], seeds: tuple[int, ...]
    ) -> tuple[Include, ...]:
        """The arms as sweeps have them."""
        found = []
        for (path, item), values in zip(self.maps, self.values, strict=True):
            levels = self._levels(item.get("algorithms"), join(path, "algorithms"), draft, candidates, constant)
            own = read_seeds(item.get("seeds"), seeds[0], self.problems) if "seeds" in item.items and seeds else seeds
            for at in self._budgets(values):
                point = tuple(at.get(i, OWN) for i in range(len(draft.parameters)))
                found.append(Include(levels, point, own, path, item.mark))
        return tuple(found)

    def _levels(
        self, node: Node | None, path: str, draft: Draft, candidates: Sequence[Candidate], constant: Sequence[Method]
    ) -> tuple[Level, ...]:
        if node is not None and not isinstance(node, Map):
            message = f"must be a map of methods and their settings, but got {kind(node)}; write {{}} for none"
            self.problems.add(node.mark, path, message)
            return ()
        found: dict[str, Level] = {}
        for name, entry in node.items.items() if isinstance(node, Map) else ():
            level = self._level(name, entry, path, draft, candidates)
            if level is None:
                continue
            if level.method.name in {m.name for m in constant}:
                if level.method.settings.items:
                    message = "is on in every arm with the recipe's settings; make it a candidate to vary it"
                    self.problems.add(entry.mark, join(path, name), message)
                continue
            if level.method.name in found:
                self.problems.add(entry.mark, join(path, name), f"{level.method.name} is named twice")
            found[level.method.name] = level
        return tuple(found.values())

    def _level(self, name: str, entry: Entry, path: str, draft: Draft, candidates: Sequence[Candidate]) -> Level | None:
        if not isinstance(entry.node, Map):
            message = f"must be a map of settings, but got {kind(entry.node)}; write {{}} for the sweep's"
            self.problems.add(entry.node.mark, join(path, name), message)
            return None
        if not entry.node.items:
            return named_level(Scalar(name, entry.mark), path, candidates, draft, self.problems)
        level = settled_level(name, entry.mark, entry.node, join(path, name), draft, self.problems)
        for known in (known for c in candidates if level and c.name == name for known in c.levels):
            if _settings(known.method.settings) == _settings(entry.node):
                return known
        return level


def check_values(draft: Draft, grids: Sequence[Grid], methods: Sequence[Method], problems: Problems) -> None:
    """Builds what each value changes, the other parameters at their first; values of one trial are a problem.

    `methods` are the algorithms of every arm at each of their levels.
    """
    depends = {i for method in methods for i in draft.method_depends(method)}
    for i, parameter in enumerate(draft.parameters):
        if i not in depends and not draft.depending(i):
            message = "nothing that is trained depends on it, so all its values would be one trial"
            problems.add(parameter.mark, join("parameters", parameter.path), message)
            depends.add(i)
    done = set()
    for axes in (grid.axes for grid in grids):
        for number, axis in enumerate(axes.axes):
            if axis not in done:
                done.add(axis)
                _check_rows(draft, axes, number, methods, problems)


def _check_rows(draft: Draft, axes: Axes, number: int, methods: Sequence[Method], problems: Problems) -> None:
    axis = axes.axes[number]
    if not any(draft.depending(i) or any(i in draft.method_depends(m) for m in methods) for i in axis.parameters):
        return
    ids = Identifier()
    depending = [m for m in methods if set(axis.parameters) & set(draft.method_depends(m))]
    spelled: dict[str, int] = {}
    parameter = draft.parameters[axis.parameters[0]]
    for k, row in enumerate(axis.rows):
        text = ""
        for point in axes.everywhere(number, k):
            made = [m for method in depending if (m := draft.method(method, point, problems))]
            recipe = draft.variant(point, (), problems)
            if recipe is not None:
                text += ids.text_of(recipe) + "".join(spell(one, "algorithms") for one in made)
        if not text:
            continue
        first = spelled.setdefault(text, k)
        if first != k:
            where = "of the list" if len(axis.parameters) == 1 else "of the zip"
            same = f"values {first + 1} and {k + 1} {where} mean the same trial"
            problems.add(parameter.nodes[row[0]].mark, join("parameters", parameter.path), same)
