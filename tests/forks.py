"""Processes of tests, forked from one that has imported torch and trained nothing: 30 ms each instead of 3 s.

    codes, told = ranks(two_ranks.main, folder, folder, names)      two ranks, waited for

One server serves all tests of a process and ends with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import unittest.mock
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PRELOAD = ["torch", "torch._dynamo", "torch.distributed", "tests.trainer.two_ranks"]
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOAD)


def ranks(
    main: Callable[..., None], folder: Path, *arguments: Any, world_size: int = 2, **variables: str
) -> tuple[list[int], list[str]]:
    """Exit codes of ranks that call `main`, negative for signals, and what they wrote to stderr."""
    logs = [folder / f"rank{rank}.err" for rank in range(world_size)]
    given = {**variables, "WORLD_SIZE": str(world_size)}
    started = [fork(main, log, {**given, "RANK": str(rank)}, *arguments) for rank, log in enumerate(logs)]
    for process in started:
        process.join(150)
        process.kill()  # nothing, where it has ended
        process.join()
    return [process.exitcode or 0 for process in started], [log.read_text() for log in logs]


def fork(main: Callable[..., None], log: Path, variables: Mapping[str, str], *arguments: Any) -> ForkServerProcess:
    """Call a function of a module in a process of its own, with stderr to a log."""
    with unittest.mock.patch.dict(os.environ, PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1"), contextlib.chdir(ROOT):
        forkserver.ensure_running()  # imports on first use, with the environment and the folder of that moment
        process = _context.Process(target=_begin, args=(main, log, {**os.environ, **variables}, *arguments))
        process.start()
    return process


def _begin(main: Callable[..., None], log: Path, environ: Mapping[str, str], *arguments: Any) -> None:
    os.environ.clear()
    os.environ.update(environ)
    np.random.seed()  # as in a process of its own: forks would all draw the same
    multiprocessing.set_start_method("fork", force=True)  # else a loader's workers come from another such server
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    main(*arguments)
