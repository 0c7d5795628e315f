"""Recipe files: found by name, laid over what they extend, checked whole; every problem of a file in one SpecError."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from expkit.errors import Problem, SpecError
from expkit.spec.checks import check_recipe
from expkit.spec.convert import OVERRIDE
from expkit.spec.draft import Draft
from expkit.spec.merge import chosen_presets, from_command_line, merged, normalised, overridden
from expkit.spec.reader import read_file
from expkit.spec.recipe import Recipe
from expkit.spec.tree import Map, Node, Problems, Scalar, Seq, kind
from expkit.spec.trust import read_trust

FOLDERS = {"recipe": "recipes", "sweep": "sweeps"}
_NOT_INHERITED = ("extends", "name", "version", "presets")


def load_recipe(
    path: Path, *, presets: Sequence[str] = (), overrides: Sequence[str] = (), trust_imports: Sequence[str] = ()
) -> Recipe:
    """A recipe with presets and `--set` overrides applied, every default filled in; SpecError with all its problems."""
    problems = Problems()
    changes = from_command_line(overrides, OVERRIDE, problems)
    draft = load_draft(Path(path), presets, [changes], trust_imports, problems)
    recipe = draft.recipe(problems)
    if recipe is not None and not problems.found:
        check_recipe(recipe, draft, problems)
    problems.raise_if_any()
    assert recipe is not None
    return recipe


def preset_names(path: Path) -> list[str]:
    """The presets of a recipe file, sorted; those of the files that it extends are not its own."""
    presets = load_tree(path, Problems()).get("presets")
    return sorted(presets.items) if isinstance(presets, Map) else []


def load_draft(
    path: Path, presets: Sequence[str], changes: Sequence[Map], trust_imports: Sequence[str], problems: Problems
) -> Draft:
    """A recipe's merged tree: extends, then presets, then overrides."""
    root = normalised(load_tree(path, problems))
    for override in [*chosen_presets(root, presets, problems), *changes]:
        root = overridden(root, override, problems)
    return Draft(root, read_trust(path.parent, trust_imports))


def load_tree(path: Path, problems: Problems, inside: tuple[Path, ...] = ()) -> Map:
    """The tree of a file laid over the files it extends."""
    root = normalised(read_file(path, problems))
    within = (*inside, path.resolve())
    base = Map({}, root.mark)
    for file in _bases(root, path.parent, within, problems):
        base = merged(base, load_tree(file, problems, within).without(*_NOT_INHERITED))
    merged_root = merged(base, root.without("extends"))
    return Map(merged_root.items, root.mark)


def _bases(root: Map, folder: Path, inside: tuple[Path, ...], problems: Problems) -> list[Path]:
    """The files that it extends; where one is not there, SpecError at once: its keys would seem to be missing."""
    before = len(problems.found)
    files = _extended(root, problems)
    for file in files:
        other = (folder / file.text).resolve()
        if other in inside:
            problems.add(file.mark, "extends", f"{file.text} extends this file in turn; files cannot extend each other")
        elif not other.is_file():
            problems.add(file.mark, "extends", no_file(folder / file.text))
    if len(problems.found) > before:
        problems.raise_if_any()
    return [tidy(folder / file.text) for file in files]


def _extended(root: Map, problems: Problems) -> list[Scalar]:
    node: Node | None = root.get("extends")
    nodes = node.items if isinstance(node, Seq) else () if node is None else (node,)
    files = []
    for one in nodes:
        if isinstance(one, Scalar) and one.text:
            files.append(one)
        else:
            problems.add(one.mark, "extends", f"must be a file or a list of files, but got {kind(one)}")
    return files


def find_file(name: str, what: Literal["recipe", "sweep"]) -> Path:
    """A file by path or bare name: as given, then in `recipes/` or `sweeps/`, with `.yaml` added where it lacks."""
    given = Path(name)
    places = [given] if given.parent != Path() else [given, Path(FOLDERS[what]) / given]
    for place in places:
        for candidate in (place, place.with_name(f"{place.name}.yaml") if place.name else place):
            if candidate.is_file():
                return candidate
    raise SpecError([Problem(name, 1, 1, "", no_file(places[-1]))])


def tidy(path: Path) -> Path:
    """Without `..` where it leads to the same file, so that messages are short."""
    short = Path(os.path.normpath(path))
    return short if short.exists() and short.samefile(path) else path


def no_file(path: Path) -> str:
    """The sentence for a file that does not exist, with the nearest that does."""
    beside = sorted(p.name for p in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    there = (
        f"{guess}in {path.parent}/ there are: {', '.join(beside)}" if beside else f"{path.parent}/ has no .yaml file"
    )
    return f"there is no file {path.name}; {there}"
