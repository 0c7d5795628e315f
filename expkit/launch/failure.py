"""Failure: what an error that ended a trial is called in its status, and what is kept of it."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator

from expkit.errors import EnvironmentFault, PluginError, SpecError, TrialFailure, UsageError
from expkit.store.records import Status
from expkit.trainer.out_of_memory import is_out_of_memory

NUM_LINES = 12
"""Last lines of the traceback that are kept in the status; the log has all of it."""
DISK_FULL = 74
"""Exit code of a worker that could not write why it ended."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def cause_of(error: BaseException) -> str:
    """One of the store's causes."""
    if isinstance(error, SystemExit):
        return "ended-early"
    if any(is_out_of_memory(e) for e in _chain(error)):
        return "oom"
    if any(isinstance(e, OSError) and _is_disk(e) for e in _chain(error)):
        return "disk"
    if isinstance(error, TrialFailure):
        return error.cause
    if isinstance(error, SpecError | PluginError | UsageError):
        return "config"
    return "environment" if isinstance(error, EnvironmentFault) else "exception"


def message_of(error: BaseException) -> str:
    """One sentence, then the last lines of the traceback."""
    if isinstance(error, SystemExit):
        sentence = f"the trial's own code left with sys.exit({error.code!r}) before training was over"
    else:
        sentence = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, SpecError | PluginError | UsageError | EnvironmentFault):
        return str(error)
    frames = "".join(traceback.format_tb(error.__traceback__)).rstrip().splitlines()
    return "\n".join([sentence, *frames[-NUM_LINES:]])


def says_all(status: Status) -> bool:
    """Whether the message leaves nothing for the log to say: a sentence for the user, or one with its traceback."""
    return status.cause in ("config", "environment") or "\n" in (status.message or "")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _is_disk(error: OSError) -> bool:
    return error.errno in _NO_SPACE or "No space left on device" in str(error)
