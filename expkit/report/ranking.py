"""In which order arms stand, and which look each has: the same in every section and chart of a page."""

from __future__ import annotations

from expkit.analysis.model import Arm, Summary, TargetTime
from expkit.report.looks import Style, styles


def ranked(summary: Summary) -> list[Arm]:
    """The baseline, then the arms from the fastest to the slowest, then those without a comparison by label."""

    def key(arm: Arm) -> tuple[bool, bool, float, str]:
        value = arm.speedup.value
        return not arm.baseline, value is None, -(value or 0.0), arm.label

    return sorted(summary.arms, key=key)


def looks(summary: Summary) -> dict[str, Style]:
    arms = ranked(summary)
    return styles([arm.label for arm in arms], next((arm.label for arm in arms if arm.baseline), ""))


def primary_time(arm: Arm, share: float | None = None) -> TargetTime | None:
    """The arm's time to the primary target, or to a rung: the sustained crossing, interpolated where that is there."""
    times = {t.rule: t for t in arm.target_times if t.share == share}
    return times.get("interpolated") or times.get("sustained") or next(iter(times.values()), None)
