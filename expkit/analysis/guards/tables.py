"""What the guards look at: one reading of a sweep with what only they ask the store for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from expkit.analysis import recipe, speedup
from expkit.analysis.attainment import first_ended
from expkit.analysis.estimates import Interval
from expkit.analysis.guards.clock import Beside, beside_the_clock, by_blocks
from expkit.analysis.intervals import Array
from expkit.analysis.load import Sweep, Views, git_silent, of_sweep
from expkit.analysis.model import TargetInfo
from expkit.analysis.noise import Floor
from expkit.analysis.other_metrics import Differences, differences
from expkit.analysis.pairs import time_pairs
from expkit.analysis.recipe import Recipe, unit_of
from expkit.analysis.replicate import Replicate, label_of, methods_of, split_arm
from expkit.analysis.study import Study

_METRICS_OF = "SELECT DISTINCT name FROM metrics WHERE id = ? AND replicate = ? AND rank = 0 ORDER BY name"
_CONFIRMED = """
  SELECT DISTINCT x.config FROM sweep_trials p JOIN _trials x ON p.id = x.id AND p.replicate = x.replicate
  WHERE p.sweep = ? AND p.role = 'confirm'"""


@dataclass(frozen=True)
class Tables:
    """A sweep as the guards read it."""

    study: Study
    data: Sweep
    info: TargetInfo
    floor: Floor
    recipes: Mapping[str, Recipe]
    """By arm."""
    named: Sequence[Mapping[str, Any]] = ()
    """The terms of the sweep file each time they changed, oldest first."""
    other_terms: bool = False
    metrics: Sequence[str] = ()
    """Names that one complete trial has recorded."""
    by_metric: Differences = field(default_factory=dict)
    """What each evaluated metric says of quality, where methods train on other targets; else empty."""
    confirm_splits: Sequence[str] = ()
    confirmation: Mapping[str, Any] = field(default_factory=dict)
    """The record of the latest confirmation; empty where nothing was confirmed."""
    set_aside: Sequence[str] = ()
    plan_unreadable: str = ""
    silent: str = ""
    """Why git said nothing of the code."""

    @cached_property
    def done(self) -> list[Replicate]:
        """Complete replicates of the grid."""
        return [r for r in self.study.replicates if r.complete]

    @cached_property
    def arms(self) -> list[str]:
        """Labels without the baselines."""
        return [arm for arm in self.study.by_arm if not self.study.is_baseline(arm)]

    @cached_property
    def log_speed_CS(self) -> Array:
        """ln S of the arms without the baselines, by seed."""
        rows = [i for i, arm in enumerate(self.study.by_arm) if not self.study.is_baseline(arm)]
        return self.study.log_speed_CS[rows]

    @cached_property
    def sd(self) -> float | None:
        """Of a pair's log ratio, root mean square over the arms."""
        rows = [row[np.isfinite(row)] for row in self.log_speed_CS]
        variances = [float(row.var(ddof=1)) for row in rows if len(row) > 1]
        return float(np.sqrt(np.mean(variances))) if variances else None

    @cached_property
    def ended(self) -> list[Replicate]:
        """One replicate a trial, complete where one is."""
        return first_ended(self.study.replicates)

    @cached_property
    def base_setup_s(self) -> float | None:
        """Mean setup and compilation of the baseline."""
        own = [r for arm in self.study.by_arm if self.study.is_baseline(arm) for r in self.study.by_arm[arm]]
        known = [s + (r.clocks.get("compile_s") or 0.0) for r in own
                 if r.complete and (s := r.clocks.get("setup_s")) is not None]  # fmt: skip
        return float(np.mean(known)) if known else None

    def beside(self, parts: Sequence[str]) -> dict[str, Beside]:
        """Seconds beside the train clock, by arm."""
        blocks = {arm: by_blocks(members, parts) for arm, members in self.study.by_arm.items()}
        base = {arm: next((one.arm for one in self.study.baseline_of(arm)), "") for arm in self.arms}
        return {arm: beside_the_clock(blocks[arm], blocks.get(base[arm], {})) for arm in self.arms}

    def work(self) -> dict[str, tuple[Interval, Interval]]:
        """(ratio of backward seconds, ratio of the whole run), by arm."""
        found = {}
        for arm in self.arms:
            work, whole = self.study.pairs(arm, "backward_s"), self.study.pairs(arm, self.study.clock)
            found[arm] = speedup.paired(work.base, work.arm).ratio, speedup.paired(whole.base, whole.arm).ratio
        return found

    def both_ways(self) -> dict[str, tuple[float, float]]:
        """(S, S with arm and baseline exchanged), by arm."""
        found = {}
        for arm in self.arms:
            pairs = self.study.pairs(arm, self.study.clock)
            there, back = speedup.paired(pairs.base, pairs.arm).ratio, speedup.paired(pairs.arm, pairs.base).ratio
            if there.value is not None and back.value is not None:
                found[arm] = there.value, back.value
        return found

    def together_and_singles(self) -> tuple[list[str], list[float], list[float]]:
        """(methods, ln S of all of them together, sum of ln S of each alone), an entry a point and seed that has all.

        Methods of the baseline are in every arm and no part of it.
        """
        own = methods_of(self.study.baseline)
        table = dict(zip(self.study.by_arm, self.study.log_speed_CS, strict=True))
        methods = sorted(set().union(*(methods_of(arm) - own for arm in self.arms)) if self.arms else ())
        together, singles = [], []
        for point in dict.fromkeys(split_arm(arm)[1] for arm in self.arms):
            labels = [label_of(own | {m}, point) for m in methods]
            everything = label_of(own | set(methods), point)
            if methods and everything in table and all(label in table for label in labels):
                rows = np.array([table[label] for label in labels])
                known = np.isfinite(rows).all(axis=0) & np.isfinite(table[everything])
                together += table[everything][known].tolist()
                singles += rows.sum(axis=0)[known].tolist()
        return methods, together, singles

    def doubles(self) -> list[tuple[Array, Array]]:
        """Series of the metric of the first two complete replicates of each trial, of one setting."""
        runs: dict[tuple[str, str], list[Array]] = {}
        for one in self.done:
            series = self.data.series.get((one.id, one.replicate))
            if series is not None:
                runs.setdefault((one.id, one.setting), []).append(series.value)
        return [(found[0], found[1]) for found in runs.values() if len(found) > 1]

    def points(self) -> dict[str, list[list[float]]]:
        """Batches of evaluation of each complete run, by parameter point and budget.

        Where the budget is in seconds or tokens arms do not do the same batches, and their number is what compares.
        """
        found: dict[str, list[list[float]]] = {}
        for one in self.done:
            series = self.data.series.get((one.id, one.replicate))
            if series is not None:
                own = unit_of(self.recipes.get(one.arm, Recipe()).max_duration) in ("sec", "tok")
                places = np.arange(len(series.batch), dtype=float) if own else series.batch
                found.setdefault(one.point, []).append([float(place) for place in places])
        return found

    def tried(self) -> dict[str, int]:
        """Parameter points of each set of methods, of the grid and of tuning."""
        points: dict[str, set[str]] = {}
        for one in self.data.replicates:
            if one.role in ("baseline", "arm", "tune"):
                methods, point = split_arm(one.arm)
                points.setdefault(methods, set()).add(point)
        return {methods: len(found) for methods, found in points.items()}

    def confirmed(self) -> dict[str, Interval]:
        """Speedup of each arm over the baseline in the latest confirmation, on its seeds alone.

        What earlier ones have shown was known when it was begun, and may be why: their seeds are no longer fresh.
        """
        fresh = set(self.confirmation.get("seeds") or ())
        again = [r for r in self.data.replicates if r.role == "confirm" and r.seed in fresh]
        base = [r for r in again if self.study.is_baseline(r.arm)]
        found = {}
        for arm in dict.fromkeys(r.arm for r in again if not self.study.is_baseline(r.arm)):
            own = [b for b in base if b.point == split_arm(arm)[1]]
            pairs = time_pairs([r for r in again if r.arm == arm], own, self.study.clock)
            found[arm] = speedup.paired(pairs.base, pairs.arm, self.study.ci).ratio
        return found

    def tries(self) -> dict[str, int]:
        """How often each arm was confirmed, the latest confirmation included."""
        records = [{one["arm"] for one in self.confirmation.get("arms") or ()}]
        records += [set(former["arms"]) for former in self.confirmation.get("earlier") or ()]
        return dict(Counter(arm for record in records for arm in record))

    def budgets(self) -> list[float]:
        """Scale-schedule ratios that every set of methods ran at."""
        by_set: dict[str, set[float]] = {}
        for arm, one in self.recipes.items():
            by_set.setdefault(split_arm(arm)[0], set()).add(one.ssr)
        return sorted(set.intersection(*by_set.values())) if by_set else []


def tables(con: Views, data: Sweep, study: Study, info: TargetInfo, floor: Floor, *, other_terms: bool) -> Tables:
    """The same with what the store knows beside the trials."""
    some = next((r for r in study.replicates if r.complete and not r.unreadable), None)
    set_aside, plan = of_sweep(con, data)
    recipes = recipe.of_arms(con, data.name)
    metrics = [row["name"] for row in con.rows(_METRICS_OF, [some.id, some.replicate])] if some else []
    label = study.metric.partition("/")[0]
    others = [name for name in metrics if name.startswith(f"{label}/") and name != study.metric]
    changing = any(one.changes_targets for one in recipes.values())
    opened = [recipe.read(json.loads(row["config"] or "{}")) for row in con.rows(_CONFIRMED, [data.name])]
    return Tables(
        study=study,
        data=data,
        info=info,
        floor=floor,
        recipes=recipes,
        named=con.store.sweep_settings(data.name).get("named") or (),
        other_terms=other_terms,
        metrics=metrics,
        by_metric=differences(con, data.name, study, others) if changing and others else {},
        confirm_splits=sorted({split for one in opened for split in one.splits}),
        confirmation=con.store.confirmation(data.name),
        set_aside=set_aside,
        plan_unreadable=plan,
        silent=git_silent(con, study.replicates),
    )
