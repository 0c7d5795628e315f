"""Parameters of a sweep: paths of the recipe with the values that they take, alone or zipped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from expkit import plugins
from expkit.duration import Time
from expkit.errors import PluginError
from expkit.spec.axes import BUDGET, Axis
from expkit.spec.candidates import told
from expkit.spec.convert import BAD
from expkit.spec.draft import Draft, Parameter
from expkit.spec.hints import alternatives, field_hints
from expkit.spec.labels import label_text
from expkit.spec.merge import MANY, NESTED, SINGLE, is_component, label_of, one_key, split
from expkit.spec.recipe import Recipe
from expkit.spec.section import RECORDS
from expkit.spec.tree import Map, Mark, Node, Problems, Scalar, Seq, join, kind
from expkit.spec.words import NULL

FORMS = ("values", "value")
RANGES = ("min", "max", "distribution", "mu", "sigma", "q", "probabilities")
_TWICE = "has its values in another place of this grid already"
_COMPONENTS = "model, optimizer, scheduler, data.train or data.eval, or of one of its evaluators"


@dataclass
class _Column:
    """All values that a sweep gives one path, wherever it does, in the order in which they are met."""

    mark: Mark
    found: dict[str, tuple[int, Node, Any]] = field(default_factory=dict)

    def index(self, node: Node, value: Any) -> int:
        return self.found.setdefault(label_text(value), (len(self.found), node, value))[0]


class Table:
    """The parameters of a sweep, gathered from all its grids; two spellings of one value are one."""

    def __init__(self, draft: Draft, candidates: Collection[str], problems: Problems) -> None:
        self.draft, self.candidates, self.problems = draft, candidates, problems
        self.columns: dict[str, _Column] = {}
        self.budgets: Axis | None = None
        """Once the grids are read: the ratios at which every arm is run."""

    def parameters(self) -> tuple[Parameter, ...]:
        """Each path with its distinct values."""
        return tuple(
            Parameter(path, tuple(n for _, n, _ in c.found.values()), tuple(v for _, _, v in c.found.values()), c.mark)
            for path, c in self.columns.items()
        )

    def grids(
        self,
        shared: tuple[Node | None, Node | None],
        own: Iterable[tuple[str, Node | None, Node | None]],
        budgets: Node | None = None,
    ) -> list[tuple[Axis, ...]]:
        """The axes of each grid, from (parameters, zip) of the sweep and (path, parameters, zip) of the grids.

        A path of a grid replaces the same path of the sweep. Without grids there is one, the sweep's own. Each has
        the budgets besides.
        """
        alone = self._alone(shared[0], "parameters")
        zipped = self._zipped(shared[1], "zip", alone)
        if budgets is not None:
            self.budgets = self._of_budgets(budgets)
            zipped += [self.budgets] if self.budgets else []
        names = list(self.columns)
        taken = {names[i] for axis in zipped for i in axis.parameters}
        found = []
        for where, parameters, groups in own:
            mine = {**alone, **self._alone(parameters, join(where, "parameters"), taken)}
            more = self._zipped(groups, join(where, "zip"), {*mine, *taken})
            found.append(self._conditioned([*mine.values(), *zipped, *more]))
        return found or [self._conditioned([*alone.values(), *zipped])]

    def _of_budgets(self, node: Node) -> Axis | None:
        if not isinstance(node, Map) or node.items.keys() != {"ssr"}:
            message = f"must be a map of ratios such as {{ssr: [0.25, 0.5, 1.0]}}, but got {_got(node)}"
            self.problems.add(node.mark, "budgets", message)
            return None
        entry = node.items["ssr"]
        if BUDGET in self.columns:
            self.problems.add(entry.mark, "budgets.ssr", f"{BUDGET} {_TWICE}")
        items = _items(entry.node, "budgets.ssr", self.problems)
        rows = self._column(BUDGET, entry.mark, _numbered(items, "budgets.ssr"))
        return Axis((list(self.columns).index(BUDGET),), tuple((row,) for row in dict.fromkeys(rows))) if rows else None

    def single(self, path: str, mark: Mark, node: Node, where: str) -> tuple[int, int] | None:
        """(parameter, index of the value) of one value that is included by hand."""
        rows = self._column(path, mark, {where: node})
        return (list(self.columns).index(path), rows[0]) if rows else None

    def _alone(self, node: Node | None, where: str, taken: Collection[str] = ()) -> dict[str, Axis]:
        if node is None:
            return {}
        if not isinstance(node, Map):
            self.problems.add(node.mark, where, f"must be a map of paths and lists of values, but got {kind(node)}")
            return {}
        found = {}
        for path, entry in node.items.items():
            shown_path = join(where, path)
            if path in taken:
                self.problems.add(entry.mark, shown_path, _TWICE)
            items = _items(entry.node, shown_path, self.problems)
            rows = self._column(path, entry.mark, _numbered(items, shown_path))
            if rows:
                distinct = dict.fromkeys(rows)
                found[path] = Axis((list(self.columns).index(path),), tuple((row,) for row in distinct))
        return found

    def _zipped(self, node: Node | None, where: str, alone: Collection[str]) -> list[Axis]:
        if node is None:
            return []
        if not isinstance(node, Seq):
            message = f"must be a list of maps such as [{{path.a: [..], path.b: [..]}}], but got {kind(node)}"
            self.problems.add(node.mark, where, message)
            return []
        taken = set(alone)
        found = []
        for i, group in enumerate(node.items):
            axis = self._group(group, join(where, i), taken)
            found += [axis] if axis else []
        return found

    def _group(self, group: Node, where: str, taken: set[str]) -> Axis | None:
        if not isinstance(group, Map) or len(group.items) < 2:
            message = f"must be a map of two or more paths and their lists, but got {_got(group)}"
            self.problems.add(group.mark, where, message)
            return None
        columns: dict[str, list[int]] = {}
        lengths: dict[str, int] = {}
        for path, entry in group.items.items():
            if path in taken:
                self.problems.add(entry.mark, join(where, path), _TWICE)
            taken.add(path)
            items = _items(entry.node, join(where, path), self.problems)
            lengths[path] = len(items)
            columns[path] = self._column(path, entry.mark, _numbered(items, join(where, path)))
        if len(set(lengths.values())) > 1 and all(lengths.values()):
            said = " and ".join(f"{path} has {num}" for path, num in lengths.items())
            self.problems.add(group.mark, where, f"the lists of a zip have one length, but {said}")
            return None
        if any(len(columns[path]) < max(lengths[path], 1) for path in columns):
            return None
        names = list(self.columns)
        rows = dict.fromkeys(zip(*columns.values(), strict=True))
        return Axis(tuple(names.index(path) for path in columns), tuple(rows))

    def _column(self, path: str, mark: Mark, items: Mapping[str, Node]) -> list[int]:
        """The index of each of these values among all of the path; `items` are by the place that messages name."""
        parts = split(self.draft.root, path)
        refused = _refused(parts, self.candidates)
        if refused:
            self.problems.add(mark, next(iter(items), path).removesuffix(".0"), refused)
            return []
        found = []
        for where, item in items.items():
            node, value = self._value(parts, path, item, where)
            if value is not BAD:
                found.append(self.columns.setdefault(path, _Column(mark)).index(node, value))
        return found

    def _value(self, parts: Sequence[str], path: str, item: Node, where: str) -> tuple[Node, Any]:
        if is_component(parts, self.draft.root):
            return self._component(parts, item, where)
        if isinstance(item, Map) and len(parts) < 3:
            self.problems.add(item.mark, where, f"a map can be a value only as a whole component of {_COMPONENTS}")
            return item, BAD
        value = told(item, hint_of(self.draft, path), where, self.problems)
        return item, value if value is BAD else as_json(value)

    def _component(self, parts: Sequence[str], item: Node, where: str) -> tuple[Node, Any]:
        """A whole component, in either form: its name with the settings that are given, whose lists are values."""
        if isinstance(item, Scalar) and item.style != "quoted" and item.text in NULL and parts[0] == "scheduler":
            return item, None
        item = one_key(item)
        if not isinstance(item, Map) or len(item.items) != 1:
            message = f"must be a component with its settings, such as {{sgd: {{lr: 0.5}}}}, but got {_got(item)}"
            self.problems.add(item.mark, where, message)
            return item, BAD
        ((name, entry),) = item.items.items()
        settings = entry.node.items if isinstance(entry.node, Map) else {}
        hints = _hints((NESTED if parts[0] in NESTED else SINGLE)[parts[0]], name)
        given: dict[str, Any] = {}
        for key, inner in settings.items():
            value = told(inner.node, hints.get(key, Any), join(where, key), Problems())  # said where it is built
            given[key] = "?" if value is BAD else as_json(value)
        return item, {name: given}

    def _conditioned(self, axes: list[Axis]) -> tuple[Axis, ...]:
        """Paths inside a component are there only where an axis of the grid chooses that component."""
        paths = list(self.columns)
        choosing = {}
        for i, axis in enumerate(axes):
            for k, parameter in enumerate(axis.parameters):
                parts = tuple(split(self.draft.root, paths[parameter]))
                if is_component(parts, self.draft.root):
                    choosing[parts] = (i, [self._chosen(paths[parameter], row[k]) for row in axis.rows])
        which = {i for i, _ in choosing.values()}
        axes = [replace(axis, chooses=i in which) for i, axis in enumerate(axes)]
        return tuple(self._only(i, axis, paths, choosing) for i, axis in enumerate(axes))

    def _only(
        self, i: int, axis: Axis, paths: list[str], choosing: dict[tuple[str, ...], tuple[int, list[tuple[str, str]]]]
    ) -> Axis:
        if len(axis.parameters) > 1:
            return axis  # what is zipped is meant as it stands
        path = paths[axis.parameters[0]]
        parts = split(self.draft.root, path)
        for depth in (1, 2, 3):
            holder = choosing.get(tuple(parts[:depth])) if len(parts) > depth else None
            if holder is None or holder[0] == i:
                continue
            rows = frozenset(r for r, names in enumerate(holder[1]) if parts[depth] in names)
            if not rows:
                named = ", ".join(dict.fromkeys(name for name, _ in holder[1]))
                at = ".".join(parts[:depth])
                message = f"{at} is never {parts[depth]!r} here; its values are {named}"
                self.problems.add(self.columns[path].mark, path, message)
            elif len(rows) < len(holder[1]):
                return replace(axis, only=((holder[0], rows),))
        return axis

    def _chosen(self, path: str, index: int) -> tuple[str, str]:
        """Name and label of the component that a value chooses."""
        node = next(n for i, n, _ in self.columns[path].found.values() if i == index)
        if not isinstance(node, Map):
            return "null", "null"
        ((name, entry),) = node.items.items()
        return name, label_of(name, entry.node)


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


def _numbered(items: Sequence[Node], where: str) -> dict[str, Node]:
    return {join(where, i): item for i, item in enumerate(items)}


def _got(node: Node) -> str:
    return f"a map of {len(node.items)} keys" if isinstance(node, Map) else kind(node)


def _refused(parts: Sequence[str], candidates: Collection[str]) -> str | None:
    if parts[0] == "seed":
        return "seeds have a key of their own: seeds: [1, 2, 3]"
    if parts[0] in ("metrics", "runtime", "name", "version", "presets", "extends", "allow") or parts[:2] == [
        "trainer",
        "checkpoint",
    ]:
        return f"{'.'.join(parts[:2])} does not change what is trained, so all its values would be one trial"
    if parts[0] == "algorithms" and len(parts) > 1 and parts[1] in candidates:
        rest = ".".join(parts[2:]) or "SETTING"
        return f"{parts[1]} is a candidate; list its values there: candidates: {{{parts[1]}: {{{rest}: [..]}}}}"
    return None


def as_json(value: Any) -> Any:
    """A converted value as JSON has it: durations and paths as text, -0.0 as 0.0."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items()}
    return str(value) if isinstance(value, Time) or hasattr(value, "__fspath__") else value


def hint_of(draft: Draft, path: str) -> Any:
    """The type of the field at a path, Any where nothing is known of it."""
    parts = split(draft.root, path)
    if parts[0] in RECORDS:
        return _inside(RECORDS[parts[0]], parts[1:])
    if len(parts) == 5 and is_component(parts[:3], draft.root):
        return _hints(NESTED[parts[0]], parts[3]).get(parts[-1], Any)
    for kinds, depth in ((SINGLE, 1), (NESTED, 2), (MANY, 1)):
        if parts[0] in kinds and len(parts) == depth + 2:
            return _hints(kinds[parts[0]], parts[depth]).get(parts[-1], Any)
    return field_hints(Recipe).get(path, Any) if path == "seed" else Any


def _hints(plugin_kind: str, name: str) -> dict[str, Any]:
    if plugins.is_import_path(name):
        return {}
    try:
        return field_hints(plugins.load(plugin_kind, name))
    except PluginError:
        return {}  # said where the component is built


def _inside(cls: type, parts: Sequence[str]) -> Any:
    hint: Any = cls
    for part in parts:
        records = [a for a in alternatives(hint) if hasattr(a, "__dataclass_fields__")]
        hint = field_hints(records[0]).get(part, Any) if records else Any
    return hint
