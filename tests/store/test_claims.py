"""Claims: one winner, whoever races; the dead hold nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from expkit.store import claims
from expkit.store.atomic import write_json
from expkit.store.layout import Layout
from expkit.store.owner import Owner
from expkit.store.pulse import UNSEEN_LOST_S, Pulse
from expkit.store.records import Status
from expkit.store.store import Store

ID12 = "0123456789ab"
RACE = """
import sys, time
from pathlib import Path
from expkit.store.store import Store
store = Store(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
won = [r for r in range(40) if store.claim("0123456789ab", r, sys.argv[2]) is not None]
print(*won, flush=True)
sys.stdin.readline()
"""


def test_a_claim_is_exclusive_until_it_is_released(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = store.claim(ID12, 0, "a")
    assert first is not None
    assert store.claim(ID12, 0, "b") is None
    first.release()
    second = store.claim(ID12, 0, "b")
    assert second is not None and second.path.name == "claim-000002.json"
    assert sorted(p.name for p in second.path.parent.iterdir()) == ["claim-000001.json", "claim-000002.json"]


def test_only_wanted_states_are_claimed_and_the_claim_is_given_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.new_attempt(ID12, 0, "a")
    store.write_status(ID12, 0, Status("failed", 1))
    assert store.claim(ID12, 0, "a", only={"pending", "lost"}) is None
    assert store.claim(ID12, 0, "a", only={"failed"}) is not None


def test_user_report_43_drivers_that_race_win_each_replicate_once(tmp_path: Path) -> None:
    """Also over claims that dead drivers left: half of the replicates have one."""
    layout = Layout(tmp_path)
    dead = replace(Owner.this_process(), process_start=1.0)
    for replicate in range(0, 40, 2):
        write_json(layout.claim(ID12, replicate, 3), {**asdict(dead), "driver": "dead"})
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path), f"driver-{i}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for i in range(4)
    ]  # fmt: skip
    try:
        for racer in racers:
            assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        won = [int(r) for racer in racers if racer.stdout for r in racer.stdout.readline().split()]
        assert sorted(won) == list(range(40))
    finally:
        for racer in racers:
            racer.communicate("end\n")


def test_a_taker_with_an_old_listing_does_not_win_twice(tmp_path: Path, monkeypatch: object) -> None:
    """Between its listing and its creation others took over, finished and took over again."""
    layout = Layout(tmp_path)
    dead = replace(Owner.this_process(), process_start=1.0)
    write_json(layout.claim(ID12, 0, 1), {**asdict(dead), "driver": "dead"})
    real = claims.newest
    calls = []

    def stale(layout: Layout, id12: str, replicate: int) -> tuple[int, bool]:
        calls.append(1)
        if len(calls) > 1:
            return real(layout, id12, replicate)
        answer = real(layout, id12, replicate)
        for _ in range(2):
            between = claims.take(layout, id12, replicate, "other")
            assert between is not None
            if layout.claim(id12, replicate, 3) != between.path:
                between.release()
        return answer

    monkeypatch.setattr(claims, "newest", stale)  # type: ignore[attr-defined]
    assert claims.take(layout, ID12, 0, "late") is None
    assert claims.newest(layout, ID12, 0) == (3, True)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the time pass after which who is silent is lost."""
    passed = [0.0]
    monkeypatch.setattr(claims, "PULSE", Pulse(lambda: passed[0]))

    def pass_by() -> None:
        passed[0] += UNSEEN_LOST_S

    return pass_by


def test_a_claim_that_was_never_written_out_is_free_after_a_while(tmp_path: Path, later: Callable[[], None]) -> None:
    layout = Layout(tmp_path)
    path = layout.claim(ID12, 0, 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert claims.take(layout, ID12, 0, "a") is None
    later()
    assert claims.take(layout, ID12, 0, "a") is not None


def test_a_claim_of_another_host_is_held_while_it_is_touched(tmp_path: Path, later: Callable[[], None]) -> None:
    layout = Layout(tmp_path)
    path = layout.claim(ID12, 0, 1)
    write_json(path, {**asdict(replace(Owner.this_process(), host="another")), "driver": "a"})
    old = time.time() - UNSEEN_LOST_S - 1
    os.utime(path, (old, old))
    assert claims.newest(layout, ID12, 0) == (1, True)
    assert claims.newest(layout, ID12, 0, sure=False) == (1, False)
    for _ in range(3):
        later()
        claims.touch(claims.Claim(path, Owner.this_process(), "a"))
        assert claims.newest(layout, ID12, 0) == claims.newest(layout, ID12, 0, sure=False) == (1, True)
    later()
    assert claims.newest(layout, ID12, 0) == (1, False)


def test_a_claim_that_finds_no_space_leaves_nothing_and_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine, full = os.write, [True]

    def write(descriptor: int, data: bytes) -> int:
        return genuine(descriptor, data[:10] if full[0] else data)

    monkeypatch.setattr(os, "write", write)
    layout = Layout(tmp_path)
    with pytest.raises(OSError, match="No space left"):
        claims.take(layout, ID12, 0, "a")
    assert list(layout.replicate(ID12, 0).iterdir()) == []
    monkeypatch.setattr("expkit.store.space.POLL_S", 0.3)
    threading.Timer(0.1, lambda: full.__setitem__(0, False)).start()
    assert Store(tmp_path).claim(ID12, 0, "a") is not None


def test_a_claim_is_released_on_a_full_disk_and_after_its_trial_was_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    claim = store.claim(ID12, 0, "a")
    assert claim is not None
    size = claim.path.stat().st_size
    claim.release()
    assert json.loads(claim.path.read_text())["released"] is True and claim.path.stat().st_size == size
    claim.path.unlink()
    claim.release()
    assert not claim.path.exists()
