"""A replicate as the estimators and guards see it, and which of its times may be compared."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from expkit.analysis.verdict import Counts
from expkit.store.records import CONTENTION_RATIO

NOT_OWN_WORK = ("resumed", "shared")
"""Reasons that spoil every clock: the trial did not do all its work at one go, or not alone."""
LOST = ("failed", "diverged", "lost", "interrupted")
"""States that end without a result, whether or not it will be tried again."""
_SET_END = re.compile(r" (?![^\[]*\])")
_PARAMETER = re.compile(r" (?=[^\s=\[{]+=)(?![^\[]*\])")
_PLUS = re.compile(r"\+(?![^\[]*\])")


@dataclass(frozen=True)
class Replicate:
    """One row of sweep_trials with what the trials view knows of it; None for whatever is not known yet."""

    id: str
    replicate: int
    arm: str
    role: str
    block: int
    position: int
    state: str
    seed: int | None = None
    cause: str | None = None
    message: str = ""
    attempts: int = 0
    setting: str = ""
    driver: str = ""
    host: str = ""
    device: str = ""
    nproc: int = 1
    threads: int = 1
    code_sha: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Version by module; arms that name other modules have another code_sha by nature, but no other version of one."""
    dirty: bool | None = None
    timing_valid: bool | None = None
    timing_reasons: tuple[str, ...] = ()
    started_utc: str | None = None
    target_hash: str | None = None
    clocks: Mapping[str, float | None] = field(default_factory=dict)
    effective: Mapping[str, bool] = field(default_factory=dict)
    quality: float | None = None
    """The primary metric at the last evaluation."""
    phases: Mapping[str, int] = field(default_factory=dict)
    """Steps by what they did, as `launch.tally` names it; empty where nobody counted."""
    unreadable: bool = False
    """Complete, but a metrics file of it was set aside: what is left of its series is not what it measured."""

    @cached_property  # this and what follows is asked for each of many comparisons
    def complete(self) -> bool:
        """Whether it ended with a result."""
        return self.state == "complete"

    @cached_property
    def session(self) -> tuple[str, str]:
        """Only times of one setting and one driver run are compared."""
        return self.setting, self.driver

    @cached_property
    def point(self) -> str:
        """The parameter point, empty where the sweep has no parameters."""
        return split_arm(self.arm)[1]

    @property
    def methods(self) -> frozenset[str]:
        """The set of the arm, levels and all."""
        return methods_of(self.arm)

    @property
    def single_threaded(self) -> bool:
        """Whether CPU time is the time of one thread on one core, so that it can stand in for the wall clock."""
        return self.nproc == 1 and self.threads == 1 and self.device.startswith("cpu")

    @cached_property
    def wall_over_cpu(self) -> float | None:
        """train_s / cpu_s where one thread on a CPU did the work, so that 1 means undisturbed; else None."""
        train, cpu = self.clocks.get("train_s"), self.clocks.get("cpu_s")
        return train / cpu if self.single_threaded and train and cpu else None

    @cached_property
    def contended(self) -> bool:
        """Whether somebody else had the machine meanwhile."""
        ratio = self.wall_over_cpu
        return "contention" in self.timing_reasons or (ratio is not None and ratio > CONTENTION_RATIO)

    def why_not(self, clock: str) -> str:
        """Why its time on `clock` is not compared, empty where it is.

        `resumed` and `shared` spoil every clock, contention all but CPU time, drift none.
        """
        return self._spoilt or ("contention" if clock != "cpu_s" and self.contended else "")

    @cached_property
    def _spoilt(self) -> str:
        if self.unreadable:
            return "with a metrics file that cannot be read"
        return next((reason for reason in NOT_OWN_WORK if reason in self.timing_reasons), "")

    def time(self, clock: str) -> float | None:
        """Seconds on a clock, None where there are none."""
        value = self.clocks.get(clock)
        return value if value is not None and 0 < value < math.inf else None


def split_arm(label: str) -> tuple[str, str]:
    """`ema+mixup optimizer.sgd.lr=1.0` -> (`ema+mixup`, `optimizer.sgd.lr=1.0`); brackets may hold spaces."""
    parts = _SET_END.split(label, maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


def methods_of(label: str) -> frozenset[str]:
    """`colout[p_row=0.1]+ema` -> {colout[p_row=0.1], ema}; `none` is the empty set."""
    methods = split_arm(label)[0]
    return frozenset() if methods in ("none", "") else frozenset(_PLUS.split(methods))


def label_of(methods: Iterable[str], point: str = "") -> str:
    """The label of an arm; the inverse of `methods_of` and `split_arm`."""
    named = "+".join(sorted(methods)) or "none"
    return f"{named} {point}" if point else named


def parameters_of(label: str) -> dict[str, str]:
    """`... optimizer.sgd.lr=1.0 seed=3` -> {optimizer.sgd.lr: 1.0, seed: 3}, values as the label writes them."""
    point = split_arm(label)[1]
    return dict(part.split("=", 1) for part in _PARAMETER.split(point) if "=" in part)


def level_of(method: str) -> str:
    """The method behind a level: `colout[p_row=0.1]` -> `colout`."""
    return method.split("[", 1)[0]


def sister_levels(methods: Iterable[str]) -> list[frozenset[str]]:
    """Sets of labels that are levels of one method, so that no arm has two of them."""
    by_method: dict[str, set[str]] = {}
    for method in methods:
        by_method.setdefault(level_of(method), set()).add(method)
    return [frozenset(levels) for _, levels in sorted(by_method.items()) if len(levels) > 1]


def counts(replicates: Iterable[Replicate]) -> Counts:
    """Trials, not replicates, by how they ended: a trial is complete as soon as one of its replicates is."""
    states: dict[str, set[str]] = {}
    for one in replicates:
        states.setdefault(one.id, set()).add(one.state)
    ended = [next((s for s in ("complete", "diverged", "failed") if s in found), "") for found in states.values()]
    return Counts(len(ended), ended.count("complete"), ended.count("failed"), ended.count("diverged"))
