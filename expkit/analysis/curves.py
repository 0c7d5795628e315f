"""Learning curves: mean over trials with a t interval, at no more than 200 points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from expkit.analysis.attainment import first_ended
from expkit.analysis.intervals import Array, t_interval
from expkit.analysis.load import Evaluations, Key, finite
from expkit.analysis.model import Curve
from expkit.analysis.replicate import Replicate

MAX_POINTS = 200


def curve(
    arm: str, metric: str, replicates: Sequence[Replicate], series: Mapping[Key, Evaluations], level: float
) -> Curve | None:
    """The curve of one arm over its complete trials, each once; None where none has an evaluation.

    A point is a batch that some trial evaluated at; values that are not finite are left out of it.
    """
    found = [s for r in first_ended(replicates) if r.complete and (s := series.get((r.id, r.replicate))) is not None]
    at = _by_batch(found) if found else {}
    if not at:
        return None
    batches = spread(list(at), MAX_POINTS)
    points = [at[b] for b in batches]
    intervals = [t_interval(p[:, 2], level) for p in points]
    return Curve(
        arm,
        metric,
        step=tuple(int(b) for b in batches),
        sample=tuple(int(p[:, 0].mean()) for p in points),
        train_s=tuple(finite(p[:, 1].mean()) or 0.0 for p in points),
        mean=tuple(float(p[:, 2].mean()) for p in points),
        lo=tuple(i.lo for i in intervals),
        hi=tuple(i.hi for i in intervals),
        n=tuple(len(p) for p in points),
    )


def _by_batch(found: Sequence[Evaluations]) -> dict[float, Array]:
    """Batch -> (sample, seconds, value) of each trial that has a finite value there, (n, 3), in order of batches."""
    columns = [np.concatenate([own(s) for s in found]) for own in _COLUMNS]
    rows = np.column_stack(columns)[np.isfinite(columns[-1])]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    batches, starts = np.unique(rows[:, 0], return_index=True)
    return dict(zip(batches.tolist(), np.split(rows[:, 1:], starts[1:]), strict=True)) if len(rows) else {}


_COLUMNS: tuple[Callable[[Evaluations], Array], ...] = (
    lambda s: s.batch, lambda s: s.sample, lambda s: s.clocks["train_s"], lambda s: s.value
)  # fmt: skip


def spread(points: Sequence[float], most: int) -> list[float]:
    """At most so many of them, evenly, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[i] for i in np.linspace(0, len(points) - 1, most).round().astype(int)]
