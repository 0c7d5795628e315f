"""Ranks of one trial: what each writes when it fails, and which of them is to blame.

A rank that fails pulls the others down a moment later; the first in time that is not itself a victim counts.
"""

from __future__ import annotations

import dataclasses
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from expkit.launch.executor import Outcome
from expkit.launch.failure import cause_of, message_of
from expkit.store.atomic import read_json, write_json
from expkit.store.layout import Layout

_ASKED_TO_LEAVE = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit codes of ranks that were stopped and said so."""


@dataclass(frozen=True)
class RankFailure:
    """Why one rank ended without a result."""

    rank: int
    cause: str
    message: str
    victim: bool
    """It only says that another rank has gone."""
    at_s: float
    """CLOCK_MONOTONIC, which all ranks of a machine share."""


def write_failure(attempt: Path, rank: int, error: BaseException, *, victim: bool) -> None:
    """Say why this rank ends; before the others can notice that it does."""
    failure = RankFailure(rank, cause_of(error), message_of(error), victim, time.monotonic())
    write_json(Layout.rank_failure(attempt, rank), asdict(failure), durable=False)


def failures(attempt: Path) -> list[RankFailure]:
    """What the ranks of an attempt have written, the first in time first, victims last."""
    found = [read_json(path, []) for path in attempt.glob(Layout.rank_failure(attempt, 0).name.replace("0", "*", 1))]
    known = [RankFailure(**record) for record in found if record is not None]
    return sorted(known, key=lambda failure: (failure.victim, failure.at_s))


def to_blame(outcome: Outcome) -> RankFailure | None:
    """The rank that ended its trial; None where none has written anything and the first to end is rank 0.

    A rank that a signal ended could not write, nor could one that left in the middle with code 0: where all others are
    victims, it is the one.
    """
    written = failures(outcome.attempt)
    if written and not written[0].victim:
        return written[0]
    if written and outcome.early is not None:
        left = dataclasses.replace(outcome, code=0, rank=outcome.early)
        return RankFailure(left.rank, left.cause(), left.sentence(), False, 0.0)
    said = {0, None, *_ASKED_TO_LEAVE}
    silent = outcome.code not in said and outcome.rank not in {failure.rank for failure in written}
    if silent and (written or outcome.rank):
        return RankFailure(outcome.rank, outcome.cause(), outcome.sentence(), False, 0.0)
    return written[0] if written else None


def sentence(id12: str, failure: RankFailure, attempt: Path) -> str:
    """`trial 3f2a91c04e7b failed on rank 1: loss is nan (.../rank1.log)`, then the lines below its first."""
    first, *rest = failure.message.splitlines() or [""]
    head = f"trial {id12} failed on rank {failure.rank}: {first} ({Layout.log(attempt, failure.rank)})"
    return "\n".join([head, *rest])
