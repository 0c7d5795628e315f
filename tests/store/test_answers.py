"""Answers as text: nothing cut, NULL visible, JSON strict."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from decimal import Decimal

import pyarrow as pa

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


def test_csv_comes_back_with_null_apart_from_empty() -> None:
    text = answers.as_csv(pa.table({"a,b": ["x,y", 'q"', None, "", "two\nlines"]}))
    assert list(csv.reader(io.StringIO(text))) == [["a,b"], ["x,y"], ['q"'], [], [""], ["two\nlines"]]
    assert '\n""\n' in text


def test_json_is_strict() -> None:
    rows = json.loads(json.dumps(answers.as_json(TABLE), allow_nan=False))
    assert rows[0] == {
        "label": "ema", "n": 1, "x": None, "list": ["a", "b"], "utc": "2026-01-02T03:04:05Z", "sum": 3, "ok": True,
        "nested": {"a": 1.5, "b": "x"},
    }  # fmt: skip
    assert rows[1]["label"] is None and rows[2]["sum"] == 1.5 and rows[2]["nested"] == {"a": None, "b": None}
