"""One reading of a sweep: its replicates in arms, against one baseline, by one metric and one clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from expkit.analysis.attainment import Attained
from expkit.analysis.cells import Cell
from expkit.analysis.estimates import Pooling
from expkit.analysis.intervals import Array, PooledError, error_of, pooling
from expkit.analysis.pairs import Pairs, first_quality, time_pairs
from expkit.analysis.replicate import Replicate, label_of, level_of, methods_of, split_arm

COMPARED = ("baseline", "arm", "repeat")
"""Roles of the grid; pilots, tuning and confirmation are told apart."""


@dataclass(frozen=True)
class Study:
    """What every estimate of a report is made from."""

    replicates: tuple[Replicate, ...]
    """Of the grid only."""
    metric: str
    mode: Literal["max", "min"]
    clock: str
    other_clock: str
    ci: float
    delta: float
    baseline: str
    """Label of the baseline's set, without parameters."""
    attained: Attained
    orders: tuple[tuple[str, ...], ...] = ()
    """Of switching on, where the design sampled them."""

    @cached_property
    def by_arm(self) -> dict[str, list[Replicate]]:
        """Replicates of each arm; the baselines first, then by number of methods and label."""
        groups: dict[str, list[Replicate]] = {}
        for one in self.replicates:
            groups.setdefault(one.arm, []).append(one)
        return dict(sorted(groups.items(), key=lambda kv: (not self.is_baseline(kv[0]), len(methods_of(kv[0])), kv[0])))

    def is_baseline(self, arm: str) -> bool:
        """Whether an arm is the baseline of its parameter point."""
        return methods_of(arm) == methods_of(self.baseline)

    def baseline_of(self, arm: str) -> list[Replicate]:
        """Replicates of the baseline at the arm's parameter point; empty where there are none."""
        return self.by_arm.get(label_of(methods_of(self.baseline), split_arm(arm)[1]), [])

    def pairs(self, arm: str, clock: str) -> Pairs:
        """Times of the baseline and of the arm over the whole run."""
        if (arm, clock) not in self._pairs:
            self._pairs[arm, clock] = time_pairs(self.by_arm[arm], self.baseline_of(arm), clock)
        return self._pairs[arm, clock]

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], Pairs]:
        return {}

    @cached_property
    def idle(self) -> dict[str, frozenset[str]]:
        """Methods of each arm that found nothing to do in any of its complete replicates."""
        return {arm: idle_methods(arm, members) for arm, members in self.by_arm.items()}

    def effective(self, arm: str) -> frozenset[str]:
        """The arm's methods that did something, or of which nothing is known."""
        return methods_of(arm) - self.idle.get(arm, frozenset())

    @cached_property
    def cells(self) -> list[Cell]:
        """The arms as (methods, parameter point), in the order of `by_arm`: the rows of the tables below."""
        return [(methods_of(arm), split_arm(arm)[1]) for arm in self.by_arm]

    @cached_property
    def seeds(self) -> list[int]:
        """Columns of the tables below."""
        return sorted({r.seed for r in self.replicates if r.seed is not None})

    @cached_property
    def log_speed_CS(self) -> Array:
        """ln T_0 - ln T_c of each arm and seed on the headline clock; NaN where there is no pair."""
        return self._table({arm: self.pairs(arm, self.clock).log_speedups() for arm in self.by_arm})

    @cached_property
    def quality_CS(self) -> Array:
        """Final quality of each arm and seed, sign turned for a metric to minimise so that more is better."""
        sign = 1.0 if self.mode == "max" else -1.0
        return sign * self._table({arm: first_quality(members) for arm, members in self.by_arm.items()})

    @cached_property
    def time_error(self) -> PooledError | None:
        """The pooled within-block error of log-time, None where it must not be pooled."""
        return error_of(self.pooling)

    @cached_property
    def pooling(self) -> Pooling:
        """Whether the within-block error of log-time may be pooled over all arms, and why not."""
        return pooling(self.log_speed_CS, [point for _, point in self.cells])

    def _table(self, by_arm: Mapping[str, Mapping[int, float]]) -> Array:
        column = {seed: i for i, seed in enumerate(self.seeds)}
        table = np.full((len(by_arm), len(column)), np.nan)
        for row, (arm, by_block) in enumerate(by_arm.items()):
            seed_of = {r.block: r.seed for r in self.by_arm[arm]}
            for block, value in by_block.items():
                seed = seed_of[block]
                if seed is not None:
                    table[row, column[seed]] = value
        return table


def idle_methods(arm: str, replicates: Sequence[Replicate]) -> frozenset[str]:
    """Methods of an arm that every complete replicate which knows says did nothing."""
    idle = set()
    for method in methods_of(arm):
        known = [r.effective[level_of(method)] for r in replicates if r.complete and level_of(method) in r.effective]
        if known and not any(known):
            idle.add(method)
    return frozenset(idle)
