"""What it costs: money, energy, and the bill of the claim itself. A15."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from expkit.errors import UsageError

JOULES_PER_KWH = 3.6e6


def energy_kwh(power_w: ArrayLike, seconds: ArrayLike) -> float:
    """sum_i P_i dt_i / 3.6e6 by the trapezoid rule, power in watts at moments in seconds, both (m,), in order.

    Readings that are not finite are left out; fewer than two give 0. UsageError for series of unequal length.
    """
    p, t = np.asarray(power_w, dtype=float), np.asarray(seconds, dtype=float)
    if p.shape != t.shape or p.ndim != 1:
        raise UsageError(f"power and its moments must be two series of one length, but got {p.shape} and {t.shape}")
    there = np.isfinite(p) & np.isfinite(t)
    return float(np.trapezoid(p[there], t[there])) / JOULES_PER_KWH if there.sum() > 1 else 0.0


def modelled_kwh(seconds: float, watts: float, utilisation: float = 1.0) -> float:
    """Thermal design power times utilisation times hours: an estimate, to be called `modelled`."""
    return seconds * watts * utilisation / JOULES_PER_KWH


def price(seconds: float, per_hour: float = 0.0, kwh: float = 0.0, per_kwh: float = 0.0) -> float:
    """hours * rate + kWh * tariff, in the currency of both; DAWNBench has the first part alone."""
    return seconds / 3600 * per_hour + kwh * per_kwh


def price_per_percent(price_of_claim: float, speedup: float) -> float | None:
    """What finding out cost for each percent of time that it saves; None where it saves none."""
    saved = 100 * (1 - 1 / speedup) if speedup > 0 else 0.0
    return price_of_claim / saved if saved > 0 else None


def runs_to_break_even(once_s: float, base_s: float, arm_s: float) -> int | None:
    """Runs after which a one-off preparation of so many seconds is paid back; None where a run saves nothing."""
    return max(0, math.ceil(once_s / (base_s - arm_s))) if base_s > arm_s else None
