"""`expkit check`: recipe and sweep files, checked whole without running or importing anything of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expkit.cli.completion import files as files_here
from expkit.cli.options import Json, Preset, Set, TrustImports, give, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from expkit.errors import Problem


def check(
    files: Annotated[
        list[str],
        typer.Argument(help="Recipe or sweep files; bare names are looked up as elsewhere.", autocompletion=files_here),
    ],
    sets: Set = None,
    preset: Preset = None,
    trust_imports: TrustImports = None,
    as_json: Json = False,
) -> None:
    """Check recipe and sweep files; every problem is shown with file, line and column.

    Example: expkit check ablate.yaml recipes/fashion_resnet.yaml
    """
    from expkit.errors import SpecError

    found: list[dict[str, Any]] = []
    said: set[Problem] = set()
    for name in files:
        try:
            found.append({"file": name, "ok": True, **checked(name, sets or (), preset or (), trust_imports or ())})
        except SpecError as e:
            found.append({"file": name, "ok": False, "problems": [_as_json(p) for p in e.problems]})
            if not as_json:
                _say_once(name, e.problems, said)
            said.update(e.problems)
    if as_json:
        give(found)
    else:
        for one in found:
            if one["ok"]:
                print(f"{one['file']}: {one['kind']} {one['name']}, {one['says']}")
    if not all(one["ok"] for one in found):
        raise typer.Exit(SpecError.exit_code)


def _say_once(name: str, problems: Sequence[Problem], said: set[Problem]) -> None:
    """What is wrong with one file; of what was said before, as of a recipe that two sweeps share, only where."""
    for problem in problems:
        if problem not in said:
            say(str(problem))
    if again := sorted({problem.file for problem in problems if problem in said}):
        say(f"{name}: what is wrong with {', '.join(again)} stands above")


def checked(name: str, sets: Sequence[str], presets: Sequence[str], trust: Sequence[str]) -> dict[str, Any]:
    """What a good file is; SpecError for any other."""
    from expkit.spec.dump import recipe_to_json
    from expkit.spec.files import load_recipe, preset_names
    from expkit.spec.identity import trial_id
    from expkit.spec.sweep_file import load_sweep

    path, is_sweep = find(name)
    if is_sweep:
        from expkit.plan.count import count

        sweep = load_sweep(path, presets=presets, overrides=sets, trust_imports=trust)
        counted = count(sweep)
        says = f"{counted.sets:,} sets, {counted.trials:,} trials, {counted.replicates:,} replicates"
        return {"kind": "sweep", "name": sweep.name, "says": says, "trials": counted.trials}
    for each in preset_names(path):
        load_recipe(path, presets=[each], trust_imports=trust)
    recipe = load_recipe(path, presets=presets, overrides=sets, trust_imports=trust)
    trial = trial_id(recipe)[:12]
    return {
        "kind": "recipe",
        "name": recipe.name,
        "says": f"trial {trial}",
        "id": trial,
        "recipe": recipe_to_json(recipe),
    }


def find(name: str) -> tuple[Path, bool]:
    """The file behind a path or bare name, and whether it is a sweep."""
    from expkit.errors import SpecError
    from expkit.spec.files import find_file, load_tree
    from expkit.spec.sweep_file import is_sweep
    from expkit.spec.tree import Problems

    try:
        path = find_file(name, "sweep")
    except SpecError:
        path = find_file(name, "recipe")
    return path, is_sweep(load_tree(path, Problems()))


def _as_json(problem: Any) -> dict[str, Any]:
    return {key: getattr(problem, key) for key in ("file", "line", "column", "path", "message")}
