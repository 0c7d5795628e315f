"""Workers of a torch DataLoader: what one that raised or died means, in a sentence; and how to end them all."""

from __future__ import annotations

import re
from typing import Any

from expkit.duration import Timestamp
from expkit.errors import TrialFailure
from expkit.trainer.keyed import NOTE

_RAISED = re.compile(r"Caught \w+ in DataLoader worker process (\d+)\.\n")
_DIED = re.compile(r"DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\) (?:is killed by signal: (\w[\w ]*)|exited)")


def failure_of(error: Exception, now: Timestamp) -> TrialFailure | None:
    """The sentence for an error that a worker of a loader is behind, None for any other."""
    text = str(error)
    where = f"batch {now.batch_in_epoch} of epoch {now.epoch}"
    if raised := _RAISED.match(text):
        *_, what, last = ["", *filter(None, text.splitlines())]
        sample, what = (last.removeprefix("while loading "), what) if last.startswith(NOTE) else ("the data", last)
        return TrialFailure(f"{sample} could not be loaded, at or after {where}, in loader worker {raised[1]}: {what}")
    if died := _DIED.match(text):
        how = f"was killed ({died[2].strip()})" if died[2] else "ended by itself"
        return TrialFailure(
            f"loader worker with pid {died[1]} {how} at or before {where}; often memory ran out: use fewer workers, or "
            f"num_workers=0 to see errors where they happen", "signal" if died[2] else "exception",
        )  # fmt: skip
    if text.startswith("DataLoader timed out"):
        return TrialFailure(f"the loader gave no batch within its timeout, at {where}: {text}", "timeout")
    return None


def end_workers(iterator: Any) -> None:
    """End the worker processes behind an iterator of a DataLoader, if it has any; waits for them."""
    if hasattr(iterator, "_shutdown_workers"):  # dropping it is not enough: an error's traceback may still hold it
        iterator._shutdown_workers()
