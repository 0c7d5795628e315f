"""Why: what is to be said about the state that a replicate is in, in sentences, with the end of its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from expkit.analysis.phrases import TIMING_REASONS
from expkit.launch.account import next_command, sweeps_of
from expkit.launch.failure import says_all
from expkit.launch.progress import last_lines, progress_of
from expkit.launch.resume import continued, origin
from expkit.store.owner import Owner
from expkit.store.pulse import UNSEEN_LOST_S
from expkit.store.records import Status
from expkit.store.store import Store

NUM_LINES = 20
CAUSES = {
    "exception": "its code raised an error",
    "oom": "memory ran out",
    "timeout": "it took longer than it was given",
    "signal": "something killed its process",
    "ended-early": "its process ended before training was over, without an error",
    "disk": "the disk is full, or refused to be written to",
    "config": "its recipe or a setting in it does not fit",
    "environment": "the machine stood in the way",
}
SHOWS_LOG = frozenset({"failed", "lost", "diverged"})


@dataclass(frozen=True)
class Why:
    """The state of one replicate, explained."""

    id: str
    replicate: int
    state: str
    cause: str | None
    sentence: str
    message: str | None
    """What the trial itself said when it ended, with the last lines of the traceback."""
    remarks: tuple[str, ...]
    """On timing that is not valid, methods without effect, files that cannot be read."""
    lines: tuple[str, ...]
    """The end of the log, where the message does not say as much."""
    log: str | None
    next: str


def why(store: Store, id12: str, replicate: int) -> Why:
    """Why a replicate stands as it does; one that was never started has no folder, only a place in a plan."""
    damaged = len(store.set_aside)
    state, status = store.look(id12, replicate)
    unreadable = [f"{bad} (set aside)" for bad in store.set_aside[damaged:]]
    attempts = store.attempts(id12, replicate)
    log = store.layout.log(store.layout.attempt(id12, replicate, attempts[-1]), 0) if attempts else None
    sweeps = sweeps_of(store, id12)
    return Why(
        id12,
        replicate,
        state,
        status.cause if status else None,
        _sentence(store, id12, replicate, state, status, len(attempts)),
        status.message if status else None,
        (*unreadable, *_beginnings(store, id12, replicate), *(_remarks(status) if status else ())),
        tuple(last_lines(log, NUM_LINES)) if log and state in SHOWS_LOG and not (status and says_all(status)) else (),
        str(log) if log and log.exists() else None,
        next_command(store, id12, replicate, state, sweeps),
    )


def replicates_to_explain(store: Store, id12: str, named: int | None) -> list[int]:
    """The replicate that was named, else all that were begun or planned."""
    if named is not None:
        return [named]
    return sorted({*store.replicates(id12), *(place["replicate"] for place in sweeps_of(store, id12))})


def _sentence(store: Store, id12: str, replicate: int, state: str, status: Status | None, attempts: int) -> str:
    if state == "pending":
        return _pending(store, id12, replicate)
    if status is None:
        return "it was begun, but its status cannot be read" if state == "lost" else "a driver has just claimed it"
    batch, of = progress_of(store.layout, id12, replicate)
    done = f", batch {batch} of {of}" if of else ""
    tried = f" in attempt {attempts}" if attempts > 1 else ""
    again = _again(store, id12, replicate) if state in ("lost", "interrupted") and attempts else ""
    match state:
        case "failed":
            return f"it failed{tried}: {CAUSES.get(status.cause or '', 'nobody could say why')}{done}"
        case "lost":
            since = status.started_utc or status.created_utc
            gone = gone_because(status.owner)
            return f"it was {status.state} since {since}{done}, and {gone}; it left no result, and {again}"
        case "claimed" | "running":
            return f"it is {state}{tried} as process {status.pid} of {status.host}{done}"
        case "interrupted":
            return f"it was asked to stop{done}; {again}"
        case "diverged":
            return f"its training loss stopped being a finite number{tried}, which is a result"
        case "pruned":
            return "a rule of its sweep ended it early, which is a result"
    return f"it is complete{tried} since {status.ended_utc}"


def _again(store: Store, id12: str, replicate: int) -> str:
    """What running it once more will do, if it is asked for in the way it was last time."""
    record = store.read_attempt(store.layout.attempt(id12, replicate, store.attempts(id12, replicate)[-1])) or {}
    if record.get("exclusive"):
        return "running it again starts it over, for under timing: exclusive its time must be of one piece"
    start = origin(store, id12, replicate, record.get("nproc", 1))
    passed_over = "".join(f"{one}; " for one in start.passed_over)
    goes_on = f"goes on from batch {start.batch}, where its newest whole checkpoint stands"
    return f"{passed_over}running it again {goes_on if start.name else 'starts it over'}"


def gone_because(owner: Owner) -> str:
    """How we know that a process will write no more."""
    if owner.alive() is None:
        return f"its process {owner.pid} on {owner.host} has said nothing for {UNSEEN_LOST_S:.0f} s"
    if owner.of_another_boot():
        return f"{owner.host} was started anew since"
    return f"its process {owner.pid} on {owner.host} is gone"


def _pending(store: Store, id12: str, replicate: int) -> str:
    places = [s for s in sweeps_of(store, id12) if s["replicate"] == replicate]
    if not places:
        return "it has not been started, and no sweep's plan has it"
    at = places[0]
    return f"it has not been started; it is number {at['position'] + 1} of {at['of']} in sweep {at['sweep']}"


def _beginnings(store: Store, id12: str, replicate: int) -> Iterator[str]:
    for one in continued(store, id12, replicate):
        if one.continues or one.passed_over:
            yield one.sentence()


def _remarks(status: Status) -> Iterator[str]:
    for reason in status.timing_reasons:
        yield f"its timing is not valid: {TIMING_REASONS.get(reason, reason)}"
    for label, effective in sorted(status.effective.items()):
        if not effective:
            yield f"{label} found nothing to do and had no effect"
    for name, value in sorted(status.final.items()):
        if value != value or value in (float("inf"), float("-inf")):
            yield f"{name} is not finite, so it wins no ranking"
