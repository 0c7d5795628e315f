"""How a guard says what it found: a colour, a number, a sentence; what could not be looked at is never green."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from expkit.analysis.model import Guard, Light
from expkit.analysis.replicate import Replicate


def not_checked(name: str, why: str) -> Guard:
    """The store lacks what this guard needs; `why` says what, without a full stop."""
    return Guard(name, "amber", None, f"Not checked: {why}.", checked=False)


def nothing_done(name: str) -> Guard:
    """Neither good nor bad: no light is green over nothing."""
    return Guard(name, "amber", None, "No trial is complete, so there is nothing to look at.")


def red(guards: Iterable[Guard]) -> list[Guard]:
    """Those that withhold the headline."""
    return [g for g in guards if g.light == "red"]


def lights(guards: Iterable[Guard]) -> Counter[Light]:
    """How many of each colour."""
    return Counter(g.light for g in guards)


def names_of(replicates: Iterable[Replicate]) -> list[str]:
    """`3f2a91c04e7b r0` of each."""
    return [f"{r.id} r{r.replicate}" for r in replicates]
