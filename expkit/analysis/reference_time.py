"""Reference system time: what work would have taken on one machine, whichever it ran on. A16, Kaddour et al. (2023).

By phases: each arm's steps by what they do, times the seconds that such a step of that arm takes on the reference
system. By a workload: a trial's seconds times the ratio of one fixed workload's time there and beside the trial, where
no phases are known. Neither sees other programs in the same run or stalls of data loading that only one machine has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from expkit.errors import UsageError

OFF_THE_FIT = 0.2
"""A share by which an entry of a table may lie off what its work predicts."""
_PASS = re.compile(r"(?:(\d+) \* )?([\d?]+(?:x\d+)*)( forward)?")
_BACKWARD = 2.0
"""Work of a backward pass in forward passes."""


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
class Phase:
    """One kind of step of one arm on the reference system, median and median absolute deviation in seconds."""

    arm: str
    phase: str
    """Shapes of its forward passes, as `launch.tally` names them."""
    steps: int
    """That were timed."""
    median_s: float
    mad_s: float

    @property
    def error_s(self) -> float:
        """Standard error of the median, sqrt(pi / 2) * 1.4826 MAD / sqrt(steps), were steps normal."""
        return math.sqrt(math.pi / 2) * 1.4826 * self.mad_s / math.sqrt(self.steps)


@dataclass(frozen=True)
class Billed:
    """A training in reference system time."""

    seconds: float
    error_s: float
    """From that of the medians."""
    nearest: float
    """Share of its steps that were billed as the timed phase whose work is nearest, for want of their own."""


def billed(steps: Mapping[str, int], table: Sequence[Phase]) -> Billed | None:
    """sum over phases of steps * median; `table` has the phases of that arm alone. None without any."""
    known = {one.phase: one for one in table}
    if not known or not steps:
        return None
    taken = {name: known.get(name) or _nearest(name, table) for name in steps}
    total = reference_time_s(steps, {name: one.median_s for name, one in taken.items()})
    by_entry: dict[str, float] = {}
    for name, one in taken.items():
        by_entry[one.phase] = by_entry.get(one.phase, 0.0) + steps[name] * one.error_s
    unknown = sum(number for name, number in steps.items() if name not in known)
    return Billed(total, math.sqrt(math.fsum(e * e for e in by_entry.values())), unknown / sum(steps.values()))


def _nearest(phase: str, table: Sequence[Phase]) -> Phase:
    wanted = math.log(work_of(phase))
    return min(table, key=lambda one: abs(math.log(work_of(one.phase)) - wanted))


def work_of(phase: str) -> float:
    """Numbers that go through the model, three times over where there is a backward pass: `2 * 64x784` is 301,056."""
    found = [_PASS.fullmatch(part) for part in phase.split(" + ")]
    sizes = [(int(m[1] or 1) * math.prod(int(n) for n in m[2].split("x") if n != "?"), m[3]) for m in found if m]
    return sum(size * (1.0 if forward else 1.0 + _BACKWARD) for size, forward in sizes) or 1.0


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


def out_of_line(table: Sequence[Phase]) -> list[Phase]:
    """Entries that lie more than 20 % off what the other phases of their arm predict. A16."""
    found = []
    for arm in dict.fromkeys(one.arm for one in table):
        own = [one for one in table if one.arm == arm]
        found += [own[k] for k in doubtful([work_of(one.phase) for one in own], [one.median_s for one in own])]
    return found
