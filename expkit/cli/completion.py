"""What the shell offers on TAB: names of trials, sweeps, files, plug-ins and keys. Reads names, opens no result.

Installed by `expkit --install-completion`. A completion never fails: where nothing can be read, nothing is offered.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import typer

MOST_OFFERED = 200


def trials(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of the trials in the runs folder; after `3f2a/`, its replicates."""
    folder = _runs_dir(ctx) / "trials"
    trial, slash, _ = incomplete.partition("/")
    if slash:
        replicates = (name for name in _names(folder / trial) if name[0] == "r" and name[1:].isdigit())
        return _fitting((f"{trial}/{name}" for name in replicates), incomplete)
    return _fitting([*_names(folder), "last"], incomplete)


def trials_and_files(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of trials, and recipes and sweeps by bare name."""
    return [*trials(ctx, incomplete), *recipes(incomplete), *sweep_files(incomplete)]


def sweeps(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the sweeps in the runs folder."""
    return _fitting(_names(_runs_dir(ctx) / "sweeps"), incomplete)


def recipes(incomplete: str) -> list[str]:
    """Recipes by bare name, and YAML files here."""
    return _files("recipes", incomplete)


def sweep_files(incomplete: str) -> list[str]:
    """Sweeps by bare name, and YAML files here."""
    return _files("sweeps", incomplete)


def files(incomplete: str) -> list[str]:
    """Both."""
    return sorted({*recipes(incomplete), *sweep_files(incomplete)})


def kinds(incomplete: str) -> list[str]:
    """What can be listed: trials, plug-ins by kind, and the numbers of a report."""
    from expkit.plugins import KINDS

    return _fitting([*KINDS, "trials", "statistics", "guards"], incomplete)


def explained(incomplete: str) -> list[str]:
    """Names of all plug-ins, keys of recipes and sweeps, and numbers of a report."""
    from expkit import plugins
    from expkit.analysis.glossary import find
    from expkit.spec import keys

    of_plugins = (name for kind in plugins.KINDS for name in plugins.names(kind))
    return _fitting({*keys.names(), *of_plugins, *find.names(), *find.KINDS}, incomplete)


def overrides(incomplete: str) -> list[str]:
    """Keys that `--set` takes, with the equals sign."""
    from expkit.spec import keys

    return _fitting((f"{key}=" for key in keys.names()), incomplete)


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))[:MOST_OFFERED]


def _files(folder: str, incomplete: str) -> list[str]:
    there = [name.removesuffix(".yaml") for name in _names(Path(folder)) if name.endswith(".yaml")]
    here = [name for name in _names(Path()) if name.endswith((".yaml", ".yml"))]
    return _fitting({*there, *here}, incomplete)


def _runs_dir(ctx: typer.Context) -> Path:
    return Path(ctx.params["runs_dir"])  # given, or of the environment, or the default


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]  # noqa: PTH208
    except OSError:
        return []
