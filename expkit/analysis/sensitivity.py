"""What a sweep could have shown, and how many seeds it would take to show less. A17 and D."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from expkit.analysis import improvement, phrases
from expkit.analysis.cells import grid_of
from expkit.analysis.comparisons import Sensitivity
from expkit.analysis.fraction import Partial
from expkit.analysis.intervals import t_interval
from expkit.analysis.power import detectable, seeds_needed
from expkit.analysis.study import Study

ASKED = (1.02, 1.05, 1.10)


def sensitivity(study: Study) -> Sensitivity:
    """From the pooled error of log-time, or else from the median over arms of the SD of their log ratios."""
    error, n = study.time_error, len(study.seeds)
    if error is not None:
        per_seed, arm = error.df / (n - 1), error.sd * math.sqrt(2 / n)
        arms = _contrasted(study)
        effect = detectable(2 * error.sd / math.sqrt(arms * n), error.df) if arms else None
        return _made(error.sd, error.df, n, arm, effect, lambda s: seeds_needed(s, error.sd, freedom=per_seed))
    spreads = [(float(row.std(ddof=1)), len(row)) for row in _ratios(study) if len(row) > 1]
    if not spreads:
        return Sensitivity()
    sd, typical = float(np.median([s for s, _ in spreads])), int(np.median([k for _, k in spreads]))
    one = sd / math.sqrt(2)
    return _made(one, typical - 1, typical, sd / math.sqrt(typical), None, lambda s: seeds_needed(s, one, rho=0.0))


def _contrasted(study: Study) -> float | None:
    """Arms of which a main effect is a contrast: all of a full grid, those of a fraction; None in other designs.

    A level is judged by fewer: 4 / sum w^2 of the contrast with the largest error.
    """
    if (grid := grid_of(study.cells)) is not None:
        return 2 * len(study.cells) / (1 + max(len(levels) for levels in grid.factors))
    part = Partial.of(study.cells)
    if part is None or not part.regular:
        return None
    return min(4 / float(np.square(w).sum()) for name, w in part.effects().items() if len(name) == 1)


def _ratios(study: Study) -> list[np.typing.NDArray[np.float64]]:
    rows = [row[np.isfinite(row)] for arm, row in zip(study.by_arm, study.log_speed_CS, strict=True)
            if not study.is_baseline(arm)]  # fmt: skip
    return [row for row in rows if t_interval(row).n]


def _made(
    sd: float, df: int, n: int, error: float, effect: float | None, needed: Callable[[float], int | None]
) -> Sensitivity:
    arm = detectable(error, df)
    return Sensitivity(
        sd=sd,
        df=df,
        n=n,
        arm=arm,
        effect=effect,
        seeds=tuple((speedup, needed(speedup)) for speedup in ASKED),
        blocks_of_improvement=math.ceil(improvement.noether(improvement.MEANINGFUL)),
        sentence=_sentence(sd, n, arm, effect),
    )


def _sentence(sd: float, n: int, arm: float, effect: float | None) -> str:
    main = f", or a main effect of x{effect:.3f}" if effect is not None else ""
    return (
        f"With n={n} and noise of {phrases.percent(sd)} this sweep could show an arm of x{arm:.3f}{main} (80 % power)."
    )
