"""Arms of a sweep in reference system time: each trial's seconds as the reference system would have taken them.

Trials of other hosts, and of other hours, count alike, so arms pair by block whatever they ran on. A16.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from expkit.analysis.estimates import Interval
from expkit.analysis.load import Views, settings, sweep_row
from expkit.analysis.reference_time import scaled_s
from expkit.analysis.replicate import methods_of, split_arm
from expkit.analysis.speedup import paired

_TIMES = """
  SELECT p.arm, p.block, x.{clock} AS seconds, x.reference_s, x.host
  FROM sweep_trials p JOIN _trials x ON p.id = x.id AND p.replicate = x.replicate
  WHERE p.sweep = ? AND p.role IN ('baseline', 'arm', 'repeat') AND x.status = 'complete'
    AND NOT list_has_any(coalesce(x.timing_reasons, []), ['resumed', 'shared'])
  ORDER BY p.arm, p.block, x.replicate"""


@dataclass(frozen=True)
class ArmTime:
    """One arm on the reference system; `speedup` is paired by block, without one for baselines."""

    arm: str
    seconds: float
    """Geometric mean over its trials."""
    trials: int
    hosts: int
    speedup: Interval


def on_reference(con: Views, sweep: str, reference_s: float) -> tuple[ArmTime, ...]:
    """Each arm of a sweep; `reference_s` is the workload's CPU time there. Trials that recorded none are left out.

    UsageError for a sweep that is not there.
    """
    row = sweep_row(con, sweep)
    wanted = settings(con, sweep, row["target_metric"])
    blocks: dict[str, dict[int, list[float]]] = {}
    hosts: dict[str, set[str]] = {}
    for found in con.rows(_TIMES.format(clock=wanted.clock), [sweep]):
        seconds = scaled_s(found["seconds"] or math.nan, found["reference_s"] or (), reference_s)
        if seconds is not None and math.isfinite(seconds) and seconds > 0:
            blocks.setdefault(found["arm"], {}).setdefault(found["block"], []).append(math.log(seconds))
            hosts.setdefault(found["arm"], set()).add(found["host"] or "")
    logs = {arm: {b: float(np.mean(values)) for b, values in of.items()} for arm, of in blocks.items()}
    return tuple(_arm(arm, logs, blocks[arm], len(hosts[arm]), wanted.baseline, wanted.ci) for arm in logs)


def _arm(
    arm: str,
    logs: Mapping[str, Mapping[int, float]],
    trials: Mapping[int, list[float]],
    hosts: int,
    baseline: str,
    level: float,
) -> ArmTime:
    base = next((b for b in logs if methods_of(b) == methods_of(baseline) and split_arm(b)[1] == split_arm(arm)[1]), "")
    both = [block for block in logs[arm] if block in logs.get(base, {})] if base != arm else []
    t0, tc = ([math.exp(of[block]) for block in both] for of in (logs.get(base, {}), logs[arm]))
    every = [value for values in trials.values() for value in values]
    return ArmTime(arm, math.exp(float(np.mean(every))), len(every), hosts, paired(t0, tc, level).ratio)
