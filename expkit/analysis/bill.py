"""What a sweep's claim cost: hours, energy and money, failures and pilots too; and what its tuning bought. A14, A15."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from expkit.analysis import cost, phrases
from expkit.analysis.comparisons import Cost, Tuning
from expkit.analysis.expected_best import curve
from expkit.analysis.load import Key, Rates, Sweep, Views
from expkit.analysis.replicate import Replicate, label_of, methods_of, parameters_of
from expkit.analysis.study import Study
from expkit.spec.axes import BUDGET

POWER = "gpu_power_usage_W"
"""The series that a monitor of the system logs; over several ranks their mean."""
_READINGS = """
  SELECT m.id, m.replicate, m.wall_s, m.value
  FROM metrics m SEMI JOIN (SELECT id, replicate FROM sweep_trials WHERE sweep = ?) p
    ON m.id = p.id AND m.replicate = p.replicate
  WHERE m.name = ? AND m.rank = 0 ORDER BY m.id, m.replicate, m.batch"""


def bill(con: Views, data: Sweep, rates: Rates) -> Cost:
    """Of all replicates of a sweep that have clocks; wall-clock seconds of a rank times ranks are what is paid for."""
    done = [r for r in data.replicates if r.clocks.get("train_s") is not None]
    measured = _energy(con, data, done)
    seconds = {(r.id, r.replicate): _paid_s(r) for r in done}
    energy, source = _sum(measured, seconds, rates)
    priced = rates.per_hour > 0 or (rates.per_kwh > 0 and source != "")
    paid = sum(seconds.values())
    found = Cost(
        replicates=len(done),
        train_s=sum(r.clocks.get("train_s") or 0.0 for r in done),
        cpu_s=sum(r.clocks.get("cpu_s") or 0.0 for r in done),
        wall_s=paid,
        energy_kwh=energy,
        energy_source=source,
        price=cost.price(paid, rates.per_hour, energy or 0.0, rates.per_kwh) if priced else None,
        per_run=_per_run(done, seconds, measured, rates) if priced else (),
    )
    return Cost(**{**vars(found), "sentence": _sentence(found)})


def tuning(study: Study) -> tuple[Tuning, ...]:
    """Of each set of methods that was tried at several parameter points: budgets are no choice and do not count."""
    finals: dict[str, list[float]] = {}
    for arm, row in zip(study.by_arm, study.quality_CS, strict=True):
        if np.isfinite(row).any():
            budget = parameters_of(arm).get(BUDGET)
            point = f"{BUDGET}={budget}" if budget is not None else ""
            finals.setdefault(label_of(methods_of(arm), point), []).append(float(np.nanmean(row)))
    return tuple(
        Tuning(arm, len(values), tuple(curve(values).tolist())) for arm, values in finals.items() if len(values) > 1
    )


def _paid_s(one: Replicate) -> float:
    return (one.clocks.get("wall_s") or one.clocks.get("train_s") or 0.0) * one.nproc


def _energy(con: Views, data: Sweep, done: Sequence[Replicate]) -> dict[Key, float]:
    """Measured kWh by replicate, of those that logged their power."""
    ranks = {(r.id, r.replicate): r.nproc for r in done}
    readings: dict[Key, list[tuple[float, float]]] = {}
    for row in con.rows(_READINGS, [data.name, POWER]):
        readings.setdefault((row["id"], row["replicate"]), []).append((row["value"], row["wall_s"]))
    return {key: cost.energy_kwh(*zip(*found, strict=True)) * ranks[key]
            for key, found in readings.items() if key in ranks and len(found) > 1}  # fmt: skip


def _sum(measured: Mapping[Key, float], seconds: Mapping[Key, float], rates: Rates) -> tuple[float | None, str]:
    if measured and set(measured) == set(seconds):
        return sum(measured.values()), "measured"
    if rates.watts > 0 and seconds:
        modelled = [measured.get(key, cost.modelled_kwh(s, rates.watts)) for key, s in seconds.items()]
        return sum(modelled), "modelled"
    return None, ""


def _per_run(
    done: Sequence[Replicate], seconds: Mapping[Key, float], measured: Mapping[Key, float], rates: Rates
) -> tuple[tuple[str, float], ...]:
    """Mean over an arm's complete trials."""
    found: dict[str, list[float]] = {}
    for one in done:
        if one.complete and one.role in ("baseline", "arm", "repeat"):
            key = one.id, one.replicate
            kwh = measured.get(key, cost.modelled_kwh(seconds[key], rates.watts))
            found.setdefault(one.arm, []).append(cost.price(seconds[key], rates.per_hour, kwh, rates.per_kwh))
    return tuple((arm, float(np.mean(prices))) for arm, prices in found.items())


def _sentence(found: Cost) -> str:
    if not found.replicates:
        return ""
    hours = f"{_hours(found.wall_s)} of wall clock and {_hours(found.cpu_s)} of CPU time"
    energy = (
        f", {phrases.significant(found.energy_kwh)} kWh ({found.energy_source})" if found.energy_kwh is not None else ""
    )
    price = f", {found.price:,.2f} at the rates of the sweep file" if found.price is not None else ""
    runs = phrases.count(found.replicates, "run")
    return f"This claim cost {runs}: {hours}{energy}{price}; failures, repeats and pilots are counted."


def _hours(seconds: float) -> str:
    if seconds < 120:
        return phrases.seconds(seconds)
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.{0 if seconds > 360_000 else 1}f} h"
