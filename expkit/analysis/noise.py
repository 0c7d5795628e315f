"""The noise floor: by how much two runs of identical code differ here, from the A/A repeats of the baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import exp, t_interval

TOO_NOISY = math.log(1.2)
"""A floor beyond which the machine hides more than most methods could give; in log-time, 20 %."""


@dataclass(frozen=True)
class Floor:
    """`eps` is in log-time: no ratio inside [e^-eps, e^eps] is called a difference."""

    eps: float | None
    ratio: Interval
    pairs: int
    contains_one: bool | None


def aa_floor(r0_s: ArrayLike, r1_s: ArrayLike) -> Floor:
    """Half-width of the 95 % t interval of the mean A/A log ratio, one ln(r0 / r1) a block.

    Where that interval leaves out 0, something other than chance sets equal code apart by up to its farther end; the
    floor is then that end, so that no claim fits below it. Shapes (B,), (B,); a block in which a time is missing or
    not positive is no pair. Fewer than two pairs give no floor.
    """
    r0, r1 = np.asarray(r0_s, dtype=float), np.asarray(r1_s, dtype=float)
    both = np.isfinite(r0) & np.isfinite(r1) & (r0 > 0) & (r1 > 0)
    log_ratio = t_interval(np.log(r0[both]) - np.log(r1[both]), method="A/A paired t")
    if log_ratio.lo is None or log_ratio.hi is None:
        return Floor(None, exp(log_ratio), log_ratio.n, None)
    contains_one = log_ratio.lo <= 0 <= log_ratio.hi
    eps = (log_ratio.hi - log_ratio.lo) / 2 if contains_one else max(-log_ratio.lo, log_ratio.hi)
    return Floor(eps, exp(log_ratio), log_ratio.n, contains_one)
