"""What the settings of gradient descent allow together. No torch here."""

from __future__ import annotations


def require_momentum(nesterov: bool, momentum: float, dampening: float) -> None:
    """ValueError for Nesterov's look ahead without a momentum to look along."""
    if nesterov and (momentum == 0 or dampening):
        raise ValueError(
            f"nesterov needs momentum above 0 and dampening 0, but got momentum {momentum} and dampening {dampening}"
        )
