"""Attempts stitched: each batch of a replicate counts once, by hand and against a slow definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from expkit.store.stitch import UNBOUNDED, Span, spans


def test_one_attempt_counts_as_a_whole() -> None:
    assert spans({1: None}) == [Span(1, -1, UNBOUNDED)]
    assert spans({}) == []


def test_resumed_once() -> None:
    assert spans({1: None, 2: (1, 40)}) == [Span(1, -1, 40), Span(2, 40, UNBOUNDED)]


def test_resumed_twice() -> None:
    assert spans({1: None, 2: (1, 40), 3: (2, 70)}) == [Span(1, -1, 40), Span(2, 40, 70), Span(3, 70, UNBOUNDED)]


def test_resumed_from_an_older_checkpoint_skips_the_attempt_between() -> None:
    assert spans({1: None, 2: (1, 40), 3: (1, 20)}) == [Span(1, -1, 20), Span(2, -1, -1), Span(3, 20, UNBOUNDED)]


def test_started_over_counts_alone() -> None:
    assert spans({1: None, 2: (1, 40), 3: None}) == [Span(1, -1, -1), Span(2, -1, -1), Span(3, -1, UNBOUNDED)]


def test_damaged_records_end() -> None:
    assert spans({1: (1, 5), 2: (3, 5)}) == [Span(1, -1, -1), Span(2, 5, UNBOUNDED)]
    assert spans({2: (1, 5)}) == [Span(2, 5, UNBOUNDED)]


@given(st.data())
def test_each_batch_counts_once(data: st.DataObject) -> None:
    """Attempts that continue any earlier one from any of its batches: no batch twice, none missing."""
    ends: dict[int, int] = {}
    starts: dict[int, int] = {}
    origins: dict[int, tuple[int, int] | None] = {}
    for attempt in range(1, data.draw(st.integers(1, 6)) + 1):
        origin = None
        if attempt > 1 and data.draw(st.booleans()):
            of = data.draw(st.integers(1, attempt - 1))
            origin = (of, data.draw(st.integers(starts[of], ends[of])))
        origins[attempt] = origin
        starts[attempt] = origin[1] if origin else 0
        ends[attempt] = starts[attempt] + data.draw(st.integers(0, 10))
    counted = [
        batch
        for span in spans(origins)
        for batch in range(starts[span.attempt] + 1, ends[span.attempt] + 1)
        if span.after < batch <= span.upto
    ]
    assert sorted(counted) == list(range(1, ends[max(ends)] + 1))
