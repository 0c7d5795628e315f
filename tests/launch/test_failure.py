"""What an error is called in a status."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.errors import EnvironmentFault, PluginError, TrialFailure
from expkit.launch.executor import Outcome
from expkit.launch.failure import cause_of, message_of


def wrapped() -> Exception:
    try:
        try:
            raise MemoryError
        except MemoryError as e:
            raise RuntimeError("the batch did not fit") from e
    except RuntimeError as e:
        return e


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError("x"), "exception"),
        (KeyboardInterrupt(), "exception"),
        (SystemExit(0), "ended-early"),
        (MemoryError(), "oom"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 512 bytes"), "oom"),
        (RuntimeError("could not create a primitive"), "oom"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "oom"),
        (SystemError("error return without exception set"), "oom"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), "oom"),
        (wrapped(), "oom"),
        (OSError(28, "No space left on device"), "disk"),
        (OSError(2, "No such file"), "exception"),
        (PluginError("no such method"), "config"),
        (EnvironmentFault("no GPU"), "environment"),
        (TrialFailure("too slow", "timeout"), "timeout"),
    ],
)
def test_causes(error: BaseException, cause: str) -> None:
    assert cause_of(error) == cause


def test_a_message_is_a_sentence_and_the_last_lines_of_the_traceback() -> None:
    def deep(n: int) -> None:
        if n == 0:
            raise ValueError("at the bottom")
        deep(n - 1)

    try:
        deep(30)
    except ValueError as e:
        lines = message_of(e).splitlines()
    assert lines[0] == "ValueError: at the bottom"
    assert len(lines) <= 13
    assert 'raise ValueError("at the bottom")' in lines[-1]


def test_errors_of_the_user_need_no_traceback() -> None:
    assert message_of(PluginError("unknown model 'resnt'")) == "unknown model 'resnt'"


def test_processes_that_said_nothing() -> None:

    at = Path("attempt")
    assert (Outcome(at, -9)).cause() == "signal"
    assert "SIGKILL" in Outcome(at, -9).sentence()
    assert (Outcome(at, -9, out_of_memory=True)).cause() == "oom"
    assert (Outcome(at, 0)).cause() == "ended-early"
    assert (Outcome(at, 74)).cause() == "disk"
