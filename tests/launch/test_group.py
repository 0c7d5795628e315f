"""Ranks that live and die together: who decides, when the grace is over; without any process."""

from __future__ import annotations

import signal

import pytest

from expkit.launch.group import Group, RankEnd


class Ranks:
    """A group of three, what was sent to them, and a clock moved by hand."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int]] = []
        self.now_s = 0.0
        self.group = Group(3, lambda rank, number: self.sent.append((rank, number)), 5.0, lambda: self.now_s)


@pytest.fixture
def ranks() -> Ranks:
    return Ranks()


def test_all_zero_is_zero(ranks: Ranks) -> None:
    for rank in (2, 0, 1):
        assert not ranks.group.over
        ranks.group.ended(rank, 0)
    assert (ranks.group.over, ranks.group.code, ranks.group.first, ranks.sent) == (True, 0, None, [])


def test_the_first_failure_in_time_decides_and_ends_the_others(ranks: Ranks) -> None:
    ranks.group.ended(1, 7)
    assert ranks.sent == [(0, signal.SIGTERM), (2, signal.SIGTERM)]
    ranks.group.ended(0, -signal.SIGTERM)
    ranks.group.ended(2, 1)
    assert ranks.group.first == RankEnd(1, 7)
    assert ranks.group.code == 7
    assert len(ranks.sent) == 2


def test_kill_comes_after_the_grace_and_only_to_those_that_run(ranks: Ranks) -> None:
    ranks.group.stop()
    ranks.group.stop()  # asked once
    assert len(ranks.sent) == 3
    ranks.group.ended(0, 143)
    ranks.sent.clear()
    ranks.now_s = 4.9
    ranks.group.tick()
    assert ranks.sent == []
    ranks.now_s = 5.1
    ranks.group.tick()
    assert ranks.sent == [(1, signal.SIGKILL), (2, signal.SIGKILL)]


def test_a_rank_that_nobody_saw_ending_has_no_code(ranks: Ranks) -> None:
    ranks.group.ended(0, None)
    assert ranks.group.first == RankEnd(0, None)
    assert ranks.group.code is None
