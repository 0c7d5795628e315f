"""Reference system time: what work would have taken on one machine, whichever it ran on. A16, Kaddour et al. (2023).

Of operations: their counts times the seconds that each takes on the reference system. Of trials: their seconds times
the ratio of one fixed workload's time there and beside the trial. Neither sees stalls of data loading, other programs
in the same run, or memory that is slower on one machine for this model only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from expkit.errors import UsageError

OFF_THE_FIT = 0.2
"""A share by which an entry of a table may lie off what its work predicts."""


def reference_time_s(counts: Mapping[str, float], seconds: Mapping[str, float]) -> float:
    """sum over operations of count * seconds on the reference system; UsageError for one that has no time there."""
    missing = sorted(set(counts) - set(seconds))
    if missing:
        raise UsageError(f"the reference system has no time of {', '.join(missing)}; it has {', '.join(seconds)}")
    return math.fsum(count * seconds[name] for name, count in counts.items())


def scaled_s(measured_s: float, beside_s: Sequence[float], reference_s: float) -> float | None:
    """measured * reference / mean of the workload's times before and after; None where those are not known."""
    known = [s for s in beside_s if math.isfinite(s) and s > 0]
    return measured_s * reference_s / float(np.mean(known)) if known and reference_s > 0 else None


@dataclass(frozen=True)
class Timed:
    """The fixed workload on one host: median and median absolute deviation over `repeats` rounds, in seconds."""

    wall_s: float
    cpu_s: float
    mad_s: float
    """Of cpu_s."""
    repeats: int

    @classmethod
    def of(cls, walls_s: Sequence[float], cpus_s: Sequence[float]) -> Timed:
        """UsageError without a round."""
        if not cpus_s:
            raise UsageError("a host is timed in one round or more, but got 0")
        cpu = float(np.median(cpus_s))
        return cls(float(np.median(walls_s)), cpu, float(np.median(np.abs(np.asarray(cpus_s) - cpu))), len(cpus_s))

    @property
    def spread(self) -> float:
        """1.4826 MAD / median: a standard deviation as a share, were rounds normal."""
        return 1.4826 * self.mad_s / self.cpu_s


def doubtful(work: Sequence[float], seconds: Sequence[float]) -> list[int]:
    """Entries of a table that lie more than 20 % off ln seconds = a + b ln work, b the median of slopes (Theil-Sen).

    A decimal slip in one entry bills its work at a tenth: 0.01052 between 0.09188 and 0.1186 was such a one. Empty for
    fewer than four entries or work that is all alike.
    """
    x, y = np.log(np.asarray(work, dtype=float)), np.log(np.asarray(seconds, dtype=float))
    if len(x) < 4 or np.ptp(x) == 0:
        return []
    i, j = np.triu_indices(len(x), 1)
    apart = x[i] != x[j]
    slope = float(np.median((y[j] - y[i])[apart] / (x[j] - x[i])[apart]))
    residuals = y - slope * x
    return [int(k) for k in np.flatnonzero(np.abs(residuals - np.median(residuals)) > math.log1p(OFF_THE_FIT))]
