"""Which rows of which attempt count: the latest attempt, and up to where it started the one that it continued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UNBOUNDED = 2**63 - 1


@dataclass(frozen=True)
class Span:
    """Rows of an attempt with `after < batch <= upto` count; at `after` those that the continued one does not have."""

    attempt: int
    after: int
    upto: int


def spans(origins: Mapping[int, tuple[int, int] | None]) -> list[Span]:
    """What counts of each attempt; `origins` has per attempt (continued attempt, its batch), None for a fresh start.

    `batch` counts finished batches, so the checkpoint's own batch belongs to the attempt that ran it. An attempt that
    nobody goes on from is superseded as a whole (after = upto), and so is one that a later attempt started over.
    """
    result = {k: Span(k, -1, -1) for k in origins}
    attempt, upto = max(origins, default=0), UNBOUNDED
    while attempt in origins:
        origin = origins[attempt]
        after = -1 if origin is None else origin[1]
        result[attempt] = Span(attempt, min(after, upto), upto)
        if origin is None or origin[0] >= attempt:  # a damaged record must not send us round in circles
            break
        attempt, upto = origin[0], min(origin[1], upto)
    return [result[k] for k in sorted(result)]
