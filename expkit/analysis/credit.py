"""What each method does to time and quality, alone, with the others and on average, as the report's effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.contributions import Credit, Joint, Part
from expkit.analysis.effects import MethodEffect, method_effects
from expkit.analysis.estimates import Interval
from expkit.analysis.fraction import Partial
from expkit.analysis.intervals import Array, excludes, exp
from expkit.analysis.linear import Estimate
from expkit.analysis.model import Effect
from expkit.analysis.multiplicity import benjamini_hochberg
from expkit.analysis.noise import Floor
from expkit.analysis.replicate import sister_levels
from expkit.analysis.shares import Name, Shares, Table, shares
from expkit.analysis.study import Study
from expkit.analysis.together import together


class Axis:
    """Time or quality: main effects, shares of credit, and q values over all of them."""

    def __init__(self, study: Study, values_CS: Array, ratio: bool) -> None:
        """`ratio`: whether values are log-times, told as factors."""
        idle = [study.idle[arm] for arm in study.by_arm]
        sisters = sister_levels({m for on, _ in study.cells for m in on})
        self._told = exp if ratio else lambda interval: interval
        self.table = Table.of(study.cells, values_CS, idle, study.ci, study.orders)
        self.shares: Shares = shares(self.table)
        found = method_effects(study.cells, values_CS, sisters, idle, study.ci)
        self.main: Mapping[str, MethodEffect] = {e.method: self._with_margin(e) for e in found}
        self._q = _q({(m,): e.estimate for m, e in self.main.items()} | dict(self.shares.interactions))

    def told(self, one: Estimate | None) -> Interval:
        """A contrast as the report has it: of time a factor, of quality a difference."""
        return Interval(level=self.table.level) if one is None else self._told(one.interval)

    def part(self, method: str) -> Part:
        """One method's part by every reading."""
        s, main = self.shares, self.main.get(method)
        return Part(
            self.told(s.shapley.get(method)),
            self.told(s.add_one_in.get(method)),
            self.told(s.leave_one_out.get(method)),
            s.variance.get((method,)),
            None if main is None else main.estimate.p,
            self._q.get((method,)),
        )

    def joint(self, methods: Name) -> Joint:
        """What several methods do beyond themselves."""
        s, own = self.shares, self.shares.interactions.get(methods)
        return Joint(
            self.told(own),
            self.told(s.dividends.get(methods)),
            self.told(s.shapley_interactions.get(methods)),
            s.variance.get(methods),
            None if own is None else own.p,
            self._q.get(methods),
        )

    def _with_margin(self, effect: MethodEffect) -> MethodEffect:
        """With one seed, Lenth's margin in place of an interval."""
        value, margin = effect.estimate.interval.value, self.shares.lenth
        return effect if margin is None or value is None else replace(effect, estimate=margin.of(value))


def credited(study: Study, floor: Floor) -> tuple[tuple[Effect, ...], Credit]:
    """One row a method, or a level of one, that some arm has and some arm lacks; and what the rows rest on."""
    time, quality = Axis(study, study.log_speed_CS, True), Axis(study, study.quality_CS, False)
    part = Partial.of(time.table.cells, time.table.values_CS)
    every = Partial.of(study.cells, study.log_speed_CS)  # main effects are also of arms in which another did nothing
    methods = sorted(set(time.main) | set(quality.main))
    effects = tuple(_effect(study, method, time, quality, every, floor) for method in methods)
    return effects, together(study, time, quality, part)


def _q(found: Mapping[Name, Estimate]) -> dict[Name, float | None]:
    """Benjamini and Hochberg over main effects and interactions of one axis."""
    q = benjamini_hochberg([math.nan if one.p is None else one.p for one in found.values()])
    return {name: float(v) if math.isfinite(v) else None for name, v in zip(found, q, strict=True)}


def _effect(study: Study, method: str, time: Axis, quality: Axis, part: Partial | None, floor: Floor) -> Effect:
    nothing = MethodEffect(method, Estimate(Interval(level=study.ci)), 0, 0)
    of_time, of_quality = time.main.get(method, nothing), quality.main.get(method, nothing)
    known = max(of_time, of_quality, key=lambda e: e.planned)
    part_time, part_quality = time.part(method), quality.part(method)
    aliased = (
        part.aliases_of([method], _idle(study)) if part is not None and known.contrast and part.has(method) else ()
    )
    return Effect(
        method=method,
        time=exp(of_time.estimate.interval),
        quality=of_quality.estimate.interval,
        resolved_time=excludes(of_time.estimate.interval),
        resolved_quality=excludes(of_quality.estimate.interval),
        sentence=_sentence(study, of_time, of_quality, part_time, aliased, floor),
        shapley_time=part_time.shapley,
        shapley_quality=part_quality.shapley,
        contexts=of_time.pairs,
        part_time=part_time,
        part_quality=part_quality,
        aliases=aliased,
        contrast=known.contrast,
    )


def _idle(study: Study) -> frozenset[str]:
    """Methods that did nothing in any arm that has them."""
    cells = [(on, study.idle[arm]) for arm, (on, _) in zip(study.by_arm, study.cells, strict=True)]
    did = frozenset[str]().union(*(on - idle for on, idle in cells))
    return frozenset[str]().union(*(on for on, _ in cells)) - did


def _sentence(
    study: Study, time: MethodEffect, quality: MethodEffect, part: Part, aliased: Sequence[str], floor: Floor
) -> str:
    effect, worth = time.estimate.interval, quality.estimate.interval
    if effect.value is None and worth.value is None:
        return f"{time.method}: no pair of arms has ended yet."
    over = f"as a contrast of {phrases.count(time.pairs, 'arm')}" if time.contrast else (
        f"averaged over {time.pairs} of {phrases.count(time.planned, 'context')}")  # fmt: skip
    found = (
        f"{time.method}: {phrases.factor(exp(effect))} {phrases.on_clock(study.clock)}{_beyond(effect, floor)} and "
        f"{study.metric} {phrases.difference(worth)}, {over}."
    )
    return f"{found}{_range(part)}{_in_one_number(aliased)}"


def _beyond(effect: Interval, floor: Floor) -> str:
    if effect.value is None or floor.eps is None or not excludes(effect):
        return "" if effect.value is None or effect.lo is None else ", not resolved" if not excludes(effect) else ""
    return " (below the noise floor)" if abs(effect.value) <= floor.eps else ""


def _range(part: Part) -> str:
    """How far the credit in time depends on what else is on: that is the interaction message."""
    alone, last, whole = part.add_one_in.value, part.leave_one_out.value, part.shapley.value
    if alone is None or last is None:
        return ""
    credit = f", its part of the whole {phrases.times(whole)}" if whole is not None else ""
    return f" Alone {phrases.times(alone)}, on top of all others {phrases.times(last)}{credit}."


def _in_one_number(aliased: Sequence[str]) -> str:
    return f" In one number with {phrases.listing(aliased)}." if aliased else ""


def strongest(found: tuple[Effect, ...], floor: Floor) -> tuple[Effect | None, Effect | None]:
    """The resolved effect on time beyond the noise floor, and the resolved one on quality, that are largest."""
    eps = floor.eps or 0.0
    time = [e for e in found if e.resolved_time and e.time.value and abs(math.log(e.time.value)) > eps]
    quality = [e for e in found if e.resolved_quality and e.quality.value is not None]
    return (
        max(time, key=lambda e: abs(np.log(e.time.value or 1.0)), default=None),
        max(quality, key=lambda e: abs(e.quality.value or 0.0), default=None),
    )
