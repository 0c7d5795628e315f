"""Differing: what two trials of the store, or two files, do not have in common. Reads, starts nothing."""

from __future__ import annotations

from typing import Any

from expkit.spec.shown import Shown
from expkit.store.flat import Difference, differences
from expkit.store.records import Status
from expkit.store.store import Store

Sections = dict[str, list[Difference]]
"""By section; only sections and keys that differ."""


def of_trials(store: Store, a: tuple[str, int], b: tuple[str, int]) -> Sections:
    """Two replicates, of one trial or of two: arm, configuration, versions, run, setting, clocks, final metrics."""
    return _differing(_of_replicate(store, *a), _of_replicate(store, *b))


def of_files(a: Shown, b: Shown) -> Sections:
    """Two recipes or sweeps: what the files say, the recipe with its defaults, versions of plug-ins."""
    return _differing(_of_file(a), _of_file(b))


def _differing(a: dict[str, Any], b: dict[str, Any]) -> Sections:
    found = {section: differences(a[section], b[section]) for section in a}
    return {section: rows for section, rows in found.items() if rows}


def _of_file(file: Shown) -> dict[str, Any]:
    own = {"sweep": file.used} if file.kind == "sweep" else {"sweep": {}}
    return {**own, "config": file.resolved, "plug-in versions": versions(file.identity)}


def _of_replicate(store: Store, id12: str, replicate: int) -> dict[str, Any]:
    record, (state, status) = store.read_trial(id12), store.look(id12, replicate)
    return {
        "trial": {"id": id12, "arm": record.label if record else None},
        "config": record.config if record else {},
        "plug-in versions": versions(record.identity) if record else {},
        "run": {"state": state, **(_run(status) if status else {})},
        "setting": status.setting if status else {},
        "clocks": status.clocks if status else {},
        "final metrics": status.final if status else {},
    }


def _run(status: Status) -> dict[str, Any]:
    names = ("cause", "code_sha", "sources", "dirty", "timing_valid", "timing_reasons", "effective")
    return {name: getattr(status, name) for name in names}


def versions(identity: dict[str, Any]) -> dict[str, Any]:
    """The version of each plug-in that an id is made of, by where it stands."""
    found: dict[str, Any] = {}
    for key, value in identity.items():
        if isinstance(value, dict):
            if "version" in value and "name" in value:
                found[f"{key}.{value['name']}"] = value["version"]
            else:
                found |= {f"{key}.{inner}": version for inner, version in versions(value).items()}
    return found
