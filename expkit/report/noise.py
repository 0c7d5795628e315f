"""The noise floor as a band around one, for charts and captions."""

from __future__ import annotations

import math

from expkit.analysis.model import Summary


def band_of(summary: Summary) -> tuple[float, float] | None:
    """[e^-eps, e^eps] of the headline's clock: speedups inside are no difference; None without A/A pairs."""
    eps = next((noise.eps for noise in summary.noise if noise.clock == summary.clock), None)
    return None if eps is None else (math.exp(-eps), math.exp(eps))
