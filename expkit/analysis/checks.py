"""The same speedup by other estimators than the paired t: does the conclusion hang on the choice?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from expkit.analysis import phrases, robust, speedup
from expkit.analysis.estimates import Checks, Interval
from expkit.analysis.intervals import excludes
from expkit.analysis.pairs import Pairs
from expkit.analysis.speedup import Speedup

Times = Sequence[float]


def checks(found: Speedup, pairs: Pairs, unpaired: tuple[Times, Times], level: float, seed: int = 0) -> Checks:
    """All checks of one arm: `found` is the paired speedup of `pairs`; `unpaired` all usable times, (baseline, arm).

    `seed` is that of the bootstrap, which only the ratio of medians has and only from 20 pairs on. 1,024 arms of 10
    pairs take under a second.
    """
    log_ratios = list(pairs.log_speedups().values())
    made = Checks(
        p=found.p,
        p_sign_flip=robust.sign_flip_p(log_ratios),
        p_sign_flip_least=robust.least_sign_flip_p(len(log_ratios)),
        rho=found.rho,
        hodges_lehmann=robust.hodges_lehmann(log_ratios, level),
        ratio_of_means=speedup.ratio_of_means(pairs.base, pairs.arm, level),
        ratio_of_medians=robust.ratio_of_medians(pairs.base, pairs.arm, np.random.default_rng(seed), level),
        unpaired=speedup.welch(*unpaired, level).ratio,
    )
    return replace(made, sentence=disagreement(found.ratio, made))


def disagreement(ratio: Interval, found: Checks) -> str:
    """Which checks exclude 1 where the speedup does not, or the other way round; empty where all agree or none can."""
    if ratio.lo is None:
        return ""
    others = {
        "Hodges-Lehmann": found.hodges_lehmann,
        "Fieller's ratio of means": found.ratio_of_means,
        "the ratio of medians": found.ratio_of_medians,
    }
    resolved = excludes(ratio, 1.0)
    against = [name for name, it in others.items() if it.lo is not None and excludes(it, 1.0) != resolved]
    if found.p_sign_flip is not None and (found.p_sign_flip_least or 1) < 1 - ratio.level:
        against += ["the sign-flip test"] if (found.p_sign_flip < 1 - ratio.level) != resolved else []
    if not against:
        return ""
    do = "do" if len(against) > 1 else "does"
    if resolved:
        return f"The interval excludes 1; {phrases.listing(against)} {do} not: single pairs carry it."
    return f"The interval does not exclude 1; {phrases.listing(against)} {do}: a few pairs are far from the others."
