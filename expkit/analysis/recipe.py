"""What an arm's recipe says of its budget, its schedules and its evaluation: read for the guards, one recipe an arm."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from expkit import plugins
from expkit.duration import Time
from expkit.errors import ExpkitError

_OF_ARMS = """
  SELECT p.arm, arg_min(x.config, p.position) AS config
  FROM sweep_trials p JOIN _trials x ON p.id = x.id AND p.replicate = x.replicate
  WHERE p.sweep = ? AND p.role IN ('baseline', 'arm') GROUP BY p.arm ORDER BY p.arm"""


class Rows(Protocol):
    """A connection to a store."""

    def rows(self, sql: str, params: Any = ()) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class Recipe:
    """Of one arm; empty where the recipe does not say."""

    max_duration: str = ""
    ssr: float = 1.0
    spans: Mapping[str, str] = field(default_factory=dict)
    """Durations of the schedule and of the methods, by the path of their key."""
    splits: tuple[str, ...] = ()
    """Of the data that is evaluated on."""
    workload: str = ""
    """Model and training data, by name."""
    stoppers: tuple[str, ...] = ()
    """Callbacks that declare that they may end training early, or begin it elsewhere."""
    changes_targets: tuple[str, ...] = ()
    """Methods that declare that they train on other targets than those of the data."""


def of_arms(con: Rows, sweep: str) -> dict[str, Recipe]:
    """The recipe of each arm that has a trial; what differs between its seeds no guard asks for."""
    return {row["arm"]: read(json.loads(row["config"] or "{}")) for row in con.rows(_OF_ARMS, [sweep])}


def read(config: Mapping[str, Any]) -> Recipe:
    """From a resolved recipe; keys that are missing leave their field empty."""
    trainer, data = _map(config, "trainer"), _map(config, "data")
    methods = _map(config, "algorithms")
    scheduled = {key: config.get(key) for key in ("scheduler", "algorithms")}
    return Recipe(
        max_duration=str(trainer.get("max_duration") or ""),
        ssr=float(trainer.get("ssr") or 1.0),
        spans=dict(_spans(scheduled)),
        splits=tuple(sorted(set(_splits(data.get("eval"))))),
        workload=" on ".join(name for name in (_name(config.get("model")), _name(data.get("train"))) if name),
        stoppers=tuple(n for n in sorted(_map(config, "callbacks")) if declares("callbacks", n, "changes_training")),
        changes_targets=tuple(n for n in sorted(methods) if declares("algorithms", n, "changes_targets")),
    )


@functools.cache
def declares(kind: str, name: str, what: str) -> bool:
    """Whether a plug-in's class says so of itself; code of the user's own is never imported, so it says nothing."""
    if name.startswith("py:") or not plugins.known(kind, name):
        return False
    try:
        return bool(getattr(plugins.load(kind, name), what, False))
    except (ExpkitError, ImportError):
        return False


@functools.cache  # asked for each replicate
def unit_of(text: str) -> str:
    """`0.1dur` -> `dur`; empty where the text is no duration."""
    try:
        return str(Time.parse(text).unit)
    except ValueError:
        return ""


def _map(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = config.get(key)
    return found if isinstance(found, Mapping) else {}


def _name(component: Any) -> str:
    return next(iter(component), "") if isinstance(component, Mapping) else ""


def _spans(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _spans(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _spans(inner, f"{path}.{i}")
    elif isinstance(value, str) and unit_of(value):
        yield path, value


def _splits(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "split" and isinstance(inner, str):
                yield inner
            else:
                yield from _splits(inner)
