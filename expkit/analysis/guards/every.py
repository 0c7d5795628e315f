"""Every guard, in the order of a report: the one registry. A guard is a function of a few tables; here it gets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from expkit.analysis.budgets import budget_of
from expkit.analysis.guards import clock, convergence, evaluation, evidence, machine, methods, record, schedule, target
from expkit.analysis.guards.light import nothing_done
from expkit.analysis.guards.tables import Tables
from expkit.analysis.model import Guard
from expkit.analysis.time_to_target import Crossing


@dataclass(frozen=True)
class Look:
    """One guard, by the name that it has in a report, and the pitfall of the science sheet that it is for."""

    name: str
    pitfall: str
    at: Callable[[Tables], Guard]
    when: Callable[[Tables], bool] = lambda _: True
    """Where it has nothing to say it is left out."""


def _has_target(t: Tables) -> bool:
    return t.info.value is not None


def _crossings(t: Tables, rule: str) -> list[Crossing]:
    return [t.study.attained.of(r, "first" if rule == "first" else "sustained") for r in t.ended if r.complete]


def _hits(t: Tables) -> Guard:
    longest = max((at for r in t.ended if (at := budget_of(r.arm)[1]) is not None), default=None)
    sides: list[tuple[int, int]] = []
    for shorter in (False, True):
        own = [r for r in t.ended if (budget_of(r.arm)[1] != longest) is shorter]
        found = [t.study.attained.of(r).hit for r in own if r.complete]
        sides.append((sum(found), len(own) if found else 0))  # all failed: nothing about it
    return evaluation.hits(*sides[0], sides[1])


def _first_started(t: Tables) -> str | None:
    return min((r.started_utc for r in t.study.replicates if r.role == "arm" and r.started_utc), default=None)


def _drift(t: Tables) -> Guard:
    baselines = [r for arm, members in t.study.by_arm.items() if t.study.is_baseline(arm) for r in members]
    one_point = len({r.arm for r in baselines}) == 1
    trend = machine.baseline_trend(baselines, t.study.clock) if one_point else None
    return machine.drift(t.study.replicates, trend)


def _schedules(t: Tables) -> Guard:
    stoppers = sorted({name for one in t.recipes.values() for name in one.stoppers})
    return schedule.schedules_ended(schedule.progress(t.done, t.data.series, t.recipes), stoppers, t.budgets())


def _seeds(t: Tables) -> Guard:
    if not t.done:
        return nothing_done("seeds")
    return evidence.seeds({arm: len(t.study.pairs(arm, t.study.clock).blocks) for arm in t.arms}, t.sd)


def _splits(t: Tables) -> Guard:
    splits = {split for one in t.recipes.values() for split in one.splits}
    opened = sum(r.role == "confirm" and r.complete for r in t.data.replicates)
    return evaluation.selection_split(splits, opened, t.confirm_splits)


def _metric(t: Tables) -> Guard:
    changing = {name for one in t.recipes.values() for name in one.changes_targets}
    evaluated = [name for name in t.metrics if name.startswith(t.study.metric.partition("/")[0] + "/")]
    return evaluation.metric_unchanged(t.study.metric, t.study.mode, changing, evaluated, t.by_metric)


def _applied(t: Tables) -> Guard:
    done = {r.arm for r in t.done}
    return methods.methods_effective({arm: idle for arm, idle in t.study.idle.items() if arm in done})


def _scope(t: Tables) -> Guard:
    workloads = {one.workload for one in t.recipes.values() if one.workload}
    return record.scope(workloads, {r.host for r in t.done if r.host})


EVERY: tuple[Look, ...] = (
    Look("target", "B1", lambda t: target.target_before_data(t.info)),
    Look("fixed in advance", "B16",
         lambda t: target.fixed_in_advance(t.named, _first_started(t), t.other_terms)),
    Look("schedules ended", "B2", _schedules, lambda t: bool(t.done)),
    Look("one unit", "B3", lambda t: schedule.one_unit(t.recipes)),
    Look("noise floor", "A17", lambda t: machine.aa_floor(t.floor, t.study.clock), lambda t: bool(t.done)),
    Look("contention", "B5", lambda t: machine.contention(t.study.replicates, t.study.clock)),
    Look("drift", "B6", _drift),
    Look("outliers", "A17", lambda t: machine.outliers(t.study.replicates, t.study.clock), lambda t: bool(t.done)),
    Look("timing", "B5", lambda t: machine.own_timing(t.study.replicates)),
    Look("clocks", "B23", lambda t: clock.clocks_run(t.done, t.data.series)),
    Look("off the clock", "B4", lambda t: clock.off_the_clock(t.beside(clock.UNBILLED))),
    Look("setup", "B18", lambda t: clock.setup(t.beside(clock.SETUP), t.base_setup_s, t.floor.eps)),
    Look("blocks", "A5", lambda t: record.blocks_complete(t.study.replicates)),
    Look("seeds", "B7", _seeds),
    Look("winner", "B8", lambda t: evidence.winner(t.arms, t.log_speed_CS, t.floor.eps, t.confirmed(), t.tries())),
    Look("tuning", "B9", lambda t: evidence.tuning(t.tried(), t.study.baseline)),
    Look("convergence", "B9", convergence.of_tables, lambda t: _has_target(t) and t.info.given == "pilot"),
    Look("direction", "B17", lambda t: record.direction(t.both_ways())),
    Look("failures", "B22", lambda t: record.failures(t.study.replicates)),
    Look("setting", "A5", lambda t: record.one_setting(t.study.replicates)),
    Look("code", "B21", lambda t: record.one_code(t.study.replicates, t.silent)),
    Look("files", "B22", lambda t: record.files(t.study.replicates, t.set_aside, t.plan_unreadable)),
    Look("same seed", "B21", lambda t: record.same_seed(t.doubles())),
    Look("methods applied", "B20", _applied),
    Look("less work", "B14", lambda t: methods.less_work(t.work())),
    Look("overlap", "B19", lambda t: methods.overlap(*t.together_and_singles(), t.floor.eps)),
    Look("metric", "B13", _metric),
    Look("test split", "B12", _splits),
    Look("evaluation points", "B11",
         lambda t: evaluation.evaluation_points(t.points(), _crossings(t, "first"), _crossings(t, "sustained"))),
    Look("evaluation resolution", "B10", lambda t: evaluation.resolution(_crossings(t, "sustained")), _has_target),
    Look("hits", "B15", _hits, _has_target),
    Look("scope", "B24", _scope),
)  # fmt: skip
"""Pitfalls B1 to B24 each have one; a few have more."""


def look(tables: Tables) -> tuple[Guard, ...]:
    """What every guard says of a sweep."""
    return tuple(one.at(tables) for one in EVERY if one.when(tables))
