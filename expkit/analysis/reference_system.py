"""A sweep's arms in reference system time: the steps of their trials, whichever machine made them, at the seconds that
`expkit calibrate` found such steps to take on one machine. A16.

Its speedups have no noise of the machines that trained, so they stand beside the measured ones and judge nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval, OnReference, ReferenceArm
from expkit.analysis.intervals import exp
from expkit.analysis.linear import estimate
from expkit.analysis.reference_time import Phase, billed, out_of_line
from expkit.analysis.replicate import Replicate
from expkit.analysis.study import Study

MANY = 10**6
"""Degrees of freedom of an error that is not estimated from few values."""


def table_of(record: Mapping[str, Any]) -> tuple[Phase, ...]:
    """The phases of a calibration; ValueError where what stands there is no table of seconds."""
    try:
        found = tuple(Phase(**entry) for entry in record.get("phases") or ())
        if not all(one.steps > 0 and 0 < one.median_s < math.inf and 0 <= one.mad_s < math.inf for one in found):
            raise ValueError("steps and seconds of a phase are positive and finite")
    except TypeError as e:
        raise ValueError(str(e)) from None
    return found


def on_reference_system(study: Study, record: Mapping[str, Any]) -> OnReference | None:
    """Arms whose complete trials know their phases and whose steps were timed; None without any, or without a table."""
    try:
        table = table_of(record)
    except ValueError:
        return None
    bills = {arm: _bill(members, [p for p in table if p.arm == arm]) for arm, members in study.by_arm.items()}
    known = {arm: bill for arm, bill in bills.items() if bill is not None}
    if not known:
        return None
    bases = {arm: _baseline(study, arm, known) for arm in known}
    arms = tuple(_arm(arm, bill, bases[arm], study.ci) for arm, bill in known.items())
    return OnReference(
        host=str(record.get("host", "")),
        utc=str(record.get("utc", "")),
        torch=str(record.get("torch", "")),
        arms=arms,
        sentence=_sentence(record, arms, table),
    )


@dataclass(frozen=True)
class _Bill:
    """One arm: ln seconds by block, and the relative error that the table brings into all of them."""

    logs: Mapping[int, float]
    error: float
    nearest: float
    timed: int
    trials: int


def _bill(members: Iterable[Replicate], table: Sequence[Phase]) -> _Bill | None:
    by_block: dict[int, list[float]] = {}
    errors, nearest = [], 0.0
    for one in members:
        found = billed(one.phases, table) if one.complete else None
        if found is not None:
            by_block.setdefault(one.block, []).append(math.log(found.seconds))
            errors.append(found.error_s / found.seconds)
            nearest = max(nearest, found.nearest)
    if not errors:
        return None
    logs = {block: float(np.mean(values)) for block, values in by_block.items()}
    return _Bill(logs, float(np.mean(errors)), nearest, sum(one.steps for one in table), len(errors))


def _baseline(study: Study, arm: str, known: Mapping[str, _Bill]) -> _Bill | None:
    if study.is_baseline(arm):
        return None
    return next((known[one.arm] for one in study.baseline_of(arm) if one.arm in known), None)


def _arm(arm: str, bill: _Bill, base: _Bill | None, level: float) -> ReferenceArm:
    seconds = math.exp(float(np.mean(list(bill.logs.values()))))
    ratio = _ratio(base, bill, level) if base is not None else Interval(level=level)
    return ReferenceArm(arm, seconds, bill.trials, bill.timed, bill.nearest, ratio)


def _ratio(base: _Bill, bill: _Bill, level: float) -> Interval:
    """exp of the mean log ratio over blocks; squared errors of both tables and of seeds add (Satterthwaite)."""
    d = np.array([base.logs[block] - value for block, value in bill.logs.items() if block in base.logs])
    if not len(d):
        return Interval(level=level)
    of_seeds = float(d.var(ddof=1)) / len(d) if len(d) > 1 else 0.0
    total = of_seeds + base.error**2 + bill.error**2
    df = min(MANY, (len(d) - 1) * (total / of_seeds) ** 2) if of_seeds > 0 else MANY
    return exp(estimate(float(d.mean()), math.sqrt(total), df, len(d), level, "timed steps").interval)


def _sentence(record: Mapping[str, Any], arms: Sequence[ReferenceArm], table: Sequence[Phase]) -> str:
    worst = max(one.nearest for one in arms)
    near = f"; up to {phrases.share(worst)} of an arm's steps were billed as the nearest phase" if worst else ""
    odd = [f"{one.phase} of {one.arm}" for one in out_of_line(table)]
    doubt = f"; more than 20 % off what their sizes predict: {phrases.listing(odd, most=3)}" if odd else ""
    return (
        f"On {record.get('host')} as timed on {str(record.get('utc', ''))[:10]}: steps of each arm by what they do, "
        f"times their median there{near}{doubt}."
    )
