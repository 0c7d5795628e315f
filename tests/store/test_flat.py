"""Nested values by key, and what differs."""

from __future__ import annotations

import math

from expkit.store.flat import ABSENT, Difference, differences, flat


def test_keys_are_dotted_and_lists_are_one_value() -> None:
    assert dict(flat({"a": {"b": [1, 2], "c": {}}, "d": None})) == {"a.b": [1, 2], "d": None}


def test_only_what_differs_is_named() -> None:
    a = {"lr": 0.1, "nan": math.nan, "algorithms": {"ema": {}}, "flag": True, "both": {"x": 1}}
    b = {"lr": 0.2, "nan": math.nan, "algorithms": {}, "flag": 1, "both": {"x": 1}}
    assert differences(a, b) == [
        Difference("algorithms.ema", {}, ABSENT), Difference("flag", True, 1), Difference("lr", 0.1, 0.2),
    ]  # fmt: skip
    assert differences(a, a) == []
