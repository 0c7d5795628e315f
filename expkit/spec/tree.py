"""What a YAML file says, with the place of every word: scalars stay text until a field gives them a type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from expkit.errors import Problem, SpecError


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """One word or text, as written."""

    text: str
    mark: Mark
    style: Literal["plain", "quoted", "made", "wrong"] = "plain"
    """`made` comes from an interpolation: converted like a plain one, never suspicious; `wrong` is known to be."""


@dataclass(frozen=True, slots=True)
class Seq:
    """A list."""

    items: tuple[Node, ...]
    mark: Mark


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a map and the place of its key."""

    mark: Mark
    node: Node


@dataclass(frozen=True, slots=True)
class Map:
    """A map; keys are text."""

    items: dict[str, Entry]
    mark: Mark

    def get(self, key: str) -> Node | None:
        """The value under `key`, or None."""
        entry = self.items.get(key)
        return entry.node if entry else None

    def with_entry(self, key: str, entry: Entry) -> Map:
        """A copy with one key set."""
        return replace(self, items={**self.items, key: entry})

    def without(self, *keys: str) -> Map:
        """A copy that lacks some keys."""
        return replace(self, items={k: e for k, e in self.items.items() if k not in keys})


Node = Scalar | Seq | Map


@dataclass
class Problems:
    """Collects what is wrong, so that a user hears of everything in one go."""

    found: list[Problem] = field(default_factory=list)

    def add(self, mark: Mark, path: str, message: str) -> None:
        """One thing wrong in one place."""
        self.found.append(Problem(mark.file, mark.line, mark.column, path, message))

    def raise_if_any(self) -> None:
        """SpecError with all of them."""
        if self.found:
            raise SpecError(self.found)


def fail(mark: Mark, path: str, message: str) -> SpecError:
    """A SpecError of one problem, to be raised."""
    return SpecError([Problem(mark.file, mark.line, mark.column, path, message)])


def join(path: str, key: str | int) -> str:
    """`a.b` + `c` -> `a.b.c`."""
    return f"{path}.{key}" if path else str(key)


def scalars(node: Node) -> Iterator[Scalar]:
    """All scalars below a node."""
    match node:
        case Scalar():
            yield node
        case Seq(items=items):
            for item in items:
                yield from scalars(item)
        case Map(items=entries):
            for entry in entries.values():
                yield from scalars(entry.node)


def kind(node: Node) -> str:
    """What a node is, in the user's words."""
    match node:
        case Scalar(style="quoted"):
            return f"the text {shown(node.text)}"
        case Scalar():
            return shown(node.text, quote=False) if node.text else "nothing"
        case Seq():
            return "a list"
        case Map():
            return "a map"


def shown(text: str, quote: bool = True) -> str:
    """A text as it fits into a sentence: short and on one line."""
    short = text if len(text) <= 60 else text[:57] + "..."
    return repr(short) if quote or not short.isprintable() else short
