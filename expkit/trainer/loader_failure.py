"""Workers of a torch DataLoader: what one that raised, died or hangs means, in a sentence; and how to end them all."""

from __future__ import annotations

import re
from typing import Any

from expkit.duration import Timestamp
from expkit.errors import TrialFailure
from expkit.trainer.keyed import NOTE

_RAISED = re.compile(r"Caught (\w+) in DataLoader worker process (\d+)\.\n")
_DIED = re.compile(r"DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\) (?:is killed by signal: (\w[\w ]*)|exited)")
_HANGS = re.compile(r"DataLoader timed out after ([\d.]+) seconds")


def failure_of(error: Exception, now: Timestamp) -> TrialFailure | None:
    """The sentence for an error that a worker of a loader is behind, None for any other."""
    text, after = str(error), f"after {now.batch} batches of training"
    if raised := _RAISED.match(text):
        what, _, sample = _last_error(text, raised[1]).partition(NOTE)
        missed = f"sample {sample.strip()}" if sample else "the data"
        return TrialFailure(f"{missed} could not be loaded, in loader worker {raised[2]}, {after}: {_in_a_line(what)}")
    if died := _DIED.match(str(error.__cause__)) or _DIED.match(text):  # the cause knows the signal
        how = f"was killed ({died[2].strip()})" if died[2] else "ended by itself"
        advice = "often memory ran out: use fewer workers, or num_workers=0 to see errors where they happen"
        cause = "signal" if died[2] else "exception"
        return TrialFailure(f"the loader worker with pid {died[1]} {how} {after}; {advice}", cause)
    if hangs := _HANGS.match(text):
        return TrialFailure(f"a loader gave no batch within its timeout of {hangs[1]} s, {after}", "timeout")
    return None


def raise_failure_of(error: BaseException, now: Timestamp) -> None:
    """Raise the sentence from the error, where a worker of a loader is behind it."""
    if isinstance(error, Exception) and (failure := failure_of(error, now)):
        raise failure from error


def _last_error(text: str, name: str) -> str:
    """`ValueError: not an image ...` at the end of a traceback, notes included."""
    starts = [found.start() for found in re.finditer(rf"^(?:\w+\.)*{name}(?=:|$)", text, re.MULTILINE)]
    return text[starts[-1] :] if starts else text.splitlines()[-1]


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


def end_workers(iterator: Any, loader: Any = None) -> None:
    """End the worker processes behind an iterator of a DataLoader, if it has any; waits for them.

    A loader whose workers persist starts new ones when it is read again.
    """
    if has_workers(iterator):  # dropping it is not enough: an error's traceback may still hold it
        iterator._shutdown_workers()
        if getattr(loader, "_iterator", None) is iterator:
            loader._iterator = None


def has_workers(iterator: Any) -> bool:
    """Whether this is an iterator of a DataLoader with processes of its own."""
    return hasattr(iterator, "_shutdown_workers")
