"""Answers as text: nothing cut, NULL visible, JSON strict."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from expkit.store import answers

TABLE = pa.table({
    "label": ["ema", None, ""],
    "n": [1, 20, None],
    "x": [float("nan"), float("inf"), 0.1],
    "list": [["a", "b"], [], None],
    "utc": [datetime(2026, 1, 2, 3, 4, 5), None, None],
    "sum": pa.array([Decimal(3), None, Decimal("1.5")], pa.decimal128(38, 1)),
    "ok": [True, False, None],
    "nested": [{"a": 1.5, "b": "x"}, None, {"a": float("nan"), "b": None}],
})  # fmt: skip


def test_columns_are_aligned_and_null_is_visible() -> None:
    text = answers.as_text(pa.table({"label": ["ema", None], "n": [1, 20]}))
    assert text == "label   n\n-----  --\nema     1\nNULL   20"
    assert answers.as_text(pa.table({"a": pa.array([], pa.int64())})) == "a\n-"


def test_long_values_are_whole_and_control_characters_harmless() -> None:
    long = "x" * 5000
    text = answers.as_text(pa.table({"log": [long, "a\nb\x1b[31m\x9b"]}))
    assert long in text and "\\n" in text and "\\x1b[31m\\x9b" in text
    assert text.count("\n") == 3


@pytest.mark.parametrize("separator", [",", "\t"])
def test_delimited_fields_come_back_with_null_apart_from_empty(separator: str) -> None:
    texts = ["x,y", 'q"', None, "", "two\nlines", "a\tb"]
    text = answers.header(["a,b"], separator) + "".join(
        answers.delimited(batch, separator) for batch in pa.table({"a,b": texts}).to_batches(max_chunksize=4)
    )
    assert list(csv.reader(io.StringIO(text, newline=""), delimiter=separator)) == [
        ["a,b"], ["x,y"], ['q"'], [], [""], ["two\nlines"], ["a\tb"],
    ]  # fmt: skip
    assert '\n""\n' in text


def test_delimited_numbers_are_whole_and_floats_stay_floats() -> None:
    numbers = [0.1, 17.0, -3.0, 1e-7, 1e22, 2**53 + 1.0, float("nan"), float("-inf"), None]
    text = answers.delimited(pa.record_batch({"x": numbers, "n": [2**63 - 1, -5, None, 0, 1, 2, 3, 4, 5]}))
    back = [line.split(",") for line in text.splitlines()]
    assert [line[0] for line in back][1:3] == ["17.0", "-3.0"] and [line[1] for line in back][2] == ""
    for line, number in zip(back, numbers, strict=True):
        assert number is None or float(line[0]) == number or math.isnan(number)


def test_delimited_times_lists_and_truth() -> None:
    assert answers.delimited(TABLE.select(["utc", "ok", "list", "sum"]).to_batches()[0]) == (
        '2026-01-02T03:04:05Z,true,"[""a"", ""b""]",3.0\n,false,[],\n,,,1.5\n'
    )


def test_json_is_strict() -> None:
    rows = json.loads(json.dumps(answers.as_json(TABLE), allow_nan=False))
    assert rows[0] == {
        "label": "ema", "n": 1, "x": None, "list": ["a", "b"], "utc": "2026-01-02T03:04:05Z", "sum": 3, "ok": True,
        "nested": {"a": 1.5, "b": "x"},
    }  # fmt: skip
    assert rows[1]["label"] is None and rows[2]["sum"] == 1.5 and rows[2]["nested"] == {"a": None, "b": None}


def test_a_name_of_a_column_is_as_harmless_as_what_stands_in_it() -> None:
    text = answers.as_text(pa.table({"a\n\x1b[31m\u202e": ["\u2066x"]}))
    assert text.splitlines()[0] == "a\\n\\x1b[31m\\u202e" and text.splitlines()[2] == "\\u2066x"


def test_dates_that_python_has_none_for_are_written_all_the_same() -> None:
    """DuckDB's infinity, and years before 1 and after 9999."""
    days = pa.array([3_000_000, 2**31 - 1, -1_000_000, None], pa.date32())
    instants = pa.array([2**63 - 1, 253_402_300_800_000_000, -(2**62), None], pa.timestamp("us"))
    batch = pa.record_batch({"day": days, "utc": instants})
    for row in answers.as_json(batch)[:3]:
        assert all(isinstance(value, str) and value for value in row.values())
    assert answers.as_json(batch)[3] == {"day": None, "utc": None}
    assert answers.delimited(batch, ",").count("\n") == 4 and len(list(answers.cells(batch))) == 4
