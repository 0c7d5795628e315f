"""Fail fast: a bug that hits every trial should not cost the night. Pure, but for the count that it keeps."""

from __future__ import annotations

import re

from expkit.store.records import Status

CONSECUTIVE = 3
"""Trials that fail alike in a row, before any has had a result."""
_VARIES = re.compile(r"\b[0-9a-f]{12}\b|0x[0-9a-f]+|\d+")


class FailFast:
    """`saw` every end; once `reached`, no other trial should begin, and those that wait stay pending."""

    def __init__(self, *, succeeded: bool = False) -> None:
        """`succeeded`: a trial of the same sweep has had a result before."""
        self._succeeded = succeeded
        self._last: tuple[str, str] | None = None
        self._count = 0

    @property
    def reached(self) -> bool:
        """Whether the next trial would most likely fail as the last ones did."""
        return self._count >= CONSECUTIVE and not self._succeeded

    def saw(self, state: str, status: Status | None) -> None:
        """One trial has ended; what somebody stopped says nothing."""
        if state in ("complete", "diverged", "pruned"):
            self._succeeded = True
        elif state == "failed" and status is not None:
            kind = alike(status)
            self._count = self._count + 1 if kind == self._last else 1
            self._last = kind


def alike(status: Status) -> tuple[str, str]:
    """Cause and first line of a failure without what differs from trial to trial: ids, addresses, numbers."""
    first = (status.message or "").partition("\n")[0]
    return status.cause or "", _VARIES.sub("#", first)
