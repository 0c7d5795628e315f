"""YAML text -> tree with positions, every problem of the file at once. No tags, no documents, nothing is resolved.

Built from the events of PyYAML's C parser with a stack of its own, so that neither depth nor aliases can hurt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from expkit.errors import SpecError
from expkit.spec.tree import Entry, Map, Mark, Node, Problems, Scalar, Seq, fail, join, shown

MAX_BYTES = 1_000_000
MAX_DEPTH = 50
MAX_NODES = 100_000
"""After aliases are followed; a file that says more is an attack or an accident."""
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_file(path: Path, problems: Problems) -> Map:
    """The root map of a file; where there is none, SpecError at once, because all keys would seem to be missing."""
    start = Mark(str(path), 1, 1)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise fail(start, "", f"the file is larger than {MAX_BYTES:,} bytes; this is no recipe or sweep")
        found = len(problems.found)
        root = read_root(decode(path.read_bytes(), str(path)), str(path), problems)
    except SpecError as e:
        raise SpecError([*problems.found, *e.problems]) from None
    except (OSError, ValueError) as e:
        problems.add(start, "", f"cannot be read: {getattr(e, 'strerror', None) or e}")
        raise SpecError(problems.found) from None
    if not root.items and len(problems.found) > found:
        raise SpecError(problems.found)
    return root


def decode(raw: bytes, file: str) -> str:
    """UTF-8 with or without a byte-order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        before = raw[: e.start].decode("utf-8", "replace")
        raise fail(_mark_at(before, len(before), file), "", f"is not UTF-8 (byte 0x{raw[e.start]:02x})") from None


def read_root(text: str, file: str, problems: Problems) -> Map:
    """As `read_text`, for files: the root must be a map."""
    node = read_text(text, file, problems)
    if isinstance(node, Map):
        return node
    if not problems.found:
        problems.add(node.mark, "", "the file must be a map such as `name: ...`, one key a line")
    return Map({}, node.mark)


def read_text(text: str, file: str, problems: Problems) -> Node:
    """One YAML document as a tree; an empty one is an empty scalar."""
    builder = _Builder(file, problems)
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            builder.take(event)
    except yaml.reader.ReaderError as e:
        where = next((i for i, c in enumerate(text) if ord(c) == e.character), 0)
        problems.add(_mark_at(text, where, file), "", f"a character that YAML does not allow: U+{e.character:04X}")
    except yaml.MarkedYAMLError as e:
        problems.add(*_syntax_problem(e, text, file))
    except yaml.YAMLError as e:
        problems.add(Mark(file, 1, 1), "", f"is not YAML: {e}")
    return builder.root or Scalar("", Mark(file, 1, 1))


@dataclass
class _Open:
    """A list or map that is not closed yet."""

    mark: Mark
    path: str
    anchor: str | None
    is_map: bool
    items: list[Node] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    merged: list[tuple[Mark, Node]] = field(default_factory=list)
    key: Scalar | None = None
    size: int = 1

    def child_path(self) -> str:
        return join(self.path, self.key.text if self.key else len(self.items))


class _Builder:
    """Takes events one by one and keeps the lists and maps that are still open."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self.root: Node | None = None
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.documents = 0

    def take(self, event: Any) -> None:
        mark = Mark(self.file, event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            self._refuse_tag(event, mark)
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents == 2:
                    self.problems.add(mark, "", "a file holds one document; a second begins here")
            case yaml.ScalarEvent():
                plain = event.implicit[0] and not event.style
                self._close(Scalar(event.value, mark, "plain" if plain else "quoted"), 1, event.anchor)
            case yaml.AliasEvent():
                self._alias(str(event.anchor), mark)
            case yaml.CollectionStartEvent():
                self._open(event, mark)
            case yaml.CollectionEndEvent():
                done = self.stack.pop()
                node: Node = self._map(done) if done.is_map else Seq(tuple(done.items), done.mark)
                self._close(node, done.size, done.anchor)
            case _:
                pass

    def _refuse_tag(self, event: Any, mark: Mark) -> None:
        if event.tag is not None:
            self.problems.add(
                mark, self._path(), f"tags such as {event.tag!r} are not allowed; files hold plain values"
            )

    def _path(self) -> str:
        return self.stack[-1].child_path() if self.stack else ""

    def _open(self, event: Any, mark: Mark) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise fail(mark, "", f"lists and maps are nested more than {MAX_DEPTH} deep")
        is_map = isinstance(event, yaml.MappingStartEvent)
        self.stack.append(_Open(mark, self._path(), event.anchor, is_map))

    def _alias(self, anchor: str, mark: Mark) -> None:
        if anchor in self.anchors:
            node, size = self.anchors[anchor]
            self._close(node, size, None)
            return
        self.problems.add(
            mark, self._path(), f"*{anchor} stands for nothing; an anchor &{anchor} must be closed before"
        )
        self._close(Scalar("", mark), 1, None)

    def _close(self, node: Node, size: int, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = (node, size)
        if not self.stack:
            self.root = self.root or node
            return
        top = self.stack[-1]
        top.size += size
        if top.size > MAX_NODES:
            raise fail(top.mark, top.path, f"holds more than {MAX_NODES:,} values once its aliases are followed")
        if not top.is_map:
            top.items.append(node)
        elif top.key is None:
            top.key = self._key(node, top)
        else:
            self._entry(top, top.key, node)
            top.key = None

    def _key(self, node: Node, top: _Open) -> Scalar:
        if isinstance(node, Scalar):
            return node
        self.problems.add(node.mark, top.path, "a key must be a word, not a list or map; quote it if it is text")
        return Scalar("", node.mark)

    def _entry(self, top: _Open, key: Scalar, node: Node) -> None:
        if key.text == "<<" and key.style == "plain":
            top.merged.append((key.mark, node))
        elif key.text in top.entries:
            first = top.entries[key.text].mark.line
            message = f"key {shown(key.text)} is given twice, at line {first} and at line {key.mark.line}"
            self.problems.add(key.mark, join(top.path, key.text), message)
        else:
            top.entries[key.text] = Entry(key.mark, node)

    def _map(self, done: _Open) -> Map:
        entries = done.entries
        for mark, node in done.merged:
            for source in node.items if isinstance(node, Seq) else (node,):
                if isinstance(source, Map):
                    entries = {**source.items, **entries}
                else:
                    self.problems.add(mark, done.path, "<< merges a map or a list of maps, such as `<<: *base`")
        return Map(entries, done.mark)


def _syntax_problem(e: yaml.MarkedYAMLError, text: str, file: str) -> tuple[Mark, str, str]:
    at = e.problem_mark or e.context_mark
    if at is None:
        return Mark(file, 1, 1), "", f"is not YAML: {e.problem}"
    lines = text.split("\n")
    line = lines[at.line] if at.line < len(lines) else ""
    if (found := re.search(r"\$\{[^}]*\}?", line)) and found.start() <= at.column + 1 and "flow" in str(e.context):
        inside = f'inside {{}} or [] an interpolation needs quotes: "{found.group()}"'
        return Mark(file, at.line + 1, found.start() + 1), "", inside
    context = f" {e.context}" if e.context else ""
    return Mark(file, at.line + 1, at.column + 1), "", f"is not YAML: {e.problem}{context}"


def _mark_at(text: str, index: int, file: str) -> Mark:
    before = text[:index]
    return Mark(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
