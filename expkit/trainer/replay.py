"""Replay: a stream is read again up to where training was; how far that is is shown, for it may take hours."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from expkit.errors import ExpkitError
from expkit.trainer.logger import Logger
from expkit.trainer.state import State

INTERVAL_S = 5.0
"""Between two records of how far it is."""


def replay(state: State, count: int, name: str, logger: Logger, ask: Callable[[], None]) -> None:
    """Read `count` batches, those that were trained on, from `state.batches` and drop them.

    Records events of kind `replay` through the logger, or a warning of Python's `logging` where it has no destination.
    `ask` is called after each batch and may raise.
    """
    started_s = due_s = monotonic()  # the first record says what is about to be done
    assert state.batches is not None
    for done in range(count):
        if monotonic() >= due_s:
            _tell(state, logger, name, done, count, monotonic() - started_s)
            due_s = monotonic() + INTERVAL_S
        if next(state.batches, None) is None:
            raise ExpkitError(f"training was at batch {count} of its epoch, but the {name} now ends after {done}")
        ask()
    _tell(state, logger, name, count, count, monotonic() - started_s)


def _tell(state: State, logger: Logger, name: str, done: int, count: int, elapsed_s: float) -> None:
    payload: dict[str, int | float | str] = {"batches": done, "of": count, "elapsed_s": round(elapsed_s, 1)}
    if done:
        payload["remaining_s"] = round(elapsed_s / done * (count - done), 1)
    payload["reason"] = f"a {name} cannot skip batches, so they are read again and dropped"
    if logger.destinations:
        logger.log_event("replay", payload)
    elif state.rank == 0:
        logging.getLogger(__name__).warning("replay: %s", ", ".join(f"{key} {value}" for key, value in payload.items()))
