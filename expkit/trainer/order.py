"""Order of algorithms: what they declare about each other, then their names; the order of a list never matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from expkit.errors import PluginError
from expkit.trainer.algorithm import Algorithm, name_of


def ordered(algorithms: Mapping[str, Algorithm]) -> dict[str, Algorithm]:
    """Topological by declared before/after, then by name and label; PluginError for a circle."""
    waiting = {label: _earlier(label, algorithms) for label in algorithms}
    result: dict[str, Algorithm] = {}
    while waiting:
        ready = [label for label, earlier in waiting.items() if not earlier & waiting.keys()]
        if not ready:
            raise PluginError(f"the algorithms {', '.join(sorted(waiting))} each want to come before another of them")
        first = min(ready, key=lambda label: (name_of(algorithms[label]), label))
        del waiting[first]
        result[first] = algorithms[first]
    return result


def check_conflicts(algorithms: Mapping[str, Algorithm], allow: Iterable[tuple[str, str]] = ()) -> None:
    """PluginError where one algorithm declares a conflict with another that is here; `allow` names pairs that may."""
    allowed = {frozenset(pair) for pair in allow}
    names = {name_of(algorithm) for algorithm in algorithms.values()}
    for algorithm in algorithms.values():
        name = name_of(algorithm)
        for other in sorted(algorithm.conflicts & names):
            if frozenset((name, other)) not in allowed:
                raise PluginError(f"{name} and {other} do not go together; use one of them, or allow=[({name!r}, "
                                  f"{other!r})]")  # fmt: skip


def _earlier(label: str, algorithms: Mapping[str, Algorithm]) -> set[str]:
    me = algorithms[label]
    return {
        other
        for other, algorithm in algorithms.items()
        if other != label and (name_of(algorithm) in me.after or name_of(me) in algorithm.before)
    }
