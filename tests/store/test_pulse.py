"""Pulse: the living are not lost by a clock that is set, and the dead are, however their files are dated."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from expkit.store.pulse import GONE_S, UNSEEN_LOST_S, Pulse

HOUR_S = 3600.0


class Clock:
    """Goes forward when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def beat(tmp_path: Path) -> Path:
    path = tmp_path / "heartbeat"
    path.touch()
    return path


def dated(path: Path, ago_s: float) -> None:
    """Touched by somebody by whose clock it is so much earlier."""
    then = time.time() - ago_s
    os.utime(path, (then, then))


@pytest.mark.parametrize("sure", [True, False])
def test_a_clock_that_is_set_by_an_hour_between_heartbeats_loses_nobody(clock: Clock, beat: Path, sure: bool) -> None:
    pulse = Pulse(clock)
    assert pulse.beats(beat, sure=sure)
    for beats, ago_s in enumerate((0.0, HOUR_S, HOUR_S, -HOUR_S, 0.0, -HOUR_S, HOUR_S, HOUR_S)):
        dated(beat, ago_s + beats)
        for _ in range(3):  # looks between two heartbeats
            clock.now_s += 10
            assert pulse.beats(beat, sure=sure)


@pytest.mark.parametrize("ago_s", [-HOUR_S, 0.0, HOUR_S])
def test_who_is_silent_while_we_watch_is_lost_whatever_his_clock_says(clock: Clock, beat: Path, ago_s: float) -> None:
    pulse = Pulse(clock)
    dated(beat, ago_s)
    assert pulse.beats(beat, sure=True)
    clock.now_s += UNSEEN_LOST_S - 1
    assert pulse.beats(beat, sure=True)
    clock.now_s += 2
    assert not pulse.beats(beat, sure=True) and not pulse.beats(beat, sure=False)
    beat.write_text("I live")
    assert pulse.beats(beat, sure=True) and pulse.beats(beat, sure=False)


def test_a_single_look_shows_what_the_time_of_day_says_and_takes_nothing_away(clock: Clock, beat: Path) -> None:
    dated(beat, UNSEEN_LOST_S + 1)
    assert (Pulse(clock).beats(beat, sure=False), Pulse(clock).beats(beat, sure=True)) == (False, True)
    dated(beat, GONE_S + 1)
    assert not Pulse(clock).beats(beat, sure=True)


def test_nobody_is_behind_a_file_that_is_not_there(clock: Clock, tmp_path: Path, beat: Path) -> None:
    assert not Pulse(clock).beats(tmp_path / "none", sure=True)
    assert not Pulse(clock).beats(beat / "none", sure=True)
