"""The quality whose time is measured: fixed from baseline pilots before the sweep, with a ladder of rungs below it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike

from expkit.errors import UsageError

SHARES = (0.90, 0.95, 0.99)
GAINS = {f"gain_{100 * share:.0f}": share for share in SHARES}
"""Rules of a pilot's target that take a rung of its ladder."""


def lowest_final(finals: Iterable[float], mode: str = "max") -> float:
    """The worst final quality of the pilots: one more baseline trial of k reaches it with probability k / (k + 1). A2.

    Values that are not finite are no result; UsageError where none is left.
    """
    finite = [float(q) for q in finals if np.isfinite(q)]
    if not finite:
        raise UsageError("no pilot trial ended with a finite value of the metric, so there is no target to derive")
    return min(finite) if mode == "max" else max(finite)


def ladder(
    firsts: Sequence[float], finals: Sequence[float], shares: Sequence[float] = SHARES
) -> tuple[tuple[float, float], ...]:
    """(share, quality) with quality = f + share * (l - f), f and l the baseline's median first and last evaluation.

    Holds for both modes, as the gain has a sign. Empty where the baseline has no finite pair of evaluations.
    """
    pairs = [(a, b) for a, b in zip(firsts, finals, strict=True) if np.isfinite(a) and np.isfinite(b)]
    if not pairs:
        return ()
    first, final = (statistics.median(side) for side in zip(*pairs, strict=True))
    return tuple((share, float(first + share * (final - first))) for share in shares)


def slope(at: ArrayLike, quality: ArrayLike, mode: str = "max", goal: float | None = None) -> float | None:
    """What the metric gains per doubling of training over the last doubling of a run, more is better; None where
    fewer than two evaluations are there.

    With a goal, over the doubling that ends where the goal is first reached, if it is. Least squares of quality on log2
    of batches. Shapes (E,), (E,). A2.
    """
    x, q = np.asarray(at, dtype=float), np.asarray(quality, dtype=float)
    seen = np.isfinite(q) & (x > 0)
    there = seen & (q >= goal if mode == "max" else q <= goal) if goal is not None else np.zeros(len(x), dtype=bool)
    end = min(x[seen].max(initial=0.0), x[there].min(initial=math.inf))
    late = seen & (x >= end / 2) & (x <= end)
    if len(np.unique(x[late])) < 2:
        return None
    x, q = np.log2(x[late]), q[late]
    gain = float(((x - x.mean()) @ q) / ((x - x.mean()) ** 2).sum())
    return gain if mode == "max" else -gain


def too_flat(gain: float | None, sd: float | None) -> str:
    """Why times to a target near the end mean little; empty where they may mean something, or nothing is known.

    A shift dq of a run moves its time by the factor 2^(-dq / gain): at less than two SDs of the final quality per
    doubling, one SD moves it by 1.4 and more. A2.
    """
    if gain is None or sd is None or gain >= 2 * sd:
        return ""
    share = f"gains {gain:.2g} per doubling of training there" if gain > 0 else "gains nothing there"
    return f"the baseline {share} and its seeds vary by {sd:.2g} (SD), so times to it are mostly noise"


def exploratory(
    target_utc: str | None, first_arm_started_utc: str | None, hashes: Iterable[str | None], current: str | None
) -> bool:
    """Whether the target was set or changed after the first trial that is no baseline started.

    `hashes` are those that the trials recorded; one that differs from the current target's says it was changed.
    Without a trial there is nothing that could have been looked at; an unknown date of a target counts as late only
    where trials recorded none of its hashes.
    """
    if first_arm_started_utc is None:
        return False
    if target_utc is not None and _moment(target_utc) > _moment(first_arm_started_utc):
        return True
    recorded = {h for h in hashes if h}
    return bool(recorded - {current}) or (target_utc is None and not recorded)


def _moment(utc: str) -> datetime:
    moment = datetime.fromisoformat(utc.replace("Z", "+00:00"))
    return moment if moment.tzinfo else datetime.fromisoformat(f"{utc}+00:00")
