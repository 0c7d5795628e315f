"""What a person sees of a running sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from expkit.launch.drive import Job
from expkit.launch.progress import Eta, Live, Plain, eta_text, last_lines, outcome, progress_of
from expkit.plan.trial import Cell, Trial
from expkit.store.layout import Layout
from expkit.store.records import Status

JOB = Job(Cell(Trial("0" * 64, None, "ema", (), {}, 17), 0, "arm", 0, 0), 0)  # type: ignore[arg-type]
COMPLETE = Status("complete", 1, final={"eval/accuracy": 0.8421}, clocks={"train_s": 3.21})


def test_a_line_says_what_came_out_and_how_long_it_still_takes(capsys: pytest.CaptureFixture[str]) -> None:
    plain = Plain(2, "eval/accuracy")
    plain.ended(JOB, "complete", COMPLETE, None)
    line = capsys.readouterr().err
    assert line.startswith("[1/2] ema seed 17 r0: complete, eval/accuracy 0.8421, train 3.2 s")


def test_a_failure_is_shown_when_it_happens_with_its_last_lines(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "rank0.log").write_text("one\ntwo\n")
    killed = Status("failed", 1, cause="signal", message="killed by signal 9 (SIGKILL)")
    Plain(2, "eval/accuracy").ended(JOB, "failed", killed, tmp_path)
    shown = capsys.readouterr().err.splitlines()
    assert "failed (signal)" in shown[0]
    assert [line.strip() for line in shown[1:]] == [
        "killed by signal 9 (SIGKILL)", "one", "two", f"log: {tmp_path / 'rank0.log'}"]  # fmt: skip


def test_the_live_table_holds_running_trials_and_lets_lines_pass(tmp_path: Path) -> None:
    from rich.console import Console

    layout = Layout(tmp_path)
    layout.heartbeat(JOB.id12, 0).parent.mkdir(parents=True)
    layout.heartbeat(JOB.id12, 0).write_text('{"batch": 3, "of": 8}')
    live: Any = Live(2, "eval/accuracy", layout)
    live.started(JOB, tmp_path)
    console = Console(width=100, force_terminal=False)
    with console.capture() as captured:
        console.print(live._picture())
    assert "ema seed 17 r0" in captured.get()
    assert "3/8" in captured.get()
    assert "0/2 trials" in captured.get()


def test_eta_is_known_from_the_first_trial_on() -> None:
    assert Eta(10).left_s(100.0) is None
    assert Eta(10, done=5, started_s=0.0).left_s(50.0) == 50.0
    assert [eta_text(s) for s in (None, 0.0, 30.0, 600.0, 7200.0)] == [
        "", "", ", ETA 30 s", ", ETA 10 min", ", ETA 2.0 h"]  # fmt: skip


def test_outcomes() -> None:
    assert outcome("lost", None, "m") == "lost"
    assert outcome("complete", COMPLETE, "eval/f1").startswith("complete, eval/f1 was not recorded")
    shaky = Status("complete", 1, timing_reasons=["drift"], timing_valid=False)
    assert outcome("complete", shaky, "m").endswith("timing not valid (drift)")


def test_a_heartbeat_that_is_half_written_is_no_progress(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert progress_of(layout, "a" * 12, 0) == (0, 0)
    layout.heartbeat("a" * 12, 0).parent.mkdir(parents=True)
    layout.heartbeat("a" * 12, 0).write_text('{"batch": 3')
    assert progress_of(layout, "a" * 12, 0) == (0, 0)


def test_last_lines_of_a_log_of_any_length(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    assert last_lines(log) == []
    log.write_text("".join(f"line {i}\n" for i in range(10_000)))
    assert last_lines(log, 2) == ["line 9998", "line 9999"]
