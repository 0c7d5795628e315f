"""What each method does to time and quality, as the report's effects."""

from __future__ import annotations

import math

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.effects import MethodEffect, contrast, full_grid, method_effects, shapley_weights
from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, excludes, exp
from expkit.analysis.model import Effect
from expkit.analysis.noise import Floor
from expkit.analysis.replicate import sister_levels
from expkit.analysis.study import Study


def effects(study: Study, floor: Floor) -> tuple[Effect, ...]:
    """One row a method, or a level of one, that some arm has and some arm lacks."""
    cells, idle = study.cells, [study.idle[arm] for arm in study.by_arm]
    sisters = sister_levels({m for on, _ in cells for m in on})
    time = {e.method: e for e in method_effects(cells, study.log_speed_CS, sisters, idle, study.ci)}
    quality = {e.method: e for e in method_effects(cells, study.quality_CS, sisters, idle, study.ci)}
    shapley_time, shapley_quality = _shapley(study, study.log_speed_CS), _shapley(study, study.quality_CS)
    return tuple(_effect(study, time[m], quality[m], shapley_time.get(m), shapley_quality.get(m), floor) for m in time)


def _shapley(study: Study, values_CS: Array) -> dict[str, Interval]:
    """Exact, per seed, on a full grid in which every method did something; empty elsewhere. A8."""
    grid = full_grid(study.cells)
    if grid is None or any(study.idle.values()):
        return {}
    methods, order = grid
    return {
        m: contrast(w, values_CS[order], study.ci) for m, w in zip(methods, shapley_weights(len(methods)), strict=True)
    }


def _effect(
    study: Study,
    time: MethodEffect,
    quality: MethodEffect,
    shapley_time: Interval | None,
    shapley_quality: Interval | None,
    floor: Floor,
) -> Effect:
    none = Interval(level=study.ci)
    ratio = exp(time.effect)
    return Effect(
        method=time.method,
        time=ratio,
        quality=quality.effect,
        resolved_time=excludes(time.effect),
        resolved_quality=excludes(quality.effect),
        sentence=_sentence(study, time, quality, floor),
        shapley_time=none if shapley_time is None else exp(shapley_time),
        shapley_quality=shapley_quality or none,
        contexts=time.pairs,
    )


def _sentence(study: Study, time: MethodEffect, quality: MethodEffect, floor: Floor) -> str:
    if time.effect.value is None and quality.effect.value is None:
        return f"{time.method}: no pair of arms has ended yet."
    contexts = f"{time.pairs} of {phrases.count(time.planned, 'context')}"
    beyond = _beyond(time.effect, floor)
    return (
        f"{time.method}: {phrases.factor(exp(time.effect))} {phrases.on_clock(study.clock)}{beyond} and "
        f"{study.metric} {phrases.difference(quality.effect)}, averaged over {contexts}."
    )


def _beyond(effect: Interval, floor: Floor) -> str:
    if effect.value is None or floor.eps is None or not excludes(effect):
        return "" if effect.value is None or effect.lo is None else ", not resolved" if not excludes(effect) else ""
    return " (below the noise floor)" if abs(effect.value) <= floor.eps else ""


def strongest(found: tuple[Effect, ...], floor: Floor) -> tuple[Effect | None, Effect | None]:
    """The resolved effect on time beyond the noise floor, and the resolved one on quality, that are largest."""
    eps = floor.eps or 0.0
    time = [e for e in found if e.resolved_time and e.time.value and abs(math.log(e.time.value)) > eps]
    quality = [e for e in found if e.resolved_quality and e.quality.value is not None]
    return (
        max(time, key=lambda e: abs(np.log(e.time.value or 1.0)), default=None),
        max(quality, key=lambda e: abs(e.quality.value or 0.0), default=None),
    )
