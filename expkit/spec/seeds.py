"""Seeds of a sweep: `5`, `[17, 18]` or `{count: 5, base: 17}`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from expkit.spec.convert import BAD, build, checked
from expkit.spec.tree import Map, Node, Problems, Scalar, Seq, join

DEFAULT_COUNT = 5
LIMIT = 2**31
"""Seeds from here on belong to pilot, tune and confirm."""
_Seed = Annotated[int, Field(ge=0, lt=LIMIT)]
_Count = Annotated[int, Field(ge=1, le=100_000)]


@dataclass(frozen=True)
class Counted:
    """Seeds base .. base + count - 1."""

    count: _Count
    base: _Seed | None = None


def read_seeds(node: Node | None, base: int, problems: Problems) -> tuple[int, ...]:
    """The seeds in order; `base` is the recipe's seed, where a count has none of its own."""
    match node:
        case None:
            return tuple(range(base, base + DEFAULT_COUNT))
        case Seq():
            return _listed(node, problems)
        case Scalar():
            count = checked(node, _Count, "seeds", problems)
            return () if count is BAD else _run(base, count, node, problems)
        case Map():
            return _counted(node, base, problems)


def _listed(node: Seq, problems: Problems) -> tuple[int, ...]:
    found: list[int] = []
    for i, item in enumerate(node.items):
        seed = checked(item, _Seed, join("seeds", i), problems)
        if seed is not BAD and seed in found:
            problems.add(item.mark, join("seeds", i), f"seed {seed} is given twice; repeats are made by the plan")
        elif seed is not BAD:
            found.append(seed)
    if not node.items:
        problems.add(node.mark, "seeds", "must have at least one seed, but the list is empty")
    return tuple(found)


def _counted(node: Map, base: int, problems: Problems) -> tuple[int, ...]:
    for key in ("until", "looks"):
        if key in node.items:
            message = (
                f"seeds until an interval is narrow enough ({key}) are not supported yet in this version of expkit"
            )
            problems.add(node.items[key].mark, join("seeds", key), message)
    if {"until", "looks"} & node.items.keys():
        return ()
    made = build(Counted, node, "seeds", problems)
    if made is BAD:
        return ()
    return _run(base if made.base is None else made.base, made.count, node, problems)


def _run(first: int, count: int, node: Node, problems: Problems) -> tuple[int, ...]:
    if first + count > LIMIT:
        problems.add(node.mark, "seeds", f"seeds must stay below {LIMIT}, but would end at {first + count - 1}")
        return ()
    return tuple(range(first, first + count))
