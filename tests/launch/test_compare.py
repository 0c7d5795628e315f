"""Two replicates bit by bit."""

from __future__ import annotations

import math

from expkit.launch.compare import first_difference, series

ROWS = [
    {"batch": 2, "name": "train/loss", "value": 0.5},
    {"batch": 1, "name": "train/loss", "value": 1.0},
    {"batch": 1, "name": "throughput/samples_per_s", "value": 99.0},
]


def test_throughput_is_left_out() -> None:
    assert series(ROWS) == {(2, "train/loss"): 0.5, (1, "train/loss"): 1.0}


def test_the_same_bits_are_no_difference_nan_included() -> None:
    one = {(1, "a"): math.nan, (2, "a"): 0.1}
    assert first_difference(one, dict(one)) is None


def test_the_earliest_difference_is_named_down_to_the_last_bit() -> None:
    one = {(1, "a"): 0.3, (2, "a"): 1.0}
    found = first_difference(one, {(1, "a"): 0.1 + 0.2, (2, "a"): 2.0})
    assert str(found) == "a at batch 1 is 0.3 in one and 0.30000000000000004 in the other"
    assert first_difference({(1, "a"): 0.0}, {(1, "a"): -0.0}) is not None


def test_a_record_that_one_lacks_is_a_difference() -> None:
    found = first_difference({(1, "a"): 1.0}, {(1, "a"): 1.0, (1, "b"): 2.0})
    assert str(found) == "b at batch 1 was recorded by only one of them"
