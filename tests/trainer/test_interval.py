"""Intervals by table: due on the first batch that reaches a multiple, once for several, at the end once."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.duration import Time, Timestamp
from expkit.errors import UsageError
from expkit.trainer.interval import Every, next_multiple
from expkit.trainer.schedule import Steps


def moments(num_batches: int, *, samples: int = 10, tokens: int = 40, seconds: float = 0.5) -> list[Timestamp]:
    """The end of every batch, 4 batches an epoch."""
    now, seen = Timestamp(), []
    for batch in range(num_batches):
        now = now.to_next_batch(samples, tokens, seconds * (batch + 1))
        seen.append(now)
        if now.batch_in_epoch == 4:
            now = now.to_next_epoch()
    return seen


def state_at(now: Timestamp, max_duration: str = "3ep", ssr: float = 1.0) -> Any:
    """What an interval reads of a state."""
    return SimpleNamespace(timestamp=now, max_duration=Time.parse(max_duration), steps=Steps(12, 4, 10, 40.0, ssr))


def due(interval: str, seen: list[Timestamp], *, after: int = 0, **settings: Any) -> list[int]:
    """Batches at which an interval is due that was made `after` so many of them."""
    start = seen[after - 1] if after else Timestamp()
    every = Every(Time.parse(interval), state_at(start, **settings))
    last = seen[-1].batch
    return [now.batch for now in seen[after:] if every.due(state_at(now, **settings), ended=now.batch == last)]


@pytest.mark.parametrize(
    ("interval", "at"),
    [
        ("1ep", [4, 8, 12]), ("0.5ep", [2, 4, 6, 8, 10, 12]), ("0.375ep", [2, 3, 5, 6, 8, 9, 11, 12]),
        ("2ep", [8, 12]), ("100ep", [12]), ("0.1ep", list(range(1, 13))),
        ("1ba", list(range(1, 13))), ("5ba", [5, 10, 12]), ("6ba", [6, 12]), ("12ba", [12]), ("13ba", [12]),
        ("25sp", [3, 5, 8, 10, 12]), ("10sp", list(range(1, 13))), ("3sp", list(range(1, 13))), ("120sp", [12]),
        ("100tok", [3, 5, 8, 10, 12]), ("480tok", [12]),
        ("0.25dur", [3, 6, 9, 12]), ("0.1dur", [2, 3, 4, 5, 6, 8, 9, 10, 11, 12]), ("1dur", [12]), ("5dur", [12]),
        ("2sec", [4, 8, 12]), ("1.1sec", [3, 5, 7, 9, 11, 12]), ("0.1sec", list(range(1, 13))), ("1h", [12]),
    ],
)  # fmt: skip
def test_each_unit_on_the_first_batch_that_reaches_a_multiple_and_once_at_the_end(interval: str, at: list[int]) -> None:
    assert due(interval, moments(12)) == at


@pytest.mark.parametrize(
    ("interval", "at"), [("0.25dur", [3, 6, 9, 12]), ("0.5dur", [6, 12]), ("0.1dur", [2, 3, 4, 5, 6, 8, 9, 10, 11, 12])]
)
def test_a_share_of_a_training_in_seconds_or_tokens_is_a_share_of_those(interval: str, at: list[int]) -> None:
    assert due(interval, moments(12), max_duration="6sec") == at
    assert due(interval, moments(12), max_duration="480tok") == at


def test_the_ssr_scales_an_interval_unless_it_is_a_share() -> None:
    assert due("6ba", moments(12), ssr=0.5) == [3, 6, 9, 12]
    assert due("1ep", moments(12), ssr=0.5) == [2, 4, 6, 8, 10, 12]
    assert due("0.5dur", moments(12), ssr=0.5) == [6, 12]


@pytest.mark.parametrize("interval", ["1ep", "5ba", "25sp", "100tok", "0.25dur", "1.1sec", "0.375ep"])
@pytest.mark.parametrize("after", range(12))
def test_made_in_the_middle_it_is_due_where_one_from_the_start_would_be(interval: str, after: int) -> None:
    assert due(interval, moments(12), after=after) == [at for at in due(interval, moments(12)) if at > after]


@pytest.mark.parametrize(("interval", "at"), [("1iter", [3, 6, 9, 12]), ("2iter", [6, 12]), ("3iter", [9, 12]),
                                              ("9iter", [12])])  # fmt: skip
def test_iterations_end_with_the_batch_that_completes_them(interval: str, at: list[int]) -> None:
    now, every, found = Timestamp(), None, []
    for batch in range(1, 13):
        now = now.to_next_batch(10, 40, 0.5 * batch)
        state = state_at(now)
        state.iteration_length = Time.parse("3ba")
        every = every or Every(Time.parse(interval), state, since=Timestamp())
        found += [batch] * every.due(state, ended=batch == 12)
        now = now.to_next_iteration() if batch % 3 == 0 else now
    assert found == at


def test_the_last_batch_is_not_due_twice_however_often_one_asks_issue_681() -> None:
    (end,) = moments(4)[-1:]
    for interval in ("4ba", "3ba"):
        every = Every(Time.parse(interval), state_at(Timestamp()))
        assert [every.due(state_at(end), ended=True) for _ in range(3)] == [True, False, False]


@given(st.lists(st.floats(1e-3, 5.0), min_size=1, max_size=30), st.sampled_from(["0.1sec", "0.3sec", "1sec", "7sec"]))
def test_in_seconds_as_often_as_marks_were_crossed(gaps: list[float], interval: str) -> None:
    now, seen = Timestamp(), []
    for gap in gaps:
        now = now.to_next_batch(1, 0, now.train_s + gap)
        seen.append(now)
    every = Every(Time.parse(interval), state_at(Timestamp()))
    length = Fraction(interval.removesuffix("sec"))
    marks = [0, *(Fraction(moment.train_s) // length for moment in seen)]
    assert [every.due(state_at(m)) for m in seen] == [b > a for a, b in itertools.pairwise(marks)]


def test_the_float_next_to_a_mark_is_not_due_for_it_and_again_after_it() -> None:
    every = Every(Time.parse("0.1sec"), state_at(Timestamp()))
    asked = [every.due(state_at(Timestamp(train_s=s))) for s in (0.1, 0.2, 0.25, 0.3, 0.31, 0.39)]
    assert sum(asked) == 3


@pytest.mark.parametrize(("position", "length", "following"), [(7, "2.5", "7.5"), (7.5, "2.5", "10"), (0, "3", "3"),
                                                               (3, "3", "6"), (2, "0.1", "2.1")])  # fmt: skip
def test_the_next_multiple_lies_beyond(position: float, length: str, following: str) -> None:
    assert next_multiple(position, Fraction(length)) == Fraction(following)


@pytest.mark.parametrize("interval", ["0ba", "0.0ep", "0dur"])
def test_an_interval_of_nothing_is_refused(interval: str) -> None:
    with pytest.raises(UsageError, match="an interval must be positive, but got 0"):
        Every(Time.parse(interval), state_at(Timestamp()))
