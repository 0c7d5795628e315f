"""Progress of a drive, on stderr: a live table on a terminal, a plain line a trial elsewhere."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expkit.launch.drive import Job
from expkit.launch.failure import says_all
from expkit.launch.ranks import failures
from expkit.speech import say, unheard
from expkit.store.layout import Layout
from expkit.store.records import Status

NUM_LOG_LINES = 8
_REFRESH_S = 0.5


@dataclass
class Eta:
    """When the last trial will have ended, from those that ended so far."""

    total: int
    done: int = 0
    started_s: float = 0.0

    def left_s(self, now_s: float) -> float | None:
        """Seconds left; None before the first trial has ended."""
        if not self.done:
            return None
        return (now_s - self.started_s) / self.done * (self.total - self.done)


class Plain:
    """A line a trial: `[12/45] ema seed 17 r0: complete, eval/accuracy 0.842, train 3.2 s, ETA 2 min`."""

    def __init__(self, total: int, metric: str) -> None:
        self._eta = Eta(total, started_s=time.monotonic())
        self._metric = metric

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put away."""

    def started(self, job: Job, attempt: Path) -> None:
        """Nothing is said before a trial has ended."""

    def ended(self, job: Job, state: str, status: Status | None, attempt: Path | None) -> None:
        """The line, and below it why a trial has no result."""
        self._eta.done += 1
        self._print(f"[{self._eta.done}/{self._eta.total}] {job.name()}: {outcome(state, status, self._metric)}"
                    f"{eta_text(self._eta.left_s(time.monotonic()))}")  # fmt: skip
        for line in reason(state, status, attempt):
            self._print(f"    {line}")

    def note(self, text: str) -> None:
        """A line of its own."""
        self._print(text)

    def tick(self) -> None:
        """Plain lines do not move."""

    def _print(self, line: str) -> None:
        say(line)


class Live(Plain):
    """The same lines scroll past above a bar and the running trials."""

    def __init__(self, total: int, metric: str, layout: Layout) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        super().__init__(total, metric)
        self._layout = layout
        self._running: dict[str, Job] = {}
        self._console = Console(stderr=True)
        self._live: Any = RichLive(console=self._console, auto_refresh=False, transient=True)
        self._shown_s = 0.0

    def __enter__(self) -> Live:
        with unheard():
            self._live.__enter__()
        return self

    def __exit__(self, *exit_args: Any) -> None:
        with unheard():
            self._live.__exit__(*exit_args)

    def started(self, job: Job, attempt: Path) -> None:
        """One more line below the bar."""
        self._running[job.name()] = job

    def ended(self, job: Job, state: str, status: Status | None, attempt: Path | None) -> None:
        """Its line moves up and stays."""
        self._running.pop(job.name(), None)
        super().ended(job, state, status, attempt)

    def tick(self) -> None:
        """Draw anew, twice a second."""
        if time.monotonic() - self._shown_s > _REFRESH_S:
            self._shown_s = time.monotonic()
            with unheard():
                self._live.update(self._picture(), refresh=True)

    def _picture(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1))
        for name, job in self._running.items():
            batch, of = progress_of(self._layout, job.id12, job.replicate)
            bar = ProgressBar(max(of, 1), batch, width=30)
            table.add_row(Text(f"  {name}"), bar, Text(f"{batch}/{of}" if of else "starting"))
        eta = eta_text(self._eta.left_s(time.monotonic()))
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(max(self._eta.total, 1), self._eta.done, width=40)
        head.add_row(bar, Text(f"{self._eta.done}/{self._eta.total} trials{eta}"))
        return Group(head, table)

    def _print(self, line: str) -> None:
        with unheard():
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def watcher(total: int, metric: str, layout: Layout) -> Plain:
    """Live on a terminal, plain in a pipe."""
    return Live(total, metric, layout) if sys.stderr.isatty() else Plain(total, metric)


def outcome(state: str, status: Status | None, metric: str) -> str:
    """`complete, eval/accuracy 0.842, train 3.2 s`, or the state with its cause."""
    if status is None or state not in ("complete", "diverged"):
        return f"{state} ({status.cause})" if status is not None and status.cause else state
    value, train_s = status.final.get(metric), status.clocks.get("train_s")
    shown = [state]
    shown += [f"{metric} {value:.4g}"] if value is not None else [f"{metric} was not recorded"]
    shown += [f"train {train_s:.1f} s"] if train_s is not None else []
    shown += [f"timing not valid ({', '.join(status.timing_reasons)})"] if status.timing_reasons else []
    return ", ".join(shown)


def reason(state: str, status: Status | None, attempt: Path | None) -> list[str]:
    """Why a trial has no result: what its status says, or else the last lines of its log, and where the log lies."""
    if state in ("complete", "diverged", "pruned") or attempt is None:
        return []
    log = Layout.log(attempt, next((failure.rank for failure in failures(attempt)), 0))
    lines = (status.message or "").splitlines() if status is not None else []
    if status is None or (state != "interrupted" and not says_all(status)):
        lines += last_lines(log)
    return [*lines, f"log: {log}"]


def last_lines(log: Path, count: int = NUM_LOG_LINES) -> list[str]:
    """The end of a log, however long it is."""
    try:
        with log.open("rb") as f:
            f.seek(max(0, f.seek(0, 2) - 8192))
            return f.read().decode(errors="replace").splitlines()[-count:]
    except OSError:
        return []


def progress_of(layout: Layout, id12: str, replicate: int) -> tuple[int, int]:
    """Batches done and to do of a running trial, as its last heartbeat said; zeros where it has said nothing."""
    try:
        beat = json.loads(layout.heartbeat(id12, replicate).read_text())
        return int(beat["batch"]), int(beat["of"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0


def eta_text(left_s: float | None) -> str:
    """`, ETA 2 min`; empty where nothing is known or left."""
    if left_s is None or left_s <= 0:
        return ""
    if left_s < 90:
        return f", ETA {left_s:.0f} s"
    return f", ETA {left_s / 60:.0f} min" if left_s < 5400 else f", ETA {left_s / 3600:.1f} h"
