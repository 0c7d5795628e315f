"""Which arms of a sweep are worth running again on fresh seeds, and how that was decided, as a report says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from expkit.analysis import phrases
from expkit.analysis.model import Arm, Summary
from expkit.analysis.verdict import BY_CONSTRUCTION, FAILED, quality_class
from expkit.errors import UsageError, unknown


@dataclass(frozen=True)
class Choice:
    """Some arms, the first choice first, out of so many."""

    arms: tuple[Arm, ...]
    of: int
    rule: str


def fastest(summary: Summary, top: int) -> Choice:
    """The arms with the greatest speedup that are not shown to be worse, at most `top`.

    Left out are also arms in which a method did nothing, as they are another arm by construction, and those that are
    neither faster than the baseline nor shown to be better. UsageError where none is left.
    """
    arms = [arm for arm in summary.arms if not arm.baseline]
    worthy = sorted((arm for arm in arms if _is_worthy(arm, summary.delta)), key=lambda arm: -(arm.speedup.value or 0))
    if not worthy:
        raise UsageError(f"no arm of {summary.sweep} is faster than its baseline, or better, and not "
                         f"worse in {summary.metric}: there is nothing to confirm; --arm LABEL names one all the same"
                         )  # fmt: skip
    chosen = tuple(worthy[:top])
    rule = (
        f"the {len(chosen)} fastest of {phrases.count(len(arms), 'arm')} {phrases.on_clock(summary.clock)}"
        if len(chosen) > 1
        else f"the fastest of {phrases.count(len(arms), 'arm')} {phrases.on_clock(summary.clock)}"
    )
    return Choice(chosen, len(arms), f"{rule} that were not shown to be worse in {summary.metric}")


def named(summary: Summary, labels: Sequence[str]) -> Choice:
    """Arms that somebody has named; UsageError with the nearest for a label that is none, or a baseline's."""
    arms = {arm.label: arm for arm in summary.arms if not arm.baseline}
    for label in labels:
        if label not in arms:
            raise UsageError(unknown("arm", label, arms))
    chosen = tuple(arms[label] for label in dict.fromkeys(labels))
    return Choice(chosen, len(arms), f"named by hand, out of {phrases.count(len(arms), 'arm')}")


def _is_worthy(arm: Arm, delta: float) -> bool:
    if arm.speedup.value is None or arm.verdict in (FAILED, BY_CONSTRUCTION) or arm.equals:
        return False
    quality = quality_class(arm.quality_difference, delta)
    return quality != "worse" and (arm.speedup.value > 1 or quality == "better")
