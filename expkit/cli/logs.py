"""`expkit logs`: what a replicate printed, as it was printed; reads only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.options import RUNS, Json, ReadDirWithLogs, Replicate, Trial, give, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def logs(
    trial: Trial,
    replicate: Replicate = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the replicate has ended.")] = False,
    rank: Annotated[int, typer.Option(help="Which rank.", min=0)] = 0,
    attempt: Annotated[int | None, typer.Option(help="Which attempt; the latest where none is named.", min=1)] = None,
    runs_dir: ReadDirWithLogs = RUNS,
    as_json: Json = False,
) -> None:
    """Show the log of a replicate. Pipes get it byte by byte; terminals without what might command them.

    Example: expkit logs 3f2a r1 -f
    """
    from expkit.store.find import find
    from expkit.store.logs import log_of
    from expkit.store.store import Store

    store = Store(runs_dir)
    found = find(store, trial if replicate is None else f"{trial} {replicate}")
    log = log_of(store, found.id12, found.replicate or 0, rank=rank, attempt=attempt)
    if as_json:
        lines = [line.decode(errors="replace") for line in _lines(log.chunks(follow=follow))]
        place = {"id": log.id12, "replicate": log.replicate, "attempt": log.attempt, "rank": rank}
        give({**place, "state": store.state_of(log.id12, log.replicate), "path": str(log.path), "lines": lines})
        return
    if sys.stdout.isatty():
        show(log.chunks(follow=follow))
    else:
        passed_on(log.chunks(follow=follow))
    state = store.state_of(log.id12, log.replicate)
    say(f"{log.id12} r{log.replicate} attempt {log.attempt} is {state}; log: {log.path}")


def passed_on(chunks: Iterable[bytes]) -> None:
    """The bytes as they are."""
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def show(chunks: Iterable[bytes]) -> None:
    """Whole lines, without escape sequences and control characters."""
    from expkit.report.clean import clean_lines

    for line in _lines(chunks):
        print(clean_lines(line.decode(errors="replace")), flush=True)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in whole)
    if rest:
        yield rest
