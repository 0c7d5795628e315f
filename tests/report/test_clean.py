"""What no face may pass on is taken out; what a person wrote stays."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.report.clean import clean, clean_lines, clean_values


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("two\nlines\r\nand\ttabs", "two lines and tabs"),
        ("\u202egnp.exe\u2066a\u2069\u200b\ufeff", "gnp.exea"),
        ("bell\x07 nul\x00 del\x7f csi\x9b31m", "bell nul del csi"),
        ("👩\u200d🔬 ünïcödé 模型", "👩\u200d🔬 ünïcödé 模型"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("  room  ", "room"),
    ],
)
def test_one_line(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_log_keeps_its_lines_and_indents() -> None:
    assert clean_lines("a\r\n  b\x1b[1m!\x1b[0m\n\tc\u2028d") == "a\n  b!\n    c\nd"


@given(st.text())
def test_nothing_invisible_is_left_and_cleaning_again_changes_nothing(text: str) -> None:
    cleaned = clean(text)
    assert not {unicodedata.category(c) for c in cleaned if c != "\u200d"} & {"Cc", "Cf", "Cs"}
    assert clean(cleaned) == cleaned


def test_values_are_cleaned_at_any_depth_and_numbers_stay() -> None:
    assert clean_values({"a\x00": ["\x1b[1mb", {"c": 1.5}, None, True]}) == {"a": ["b", {"c": 1.5}, None, True]}
