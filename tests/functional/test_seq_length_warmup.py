from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from expkit.functional.seq_length_warmup import cut, length_at, truncate


def test_lengths_hand_computed_each_for_as_long() -> None:
    lengths = [length_at(step / 20, 0.3, 8, 32, 8) for step in range(8)]  # 3 rises in 6 steps
    assert lengths == [8, 8, 16, 16, 24, 24, 32, 32]


def test_a_last_rise_may_be_smaller_than_a_step() -> None:
    assert [length_at(step / 9, 1 / 3, 8, 20, 8) for step in range(5)] == [8, 8, 16, 20, 20]
    assert [length_at(step / 10, 0.3, 8, 30, 8) for step in range(4)] == [8, 16, 24, 30]


@pytest.mark.parametrize(
    ("duration", "shortest", "longest"), [(0.3, 16, 16), (0.3, 64, 16), (0.0, 8, 16), (0.0, 16, 16)]
)
def test_nothing_to_rise_or_no_time_for_it_divides_by_nothing_defect_D16(
    duration: float, shortest: int, longest: int
) -> None:
    assert {length_at(step / 10, duration, shortest, longest, 8) for step in range(11)} == {longest}


def test_more_rises_than_steps_jumps_over_some_defect_D16() -> None:
    assert [length_at(step / 10, 0.2, 8, 1024, 8) for step in range(3)] == [8, 8 + 8 * 63, 1024]


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 200), st.integers(1, 200), st.integers(1, 50))
def test_length_never_falls_and_stays_in_bounds(
    at: float, duration: float, shortest: int, longest: int, step_size: int
) -> None:
    lengths = [length_at(p, duration, shortest, longest, step_size) for p in (0.0, at / 2, at, 1.0)]
    assert lengths == sorted(lengths)
    assert all(min(shortest, longest) <= length <= longest for length in lengths)
    assert lengths[-1] == longest


def test_truncation_keeps_what_comes_first_and_targets_of_a_whole_sequence() -> None:
    ids = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    inputs, targets = truncate(ids, ids + 1, 3)
    assert inputs.tolist() == [[1, 2, 3], [5, 6, 7]]
    assert targets.tolist() == [[2, 3, 4], [6, 7, 8]]
    assert truncate(ids, torch.tensor([0, 1]), 3)[1].tolist() == [0, 1]


def test_pieces_never_run_from_one_sequence_into_the_next() -> None:
    ids = torch.arange(10).view(2, 5)
    inputs, targets = cut(ids, ids + 1, 2)
    assert inputs.tolist() == [[0, 1], [2, 3], [5, 6], [7, 8]]
    assert targets.tolist() == [[1, 2], [3, 4], [6, 7], [8, 9]]


def test_cutting_a_sequence_with_one_target_is_refused() -> None:
    with pytest.raises(ValueError, match=r"inputs are \[2, 5\] and targets \[2\]; use truncate: true"):
        cut(torch.zeros(2, 5), torch.zeros(2), 2)
