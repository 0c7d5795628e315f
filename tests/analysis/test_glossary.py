"""Every number of a report is explained, in two sentences and a formula, by one registry."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from expkit.analysis.glossary.entry import Statistic
from expkit.analysis.glossary.find import KINDS, find, names, plain
from expkit.analysis.guards.every import EVERY
from expkit.analysis.model import Interval, Summary

ALL = [one for entries in KINDS.values() for one in entries]
RECORDS = {
    "schema_version", "guards", "failures", "trials", "states", "arms[].planned", "arms[].complete", "arms[].failed",
    "arms[].diverged", "arms[].size", "arms[].seeds", "fronts[].seeds", "provenance",
}  # fmt: skip
"""What was counted, asked for or recorded; guards' numbers are explained by the guards' names."""


def numbers(kind: Any, path: str = "") -> Iterator[str]:
    """Paths in summary.json of all numbers that a type holds, `[]` for each entry of a list; an interval is one."""
    if kind in (int, float, Interval):
        yield path
    elif dataclasses.is_dataclass(kind):
        for name, inner in get_type_hints(kind).items():
            yield from numbers(inner, f"{path}.{name}" if path else name)
    elif get_origin(kind) is tuple:
        for inner in set(get_args(kind)) - {...}:
            yield from numbers(inner, f"{path}[]")
    else:
        for inner in get_args(kind):
            yield from numbers(inner, path)


def above(path: str) -> set[str]:
    """The path and all that it lies below."""
    return {path[:i] for i in range(1, len(path) + 1) if i == len(path) or path[i] in ".["}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_two_sentences_and_a_formula(one: Statistic) -> None:
    assert len(re.findall(r"[.](?= [A-Z]|$)", one.text)) == 2, one.text
    assert one.text.endswith(".") and len(one.text) < 300
    assert one.formula and one.text.isascii() and one.formula.isascii()


def test_every_number_of_a_summary_is_explained() -> None:
    explained = RECORDS | {path for one in ALL for path in one.where}
    missing = sorted({path for path in numbers(Summary) if not explained & above(path)})
    assert not missing, f"add to expkit/analysis/glossary: {missing}"


def test_no_entry_points_at_what_is_not_in_a_summary() -> None:
    there = {path for number in numbers(Summary) for path in above(number)} | {"arms[].verdict"}
    assert {path for one in ALL for path in one.where} <= there


def test_every_guard_is_explained_and_no_other() -> None:
    assert sorted(one.name for one in KINDS["guards"]) == sorted(one.name for one in EVERY)


def test_a_name_means_one_statistic() -> None:
    for entries in KINDS.values():
        said = [plain(name) for one in entries for name in (one.name, *one.also)]
        assert len(said) == len(set(said))


@pytest.mark.parametrize("name", ["Hodges-Lehmann", "hodges_lehmann", "HODGES LEHMANN", "statistics/hodges_lehmann"])
def test_a_name_however_it_is_written(name: str) -> None:
    assert [one.name for _, one in find(name)] == ["Hodges-Lehmann"]


def test_what_is_offered_is_found() -> None:
    assert all(find(name) for name in names())
    assert not find("shaply") and not find("guards/shapley") and not find("")
