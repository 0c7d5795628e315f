"""Everything about a sweep that is of all its arms at once, as the report has it."""

from __future__ import annotations

from collections.abc import Sequence

from expkit.analysis.bill import bill, tuning
from expkit.analysis.comparisons import Many
from expkit.analysis.load import Settings, Sweep, Views
from expkit.analysis.many import comparisons
from expkit.analysis.model import Arm
from expkit.analysis.sensitivity import sensitivity
from expkit.analysis.steady import steadiness
from expkit.analysis.study import Study
from expkit.analysis.winners import best


def at_once(con: Views, data: Sweep, study: Study, arms: Sequence[Arm], wanted: Settings) -> Many:
    """Comparisons, winners, sensitivity, tuning, warm-up and cost."""
    family, compared = comparisons(study, arms, wanted.confirmatory)
    return Many(
        family=family,
        arms=compared,
        best=best(study, arms),
        sensitivity=sensitivity(study),
        tuning=tuning(study),
        steadiness=steadiness(study, data),
        cost=bill(con, data, wanted.rates),
    )
