"""How often each interval of a report holds the true speedup: simulated sweeps, a table in Markdown on stdout.

    OMP_NUM_THREADS=1 python tests/benchmarks/interval_coverage.py [--experiments 5000] > docs/coverage.md

Every number comes from the functions that make the report. Bars: an interval of nominal 95 % covers at least 93.5 %,
clean, with outliers and with misses, and is on clean data at most 1.3 times as wide as the paired t interval. Exit code
1 where one does not hold. About 70 s of CPU time, over all processors.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from expkit.analysis import robust, speedup
from expkit.analysis.censored import tobit_speedup
from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import pooled_error
from expkit.analysis.survival import Times

Array = NDArray[np.float64]
TRUE, SEEDS, ARMS = 1.10, (3, 5, 10), 8
SPREAD, RHO = 0.05, 0.3
"""SD of a trial's log time, and how far arms with one seed go together; measured sweeps had 0.07 to 0.53."""
OUTLIERS, SLOWER = 0.10, 1.3
"""Share of trials that something else on the machine slows down, and by how much."""
SPREAD_TO_TARGET, CENSORED = 0.15, (0.2, 0.4)
COVERS, AS_WIDE = 0.935, 1.3


@dataclass(frozen=True)
class Case:
    """One kind of sweep, simulated many times."""

    data: str
    n: int
    censored: float = 0.0

    def rows(self, experiments: int) -> list[Row]:
        """What each estimator made of it."""
        rng = np.random.default_rng([self.n, len(self.data), round(100 * self.censored)])
        if self.censored:
            return _censored(self, rng, experiments)
        log_times = _log_times(rng, experiments, self.n, outliers=self.data == "outliers")
        methods: dict[str, Callable[[Array], Interval]] = {
            "paired t": lambda y: speedup.paired(*np.exp(y[:2])).ratio,
            "pooled t, where it may be": lambda y: speedup.paired(*np.exp(y[:2]), error=pooled_error(y[0] - y)).ratio,
            "Welch, unpaired": lambda y: speedup.welch(*np.exp(y[:2])).ratio,
            "Fieller, ratio of means": lambda y: speedup.ratio_of_means(*np.exp(y[:2])),
            "Hodges-Lehmann, exact": lambda y: robust.hodges_lehmann(y[0] - y[1]),
        }
        return [_row(self, name, map(method, log_times)) for name, method in methods.items()]


@dataclass(frozen=True)
class Row:
    """An estimator over all experiments of a case; None where it never gave such a thing."""

    case: Case
    method: str
    coverage: float | None
    width: float | None
    """Mean of ln hi - ln lo."""
    bias: float | None
    """Of the mean log speedup, as a factor less 1."""
    refused: float
    """Share of experiments without an interval."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=5000)
    experiments = parser.parse_args().experiments
    cases = [Case("censored", n, share) for share in CENSORED for n in SEEDS]  # the slow ones first
    cases += [Case(data, n) for data in ("clean", "outliers") for n in SEEDS]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        rows = [row for found in pool.map(partial(Case.rows, experiments=experiments), cases) for row in found]
    rows.sort(key=lambda row: (["clean", "outliers", "censored"].index(row.case.data), row.case.censored, row.case.n))
    missed = [what for row in rows for what in _missed(row, _unit(rows, row.case.n))]
    print("\n".join([*_head(experiments), *(_line(row, _unit(rows, row.case.n)) for row in rows), ""]))
    print("\n".join(f"missed: {what}" for what in missed) or "All bars are met.")
    return bool(missed)


def _log_times(rng: np.random.Generator, experiments: int, n: int, *, outliers: bool) -> Array:
    """ln T of arms by seeds, (experiments, ARMS, n); the first arm is the baseline, the second faster than all."""
    block = rng.normal(0, SPREAD * math.sqrt(RHO), (experiments, 1, n))
    found = block + rng.normal(0, SPREAD * math.sqrt(1 - RHO), (experiments, ARMS, n))
    found[:, 1] -= math.log(TRUE)
    return found + math.log(SLOWER) * (rng.random(found.shape) < OUTLIERS) if outliers else found


def _censored(case: Case, rng: np.random.Generator, experiments: int) -> list[Row]:
    """Two sides of n trials that are cut off where a share of the baseline's has not come yet."""
    times = np.exp(rng.normal(0, SPREAD_TO_TARGET, (experiments, 2, case.n)))
    times[:, 1] /= TRUE
    horizon = math.exp(SPREAD_TO_TARGET * _normal_quantile(1 - case.censored))
    sides = [[Times.of(np.minimum(t, horizon), t > horizon) for t in both] for both in times]
    return [
        _row(case, "Tobit, likelihood ratio", (tobit_speedup(*both) for both in sides)),
        _row(case, "(misses dropped)",
             (speedup.welch(*(s.seconds[s.late == 0] for s in both)).ratio for both in sides)),
        _row(case, "(misses scored twice the budget)",
             (speedup.welch(*(s.seconds * (1 + s.late) for s in both)).ratio for both in sides)),
    ]  # fmt: skip


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def _row(case: Case, method: str, intervals: Iterable[Interval]) -> Row:
    found = list(intervals)
    logs = [(math.log(max(i.lo, 1e-300)), math.log(i.hi)) for i in found if i.lo is not None and i.hi is not None]
    values = [math.log(i.value) for i in found if i.value is not None]
    covered = [lo <= math.log(TRUE) <= hi for lo, hi in logs]
    return Row(
        case,
        method,
        float(np.mean(covered)) if covered else None,
        float(np.mean([hi - lo for lo, hi in logs])) if logs else None,
        math.exp(float(np.mean(values)) - math.log(TRUE)) - 1 if values else None,
        1 - len(logs) / len(found),
    )


def _unit(rows: Sequence[Row], n: int) -> float:
    """Width of the paired t interval on clean data."""
    return next(r.width or math.nan for r in rows if (r.case.data, r.case.n, r.method) == ("clean", n, "paired t"))


def _missed(row: Row, unit: float) -> Iterator[str]:
    if row.method.startswith("("):
        return  # what is not done here, for comparison
    where = f"{row.method}, n = {row.case.n}, {_data(row.case)}"
    if row.coverage is not None and row.coverage < COVERS:
        yield f"{where}: covers {100 * row.coverage:.1f} %, less than {100 * COVERS:g} %"
    if row.case.data == "clean" and row.width is not None and row.width > AS_WIDE * unit:
        yield f"{where}: {row.width / unit:.2f} times as wide as the paired t interval, more than {AS_WIDE:g}"


def _head(experiments: int) -> list[str]:
    return [
        "# How often intervals hold the truth",
        "",
        f"{experiments:,} simulated sweeps a row, true speedup {TRUE:g}, nominal level 95 %. Made by",
        "`OMP_NUM_THREADS=1 python tests/benchmarks/interval_coverage.py > docs/coverage.md`.",
        "",
        f"Log times are normal with SD {SPREAD:g} and correlation {RHO:g} within a seed; with outliers",
        f"{100 * OUTLIERS:g} % of all trials take {SLOWER:g} times as long. Times to a target have SD",
        f"{SPREAD_TO_TARGET:g}, and trials end where so many of the baseline's have not come. Width: mean of",
        "ln hi - ln lo over that of the paired t interval on clean data. Refused: share without an interval; bias and",
        "coverage are over the others. Rows in parentheses are what expkit does not do.",
        "",
        "| data | n | interval | coverage | width | bias | refused |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip


def _line(row: Row, unit: float) -> str:
    width = "–" if row.width is None or row.case.censored else f"{row.width / unit:.2f}"
    cells = (_data(row.case), row.case.n, row.method, _percent(row.coverage), width, _percent(row.bias, "+"),
             _percent(row.refused))  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def _data(case: Case) -> str:
    return f"{100 * case.censored:g} % of baseline missed" if case.censored else case.data


def _percent(share: float | None, sign: str = "") -> str:
    return "–" if share is None else f"{100 * share:{sign}.1f} %"


if __name__ == "__main__":
    sys.exit(main())
