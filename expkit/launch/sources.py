"""Sources: which version of which code a trial is made of, found on the path and hashed; nothing of it is imported.

Of code of the user's own only the modules count that the recipe names by `py:`, so another file beside them, or what
they import in turn, changes nothing. A version is 12 hex over the text of a file.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from expkit import plugins, provenance
from expkit.spec.recipe import Recipe
from expkit.store.store import Store

if TYPE_CHECKING:
    from expkit.launch.drive import Job

Versions = Mapping[str, str]
"""By module: 12 hex; a module of which no source is found is left out."""
EXPKIT = "expkit"


def versions(recipe: Recipe, path: Sequence[str]) -> dict[str, str]:
    """Of expkit and of each module of the user's own that a recipe names; `path` is looked at before Python's own."""
    return {EXPKIT: provenance.code_sha(), **own_versions(own_modules(recipe), path)}


def code_sha(versions: Versions) -> str:
    """12 hex over all of them; expkit's own where no other code takes part."""
    if versions.keys() == {EXPKIT}:
        return versions[EXPKIT]
    text = "\n".join(f"{module} {version}" for module, version in sorted(versions.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def own_modules(recipe: Recipe) -> frozenset[str]:
    """The modules of the user's own that a recipe names."""
    names = {component.name for component in recipe.components if plugins.is_import_path(component.name)}
    return frozenset(plugins.parse_import_path(name)[0] for name in names)


def own_versions(modules: Iterable[str], path: Sequence[str]) -> dict[str, str]:
    """The version of each module whose source file can be found."""
    files = {module: source(module, path) for module in sorted(modules)}
    return {m: hashlib.sha256(f.read_bytes()).hexdigest()[:12] for m, f in files.items() if f is not None}


def source(module: str, path: Sequence[str]) -> Path | None:
    """The file that an import of `package.module` would read; packages on the way are not imported."""
    first, *rest = module.split(".")
    spec = PathFinder.find_spec(first, list(path)) or importlib.util.find_spec(first)
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.has_location and spec.origin else None
    for location in spec.submodule_search_locations or ():
        below = Path(location).joinpath(*rest)
        for file in (below / "__init__.py", below.with_suffix(".py")):
            if file.is_file():
                return file
    return None


@dataclass(frozen=True)
class Changed:
    """Complete replicates whose own code is not what is on the path now."""

    replicates: tuple[str, ...]
    """`3f2a91c04e7b r0`, in run order."""
    modules: tuple[str, ...]

    def __str__(self) -> str:
        num, first = len(self.replicates), self.replicates[0].split()[0]
        whose = f"{num} complete replicate{'s' if num > 1 else ''}"
        return (
            f"the code of {whose} differs from the code now ({', '.join(self.modules)}), and none is run again for it: "
            f"expkit rerun {first} trains one once more, --runs-dir DIR all of them in a folder of their own"
        )


def changed(store: Store, complete: Iterable[Job], path: Sequence[str]) -> Changed | None:
    """Which of the complete jobs ran other code of the user's own than they would now; None where none did."""
    now: dict[str, str | None] = {}
    found: dict[str, set[str]] = {}
    for job in complete:
        modules = own_modules(job.cell.trial.recipe)
        now |= {module: own_versions([module], path).get(module) for module in modules - now.keys()}
        status = store.read_status(job.id12, job.replicate) if modules else None
        if status is not None and status.sources:
            differ = {module for module in modules if status.sources.get(module) != now[module]}
            if differ:
                found[f"{job.id12} r{job.replicate}"] = differ
    return Changed(tuple(found), tuple(sorted(set().union(*found.values())))) if found else None
