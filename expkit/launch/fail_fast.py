"""Fail fast: a bug that hits every trial should not cost the night. Pure, but for what is kept of the ends so far."""

from __future__ import annotations

import re

from expkit.spec.recipe import Component, Recipe
from expkit.store.records import Status

CONSECUTIVE = 3
"""Trials that fail alike in a row, before any has had a result."""
_OWN = re.compile(r"py:[\w.]+:\w+")
_VARIES = re.compile(r"\b[0-9a-f]{12}\b|0x[0-9a-f]+|\d+")


class FailFast:
    """`saw` every end; once `reached`, no other trial should begin, and those that wait stay pending."""

    def __init__(self, *, succeeded: bool = False) -> None:
        """`succeeded`: a trial of the same sweep has had a result before."""
        self._succeeded = succeeded
        self._last: tuple[str, str] | None = None
        self._count = 0

    @property
    def reached(self) -> bool:
        """Whether the next trial would most likely fail as the last ones did."""
        return self._count >= CONSECUTIVE and not self._succeeded

    def saw(self, state: str, status: Status | None) -> None:
        """One trial has ended; what somebody stopped says nothing."""
        if state in ("complete", "diverged", "pruned"):
            self._succeeded = True
        elif state == "failed" and status is not None:
            kind = alike(status)
            self._count = self._count + 1 if kind == self._last else 1
            self._last = kind


class Unfit:
    """Code of the user's own that a trial could not be put together from; with equal settings it would fail again."""

    def __init__(self) -> None:
        self._components: list[Component] = []

    def saw(self, recipe: Recipe, status: Status | None) -> list[str]:
        """One trial has ended; the names of what did not fit, which the first line of its message gives."""
        if status is None or (status.state, status.cause) != ("failed", "config"):
            return []
        named = _OWN.findall((status.message or "").partition("\n")[0])
        new = [c for c in recipe.components if c.name in named and c not in self._components]
        self._components += new
        return [component.name for component in new]

    def hits(self, recipe: Recipe) -> bool:
        """Whether a recipe has a part that is known not to fit."""
        return bool(self._components) and any(component in self._components for component in recipe.components)


def alike(status: Status) -> tuple[str, str]:
    """Cause and first line of a failure without what differs from trial to trial: ids, addresses, numbers."""
    first = (status.message or "").partition("\n")[0]
    return status.cause or "", _VARIES.sub("#", first)
