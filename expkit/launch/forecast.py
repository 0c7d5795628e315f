"""Forecast: the hours that a plan takes, from finished trials or a probe, and the smallest speedup it can detect."""

from __future__ import annotations

import itertools
import math
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from expkit.analysis.power import detectable
from expkit.errors import TrialFailure, UsageError
from expkit.launch.apart import Unanswered, ask
from expkit.launch.drive import Job
from expkit.launch.trials import python_path
from expkit.plan.designs import fraction_of
from expkit.plan.expand import TrialMaker, slots
from expkit.plan.fractions import Fraction, members
from expkit.plan.space import Space
from expkit.plan.trial import Arithmetic
from expkit.spec.axes import BUDGET, OWN
from expkit.spec.dump import dump_recipe
from expkit.spec.sweep import Level, Sweep
from expkit.store.lock import acquire
from expkit.store.records import Status
from expkit.store.store import Store

ASSUMED_SD = 0.04
"""SD of ln time between equal runs where nothing is known: what MLPerf's sets typically have. speedup-science D."""
REFERENCE_S = 0.6
"""The reference workload before and after a trial."""
LOOKED_AT = 400
"""Statuses that are read: enough for a mean, whatever the sweep has."""
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Cost:
    """What a trial costs by its parts, as a probe found."""

    steps: float
    step_s: float
    evaluations: float
    eval_s: float
    setup_s: float

    def replicate_s(self, ratio: float = 1.0) -> float:
        """All of a replicate, at `ratio` of its length."""
        return self.setup_s + ratio * (self.steps * self.step_s + self.evaluations * self.eval_s) + REFERENCE_S


@dataclass(frozen=True)
class Hours:
    """How long what is to be run takes, in hours; a range."""

    low: float
    high: float
    source: str

    def __str__(self) -> str:
        return f"{_span(self.low * 3600, self.high * 3600)}, {self.source}"


@dataclass(frozen=True)
class Detects:
    """The smallest speedups that a design shows with 80 % power; None with one seed, which has no error."""

    method: float | None
    """As the main effect of a method; None where the design is neither a full grid nor a fraction."""
    arm: float | None
    """Of one arm against the baseline."""
    sd: float
    """SD of ln time between equal runs that they rest on."""
    level: float


def from_finished(sweep: Sweep, store: Store, done: Sequence[Job], todo: Sequence[Job]) -> Hours | None:
    """From the middle half of what complete replicates took, each per length of its budget; None without any."""
    rates = []
    for job in _some(done):
        status = store.read_status(job.id12, job.replicate)
        wall_s = status.clocks.get("wall_s") if status is not None and status.state == "complete" else None
        if wall_s:
            rates.append((wall_s, job.cell.trial.recipe.trainer.ssr))
    if not rates:
        return None
    walls = sorted(wall / ratio for wall, ratio in rates)
    low, high = (walls[0], walls[-1]) if len(walls) < 4 else _quartiles(walls)
    length = sum(job.cell.trial.recipe.trainer.ssr for job in todo) / sweep.run.jobs / 3600
    num = "replicate" if len(walls) == 1 else "replicates"
    seconds = sorted(wall for wall, _ in rates)
    took = f"{seconds[0]:.3g} s" if len(seconds) == 1 else f"{seconds[0]:.3g} to {seconds[-1]:.3g} s"
    return Hours(low * length, high * length, f"as {len(walls):,} finished {num} took {took}")


def from_probe(sweep: Sweep, num_replicates: int) -> Hours:
    """From 20 steps of the baseline and of the arm with most methods, while nothing else of expkit runs here."""
    if sweep.recipe.runtime.nproc > 1:
        raise UsageError(f"a probe takes one rank, but runtime.nproc is {sweep.recipe.runtime.nproc}; "
                         "hours are known when the first trial has finished")  # fmt: skip
    ratio = _mean_ratio(sweep)
    with acquire("exclusive"):
        costs = [_probed(sweep, levels) for levels in (sweep.baseline, _all_on(sweep))]
    low, high = sorted(num_replicates * cost.replicate_s(ratio) / sweep.run.jobs / 3600 for cost in costs)
    steps = " and ".join(f"{1000 * cost.step_s:.3g}" for cost in costs)
    return Hours(low, high, f"as 20 steps of the baseline and of all on took {steps} ms each")


def detects(sweep: Sweep, counted: Arithmetic, sd: float) -> Detects:
    """Where ln time of equal runs varies by `sd`, by the pooled error of (arms - 1) points (seeds - 1) df."""
    seeds, level = len(sweep.seeds), sweep.report.ci
    points = max(1, round(counted.blocks / seeds))
    df = (max(2, counted.trials // max(1, counted.blocks)) - 1) * points * (seeds - 1)
    if not df:
        return Detects(None, None, sd, level)
    arm = detectable(sd * math.sqrt(2 / seeds), df, 1 - level)
    balanced = _balanced(sweep, counted)
    main = detectable(2 * sd / math.sqrt(balanced * points * seeds), df, 1 - level) if balanced else None
    return Detects(main, arm, sd, level)


def measured_sd(sweep: Sweep, store: Store, done: Sequence[Job]) -> tuple[float, int] | None:
    """(SD of ln time, pairs): sqrt(sum d^2 / 2 m) over the A/A pairs d = ln r0 / r1; None for fewer than three."""
    repeats = _some([job for job in done if job.cell.role == "repeat"])
    found = []
    for job in repeats:
        clocks = [_time(store.read_status(job.id12, number), sweep.report.clock) for number in (0, job.replicate)]
        if all(clocks):
            found.append(math.log(clocks[0] / clocks[1]))
    return (math.sqrt(sum(d * d for d in found) / 2 / len(found)), len(found)) if len(found) > 2 else None


def _time(status: Status | None, clock: str) -> float:
    """Seconds of a complete replicate with valid times, else 0."""
    return (status.clocks.get(clock) or 0.0) if status and status.state == "complete" and status.timing_valid else 0.0


def _balanced(sweep: Sweep, counted: Arithmetic) -> float | None:
    """Arms of which every main effect is a contrast; None where the design is neither a full grid nor a fraction.

    A level is judged by fewer: as many as would give the error of the method with most levels.
    """
    choices = Space(sweep, sweep.grids[0]).choices
    levels = [len(c) - 1 for c in choices if None in c and len(c) > 1]
    if len(sweep.grids) > 1 or sweep.includes or not levels or any(None not in c and len(c) > 1 for c in choices):
        return None
    if counted.fractions and len(sweep.design.parts) == 1:
        return _of_fraction(fraction_of(choices, sweep.design.parts[0]), levels)
    full = math.prod(num + 1 for num in levels)
    return 2 * full / (max(levels) + 1) if counted.trials == full * counted.blocks else None


def _of_fraction(made: Fraction, levels: Sequence[int]) -> float:
    """4 / sum w^2 of the contrast with the largest error: 2 / sets, spread over the other methods' levels in a set."""
    masks = list(made.sets())[: made.num_sets]
    spread = max(sum(1 / math.prod(levels[j] for j in members(mask) if j != i) for mask in masks)
                 for i in range(made.k))  # fmt: skip
    return made.num_sets**2 / spread


def _mean_ratio(sweep: Sweep) -> float:
    """Mean length of the trials relative to the longest budget's."""
    index = next((i for i, parameter in enumerate(sweep.parameters) if parameter.path == BUDGET), None)
    if index is None:
        return 1.0
    longest = float(sweep.parameters[index].values[sweep.longest[index]]) if sweep.longest[index] != OWN else 1.0
    found = [(float(sweep.parameters[index].values[point[index]]) if point[index] != OWN else longest, weight)
             for grid in sweep.grids for point, weight in grid.axes.projected((index,))]  # fmt: skip
    return sum(ratio * weight for ratio, weight in found) / sum(weight for _, weight in found) / longest


def _all_on(sweep: Sweep) -> tuple[Level, ...]:
    """The arm of the first block with most methods."""
    block = itertools.takewhile(lambda slot: slot.block == 0, slots(sweep))
    return max((slot.arm.levels for slot in block), key=len)


def _probed(sweep: Sweep, levels: Iterable[Level]) -> Cost:
    trial = TrialMaker(sweep).trial(levels, sweep.longest, sweep.seeds[0])
    order = {"recipe": dump_recipe(trial.recipe), "trust": sweep.trust.patterns, "path": python_path(sweep.trust)}
    try:
        found = ask("expkit.launch.probe", order, trial.recipe.runtime.threads, timeout_s=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        took = f"the probe of {trial.arm} took more than {TIMEOUT_S / 60:g} min"
        raise TrialFailure(f"{took}; what trains for longer is not probed", "timeout") from None
    except Unanswered as e:
        raise TrialFailure(f"the probe of {trial.arm} failed: {e}") from None
    return Cost(**found)


def _some(jobs: Sequence[Job]) -> Sequence[Job]:
    return jobs[:: max(1, -(-len(jobs) // LOOKED_AT))]


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    found = statistics.quantiles(values, n=4)
    return found[0], found[2]


def _span(low_s: float, high_s: float) -> str:
    """`2.1 to 2.9 h`, `40 s`."""
    unit, each = next((u, s) for u, s in (("h", 3600.0), ("min", 60.0), ("s", 1.0)) if high_s >= s or u == "s")
    ends = f"{low_s / each:.2g}", f"{high_s / each:.2g}"
    return f"{ends[0]} {unit}" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} {unit}"
