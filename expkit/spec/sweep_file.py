"""Sweep files and their recipes, checked together; every problem of both in one SpecError."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from expkit.errors import SpecError
from expkit.spec import files
from expkit.spec.axes import Point
from expkit.spec.candidates import read_set
from expkit.spec.checks import check_recipe
from expkit.spec.convert import BAD, OVERRIDE, build, checked
from expkit.spec.draft import Draft, Method
from expkit.spec.grids import GridReader, IncludeReader, check_values
from expkit.spec.interpolate import Interpolator, references
from expkit.spec.merge import from_command_line, merged
from expkit.spec.recipe import Component, Name
from expkit.spec.rules import (
    check_expression,
    declared,
    provided_by,
    read_allow,
    read_constraints,
    read_exclusions,
    refuse_idle,
)
from expkit.spec.seeds import read_seeds
from expkit.spec.sweep import Budget, Candidate, Level, Order, Report, Run, Sweep
from expkit.spec.sweep_keys import KEYS, LATER, check_keys, read_design, supported
from expkit.spec.tree import Entry, Map, Mark, Node, Problems, Scalar, Seq, kind, scalars
from expkit.spec.trust import read_trust

_RECORDS: dict[str, type] = {"order": Order, "budget": Budget, "run": Run, "report": Report}
_OF_RECIPE = ("recipe", "set", "ablate", "parameters", "zip", "budgets", "grids", "include", "exclude")
"""Keys whose references are the recipe's, or that have none."""


def load_sweep(
    path: Path, *, presets: Sequence[str] = (), overrides: Sequence[str] = (), trust_imports: Sequence[str] = ()
) -> Sweep:
    """A sweep and its recipe, both checked; SpecError with all their problems.

    Presets are the recipe's. An override goes to the sweep where its first word is a key of sweeps (`seeds`, `run`,
    `name`), else to the recipe of every trial.
    """
    problems = Problems()
    given = from_command_line(overrides, OVERRIDE, problems)
    root = _own_overrides(files.load_tree(Path(path), problems), given)
    check_keys(root, problems)
    root = _interpolated(root, problems)
    for_recipe = Map({k: e for k, e in given.items.items() if not _is_own(k)}, given.mark)
    draft = _draft(root, for_recipe, presets, trust_imports, problems)
    if draft is not None:
        draft.recipe(problems)
        _refuse_seed_references(draft, problems)
    records = {key: _record(key, root, problems) for key in _RECORDS}
    _check_run(records["run"], root, problems)
    reader = _Reader(Path(path), root, draft or _no_recipe(Path(path), root, trust_imports), problems)
    problems.raise_if_any()
    return reader.sweep(records)


def is_sweep(root: Map) -> bool:
    """Whether a tree is a sweep's and not a recipe's: it says so by its keys."""
    own = {"recipe", "ablate", "parameters", "seeds"} & root.items.keys()
    return bool(own) and not {"model", "data", "trainer"} & root.items.keys()


class _Reader:
    """Reads the parts of a sweep in the order in which they need each other."""

    def __init__(self, path: Path, root: Map, draft: Draft, problems: Problems) -> None:
        self.path, self.root, self.problems = path, root, problems
        ablate = root.get("ablate")
        self.ablate = ablate if isinstance(ablate, Map) else Map({}, root.mark)
        gridded = GridReader(root, self.ablate.get("candidates"), draft, problems)
        self.candidates = gridded.candidates
        names = {c.name for c in self.candidates}
        self.constant = tuple(Method(n, Map({}, root.mark)) for n in draft.own_methods() if n not in names)
        included = IncludeReader(root.get("include"), gridded.table, problems)
        self.draft = draft.with_parameters(gridded.table.parameters())
        self.baseline = self._beside(
            read_set(self.ablate.get("baseline"), "ablate.baseline", self.candidates, draft, problems)
        )
        self.forced, self.always = self._always()
        self.grids = gridded.grids(self.draft, self.forced)
        self.name = checked(root.items["name"].node, Name, "name", problems) if "name" in root.items else BAD
        self.design = read_design(self.ablate.get("design"), problems)
        self.exclusions = read_exclusions(root.get("exclude"), problems)
        self.seeds = read_seeds(root.get("seeds"), draft.section("seed", (), problems) or 0, problems)
        self.includes = included.includes(self.draft, self.candidates, self.constant, self.seeds)
        self.levels = self._levels()
        first = self.grids[0].axes.first()
        self.made = [m for level in self.levels if (m := self.draft.method(level.method, first, problems))]

    def _levels(self) -> list[Level]:
        """All that is on in some arm, each once."""
        every = [level for c in self.candidates for level in c.levels] + [*self.baseline, *self.always]
        every += [level for include in self.includes for level in include.levels]
        return list({level.label: level for level in every}.values())

    def sweep(self, records: dict[str, Any]) -> Sweep:
        problems, made = self.problems, self.made
        first = self.grids[0].axes.first()
        own = [m for method in self.constant if (m := self.draft.method(method, first, problems))]
        check_values(self.draft, self.grids, [*(level.method for level in self.levels), *self.constant], problems)
        problems.raise_if_any()
        names = _names(self.levels, self.candidates, own)
        provided = provided_by(self.draft, self._corners(), problems)
        conflicts, requirements, allowances = read_constraints(
            self.ablate.get("constraints"), names, provided, problems
        )
        allowances += read_allow(self.ablate.get("allow"), names, problems)
        refuse_idle(allowances, [*made, *own], self._mark("allow", "constraints"), problems)
        draft = self.draft.allowing(a.pair for a in allowances)
        allowed = {frozenset(pair) for pair in (*draft.allow, *(draft.section("allow", first, problems) or ()))}
        more_conflicts, more_requirements = declared(made, own, provided, allowed)
        recipe = draft.variant(first, own, problems)
        problems.raise_if_any()
        assert recipe is not None
        check_recipe(recipe, draft, problems)
        sweep = Sweep(
            name=self.name,
            path=self.path,
            text=self.path.read_text(encoding="utf-8-sig"),
            draft=draft,
            recipe=recipe,
            candidates=self.candidates,
            grids=self.grids,
            includes=self.includes,
            baseline=self.baseline,
            always=self.always,
            forced=self.forced,
            constant=self.constant,
            design=self.design,
            conflicts=(*conflicts, *more_conflicts),
            requirements=(*requirements, *more_requirements),
            allowances=tuple(allowances),
            exclusions=tuple(self.exclusions),
            seeds=self.seeds,
            marks={key: entry.mark for key, entry in self.root.items.items()},
            **records,
        )
        self._check_includes(sweep)
        self._check_exclusions(sweep, own, made, names)
        problems.raise_if_any()
        return sweep

    def _corners(self) -> Iterator[Point]:
        for grid in self.grids:
            yield from grid.axes.corners()
        yield from (include.point for include in self.includes)

    def _mark(self, *keys: str) -> Mark:
        found = (self.ablate.items[key].mark for key in keys if key in self.ablate.items)
        return next(found, self.root.mark)

    def _check_includes(self, sweep: Sweep) -> None:
        for include in sweep.includes:
            methods = [*(level.method for level in include.levels), *sweep.constant]
            made = [m for method in methods if (m := sweep.draft.method(method, include.point, self.problems))]
            sweep.draft.variant(include.point, made, self.problems)

    def _beside(self, levels: Sequence[Level]) -> tuple[Level, ...]:
        """Without methods that the recipe has on everywhere."""
        return tuple(level for level in levels if level.method.name not in {m.name for m in self.constant})

    def _always(self) -> tuple[frozenset[str], tuple[Level, ...]]:
        """Candidates that stay on, at any of their levels, and methods besides."""
        node: Node | None = self.ablate.get("always")
        by_name = {key: c.name for c in self.candidates for key in (c.name, c.label)}
        items = node.items if isinstance(node, Seq) else ()
        forced = {by_name[i.text] for i in items if isinstance(i, Scalar) and i.text in by_name}
        if isinstance(node, Seq):
            node = replace(node, items=tuple(i for i in items if not (isinstance(i, Scalar) and i.text in by_name)))
        always = read_set(node, "ablate.always", self.candidates, self.draft, self.problems)
        return frozenset(forced), self._beside(always)

    def _check_exclusions(
        self, sweep: Sweep, own: Sequence[Component], made: Sequence[Component], names: dict[str, str]
    ) -> None:
        if not sweep.exclusions:
            return
        variants = [sweep.draft.variant(point, own, self.problems) for point in self._corners()]
        one_each = [replace(sweep.recipe, algorithms={**sweep.recipe.algorithms, m.label: m}) for m in made]
        recipes = [*one_each, *(recipe for recipe in variants if recipe)]
        for exclusion in sweep.exclusions:
            check_expression(exclusion.when, names, recipes, [p.path for p in sweep.parameters], self.problems)


def _names(levels: Sequence[Level], candidates: Sequence[Candidate], own: Sequence[Component]) -> dict[str, str]:
    """What each method of the sweep may be called -> its name."""
    found = {key: c.name for c in candidates for key in (c.name, c.label)}
    found |= {level.method.name: level.method.name for level in levels}
    found |= {level.label: level.method.name for level in levels if level.label not in found}
    return found | {key: c.name for c in own for key in (c.name, c.label)}


def _own_overrides(root: Map, given: Map) -> Map:
    for key, entry in given.items.items():
        first, *rest = key.split(".")
        if _is_own(key):
            for part in reversed(rest):
                entry = Entry(entry.mark, Map({part: entry}, entry.mark))
            root = merged(root, Map({first: entry}, entry.mark))
    return root


def _is_own(key: str) -> bool:
    return key.split(".")[0] in (*KEYS, *LATER)


def _interpolated(root: Map, problems: Problems) -> Map:
    plain = Interpolator(root, problems)
    own = [key for key in root.items if key not in _OF_RECIPE]
    made = {key: Entry(root.items[key].mark, plain.node(root.items[key].node, key, root)) for key in own}
    return Map({**root.items, **made}, root.mark)


def _draft(
    root: Map, changes: Map, presets: Sequence[str], trust_imports: Sequence[str], problems: Problems
) -> Draft | None:
    node = root.get("recipe")
    if not isinstance(node, Scalar) or not node.text:
        if node is not None:
            problems.add(node.mark, "recipe", f"must be a recipe file, but got {kind(node)}")
        return None
    try:
        path = _recipe_file(Path() if node.mark.file == OVERRIDE else Path(node.mark.file).parent, node.text)
    except SpecError as e:
        problems.add(node.mark, "recipe", e.problems[0].message)
        return None
    own = root.get("set")
    if own is not None and not isinstance(own, Map):
        problems.add(own.mark, "set", f"must be a map of dotted overrides, but got {kind(own)}")
    return files.load_draft(path, presets, [*([own] if isinstance(own, Map) else []), changes], trust_imports, problems)


def _no_recipe(path: Path, root: Map, trust_imports: Sequence[str]) -> Draft:
    """What stands in for a recipe that is not there, so that the rest of the sweep is checked as well."""
    return Draft(Map({}, root.mark), read_trust(path.parent, trust_imports))


def _recipe_file(folder: Path, name: str) -> Path:
    """Relative to the file that names it; a bare name also in the `recipes/` beside its folder."""
    beside = [folder.parent / files.FOLDERS["recipe"] / name] if Path(name).parent == Path() else []
    for place in (folder / name, *beside):
        for candidate in (place, place.with_name(f"{place.name}.yaml") if place.name else place):
            if candidate.is_file():
                return files.tidy(candidate)
    return files.find_file(str(folder / name) if Path(name).parent != Path() else name, "recipe")


def _refuse_seed_references(draft: Draft, problems: Problems) -> None:
    for scalar in scalars(draft.root):
        if "${" in scalar.text and "seed" in references(scalar.text):
            message = (
                "${seed} in a sweep would stay the recipe's seed; methods and data follow the trial's seed themselves"
            )
            problems.add(scalar.mark, "", message)


def _record(key: str, root: Map, problems: Problems) -> Any:
    cls = _RECORDS[key]
    node = root.get(key)
    made = cls() if node is None else build(cls, supported(key, node), key, problems)
    return cls() if made is BAD else made


def _check_run(run: Run, root: Map, problems: Problems) -> None:
    if run.jobs > 1 and run.timing == "exclusive":
        node = root.get("run")
        jobs = node.get("jobs") if isinstance(node, Map) else None
        message = "more than one trial at a time cannot be timed exclusively; write timing: shared, or jobs: 1"
        problems.add((jobs or root).mark, "run.jobs", message)
