"""Timing: whether a trial's seconds can be trusted, and why not. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping

CONTENTION = 1.1
"""Wall over CPU time of the train stretch above which somebody else had our core."""
DRIFT = 0.10
"""How far the reference workload may move between the start of a trial and its end."""


def reasons(
    clocks: Mapping[str, float],
    *,
    threads: int,
    alone_on_cpu: bool,
    resumed: bool,
    shared: bool,
    reference_s: tuple[float, float],
) -> list[str]:
    """Words among resumed, shared, contention, drift; none where the timing is valid.

    `alone_on_cpu`: one rank and no accelerator; a rank that waits for another or for a device is idle by right.
    """
    found = {
        "resumed": resumed,
        "shared": shared,
        "contention": alone_on_cpu and contended(clocks["train_s"], clocks["cpu_s"], threads),
        "drift": drifted(*reference_s),
    }
    return [reason for reason, holds in found.items() if holds]


def contended(train_s: float, cpu_s: float, threads: int) -> bool:
    """Whether the threads had less than a core each; idle ones spin, so a trial alone uses `threads` cores."""
    return train_s > CONTENTION * cpu_s / threads


def drifted(before_s: float, after_s: float) -> bool:
    """Whether the same work took more than 10 % longer or shorter than before."""
    return abs(after_s / before_s - 1.0) > DRIFT
