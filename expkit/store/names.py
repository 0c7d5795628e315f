"""Names in a piece of SQL: where a word stands that may be a column, dotted ones as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb


@dataclass(frozen=True)
class Chain:
    """A name, or several with dots between them; offsets count bytes."""

    name: str
    """Without quotes."""
    start: int
    end: int
    is_keyword: bool
    """It is one word that SQL knows, not quoted."""


def chains(sql: str) -> Iterator[Chain]:
    """All names in the text but those of functions."""
    data = sql.encode()
    tokens = duckdb.tokenize(sql)
    ends = [at for at, _ in tokens[1:]] + [len(data)]
    words = [_Word(data, at, end, kind) for (at, kind), end in zip(tokens, ends, strict=True)]
    i = 0
    while i < len(words):
        if not words[i].may_be_name:
            i += 1
            continue
        last = i
        while last + 2 < len(words) and words[last + 1].text == "." and words[last + 2].may_be_name:
            last += 2
        if last + 1 == len(words) or not words[last + 1].text.startswith("("):
            name = ".".join(word.name for word in words[i : last + 1 : 2])
            yield Chain(name, words[i].start, words[last].end, last == i and words[i].is_keyword)
        i = last + 1


class _Word:
    def __init__(self, data: bytes, start: int, end: int, kind: duckdb.token_type) -> None:
        self.text = data[start:end].decode(errors="replace").strip()
        self.start, self.end = start, start + len(self.text.encode())
        self.is_keyword = kind == duckdb.token_type.keyword
        self.may_be_name = self.is_keyword or kind == duckdb.token_type.identifier

    @property
    def name(self) -> str:
        quoted = len(self.text) > 1 and self.text[0] == self.text[-1] == '"'
        return self.text[1:-1].replace('""', '"') if quoted else self.text
