"""What may come next in a statement: views behind FROM, columns of the views that it names, values inside quotes.

Knows nothing of terminals: text in, suggestions out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from expkit.cli.statements import code_of, open_string
from expkit.store.macros import AXES, MODES, RULES
from expkit.store.schema import Described

MOST_SUGGESTED = 500
WORD_FROM = 2
"""Functions and keywords are suggested from so many letters on; there are more than a thousand."""
_WORD = re.compile(r"[A-Za-z_$][\w$]*\Z|\Z")
_QUALIFIER = re.compile(r"(\w+)\.\Z")
_WANTS_VIEW = re.compile(r"\b(?:FROM|JOIN|TABLE|DESCRIBE|SUMMARIZE)\s+\Z|\bFROM\s+[\w\s,]+,\s*\Z", re.IGNORECASE)
_COMPARED = re.compile(r"(\w+)\s*(?:=|==|<>|!=|\b(?:I?LIKE|(?:NOT\s+)?IN\s*\((?:\s*,)*))\s*\Z", re.IGNORECASE)
_NAMED = re.compile(r"(\w+)\s*:=\s*\Z")
_CALL = re.compile(r"(\w+)\s*\(([^()]*)\Z")
_CLOSED_VALUES: dict[str, Sequence[str]] = {"clock": AXES, "axis": AXES, "mode": MODES, "rule": RULES}
_VALUES_OF = {"metric": ("metrics", "name"), "sweep": ("sweeps", "sweep")}
"""What a parameter of a macro is compared with."""


@dataclass(frozen=True)
class Suggestion:
    """What may be put in, and what it is."""

    text: str
    doc: str = ""


class Vocabulary(Protocol):
    """What there is in a store."""

    def views(self) -> Sequence[Described]:
        """All views and macros."""

    def words(self) -> Sequence[str]:
        """Functions and keywords of the dialect."""

    def values(self, view: str, column: str) -> Sequence[str]:
        """Texts that a column holds."""


def suggest(before: str, after: str, vocabulary: Vocabulary) -> tuple[str, list[Suggestion]]:
    """(the end of `before` that is being typed, what may stand in its place); `after` is what follows the cursor."""
    quote = open_string(before)
    if quote is not None:
        typed = before[quote + 1 :]
        found = _values(code_of(before[:quote]), code_of(before[:quote] + " " + after), vocabulary)
        return typed, _fitting((Suggestion(value.replace("'", "''")) for value in found), typed)
    word = _WORD.search(before)
    typed = word[0] if word else ""
    said = code_of(before[: len(before) - len(typed)])
    return typed, _fitting(_names(said, code_of(before + after), typed, vocabulary), typed)


def _names(said: str, whole: str, typed: str, vocabulary: Vocabulary) -> Iterable[Suggestion]:
    views = vocabulary.views()
    if _WANTS_VIEW.search(said):
        return [Suggestion(each.view.name + ("(" if each.view.parameters else ""), each.view.doc) for each in views]
    qualifier = _QUALIFIER.search(said)
    named = _named_in(whole, views)
    if qualifier:
        return _columns(_of_qualifier(qualifier[1], whole, named) or named or views)
    call = _CALL.search(said)
    found = [*_columns(named or views)]
    macro = next((each.view for each in views if call and each.view.name == call[1].lower()), None)
    if macro is not None:
        found = [Suggestion(f"{name} := ", macro.doc) for name in re.findall(r"(\w+) :=", macro.parameters)] + found
    if len(typed) >= WORD_FROM:
        found += [Suggestion(each.view.name, each.view.doc) for each in views]
        found += [Suggestion(word if typed.islower() else word.upper()) for word in vocabulary.words()]
    return found


def _values(said: str, whole: str, vocabulary: Vocabulary) -> Sequence[str]:
    """Texts that may stand in a string behind `said`."""
    if named := _NAMED.search(said):
        return _CLOSED_VALUES.get(named[1].lower(), ())
    views = vocabulary.views()
    if compared := _COMPARED.search(said):
        column = compared[1].lower()
        among = [*_named_in(whole, views), *views]
        view = next((each.view for each in among if not each.view.parameters and _has(each, column)), None)
        return vocabulary.values(view.name, column) if view is not None else ()
    call = _CALL.search(said)
    macro = next((each.view for each in views if call and each.view.name == call[1].lower()), None)
    if call and macro is not None:
        parameters = [name.split()[0] for name in macro.parameters.split(", ")]
        place = call[2].count(",")
        parameter = parameters[place] if place < len(parameters) else ""
        return _CLOSED_VALUES.get(parameter) or vocabulary.values(*_VALUES_OF.get(parameter, ("metrics", "name")))
    return vocabulary.values("metrics", "name")


def _named_in(text: str, views: Sequence[Described]) -> list[Described]:
    words = set(re.findall(r"\w+", text.lower()))
    return [each for each in views if each.view.name in words]


def _of_qualifier(qualifier: str, text: str, named: Sequence[Described]) -> list[Described]:
    """The view behind `m.`, where the statement says `metrics m` or `metrics AS m`."""
    alias = rf"(\w+)(?:\s*\([^()]*\))?\s+(?:AS\s+)?{re.escape(qualifier)}\b"
    meant = {qualifier.lower(), *(word.lower() for word in re.findall(alias, text, re.IGNORECASE))}
    return [each for each in named if each.view.name in meant]


def _columns(views: Iterable[Described]) -> list[Suggestion]:
    return [
        Suggestion(column.name, f"{each.view.name}, {column.type}: {column.doc}")
        for each in views
        for column in each.columns
    ]


def _has(each: Described, column: str) -> bool:
    return any(c.name == column for c in each.columns)


def _fitting(found: Iterable[Suggestion], typed: str) -> list[Suggestion]:
    """Those that begin with what was typed, each once, in the order they came."""
    start = typed.lower()
    fitting = {each.text: each for each in reversed(list(found)) if each.text.lower().startswith(start)}
    return list(reversed(fitting.values()))[:MOST_SUGGESTED]
