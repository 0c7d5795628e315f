"""Sequence-length warm-up: short sequences first, the whole ones once training is steady. Li et al. 2021, 2108.06084.

N sequences of T tokens; targets have the inputs' shape where every token has one.
"""

from __future__ import annotations

from torch import Tensor


def length_at(progress: float, duration: float, min_length: int, max_length: int, step_size: int) -> int:
    """Length at `progress` (0..1): from `min_length` up by `step_size`, every length for as long, then `max_length`.

    The last rise may be smaller than a step. Where there is nothing to rise, or no time for it, it is `max_length`.
    """
    if progress >= duration or min_length >= max_length:
        return max_length
    num_rises = -(-(max_length - min_length) // step_size)
    rises = int(progress / duration * num_rises + 1e-9)  # 3 of 10 steps is 0.3, which may come out below
    return min(max_length, min_length + step_size * rises)


def truncate(inputs: Tensor, targets: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """The first `length` tokens of each sequence, and their targets; a target for the whole sequence stays."""
    return inputs[:, :length], targets[:, :length] if targets.shape == inputs.shape else targets


def cut(inputs: Tensor, targets: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Sequences (N, T) cut into pieces (N * (T // length), length); what is left at the end of each is dropped.

    No piece runs from one sequence into the next. ValueError where not every token has a target of its own.
    """
    if targets.shape != inputs.shape:
        raise ValueError(
            f"sequences are cut where every token has a target, but inputs are {list(inputs.shape)} and targets "
            f"{list(targets.shape)}; use truncate: true"
        )
    used = inputs.shape[1] - inputs.shape[1] % length
    return inputs[:, :used].reshape(-1, length), targets[:, :used].reshape(-1, length)
