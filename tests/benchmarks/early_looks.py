"""What looking early costs: sweeps without any effect, read after some of their seeds; Markdown on stdout.

    OMP_NUM_THREADS=1 python tests/benchmarks/early_looks.py [--experiments 100000] > docs/early_looks.md

Bars: with levels of alpha spending a sweep without effect is called one with effect in at most 5.3 %, and an interval
that ended a sweep because it was narrow enough covers at least 94.7 %. Exit code 1 where one does not hold. About 15 s.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from expkit.analysis.intervals import t_quantile
from expkit.analysis.looks import Spending, looks

Array = NDArray[np.float64]
Levels = Mapping[int, float]
"""Number of pairs at a look -> level of the interval there."""
ALPHA, AT_MOST, AT_LEAST = 0.05, 0.053, 0.947
SPENDINGS: dict[str, Spending] = {"O'Brien-Fleming type": "obrien_fleming", "Pocock type": "pocock"}
PLANS = ((5, 7, 10), (3, 5, 10), tuple(range(4, 11)))
NARROW = (0.5, 1.0)
"""Half-widths, in SDs of a pair's log ratio, at which a sweep has seen enough."""


@dataclass(frozen=True)
class Row:
    """A way of looking, and how often it errs."""

    looks: str
    how: str
    errs: float
    num_pairs: float
    """Mean number of pairs at which it stopped."""
    barred: bool


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=100_000)
    experiments = parser.parse_args().experiments
    values = np.random.default_rng(5).standard_normal((experiments, 40))
    resolved = [*_peeking(values), *(row for n in PLANS for row in _planned(values, n))]
    narrow = [row for half_width in NARROW for row in _until_narrow(values, half_width)]
    print("\n".join(_page(experiments, resolved, narrow)))
    missed = [f"{r.looks}, {r.how}: {100 * r.errs:.2f} %" for r in resolved if r.barred and r.errs > AT_MOST]
    missed += [f"{r.looks}, {r.how}: {100 * r.errs:.2f} %" for r in narrow if r.barred and r.errs > 1 - AT_LEAST]
    print("\n".join(f"missed: {what}" for what in missed) or "All bars are met.")
    return bool(missed)


def _peeking(values: Array) -> Iterator[Row]:
    """A plain test after every pair, from the fourth on."""
    for alpha in (0.05, 0.01):
        for last in (10, 20, 40):
            plain = dict.fromkeys(range(4, last + 1), 1 - alpha)
            yield _until_resolved(values, plain, f"after every pair, 4 to {last}", f"plain p < {alpha:g}")


def _planned(values: Array, n: tuple[int, ...]) -> Iterator[Row]:
    name = ", ".join(map(str, n)) if len(n) < 4 else f"{n[0]} to {n[-1]}, each"
    yield _until_resolved(values, dict.fromkeys(n, 1 - ALPHA), name, f"plain p < {ALPHA:g}")
    for how, spending in SPENDINGS.items():
        yield _until_resolved(values, _levels(n, spending), name, how, barred=True)


def _levels(n: tuple[int, ...], spending: Spending) -> Levels:
    plan = looks(n, ALPHA, spending)
    return {k: plan.level(k) for k in n}


def _until_resolved(values: Array, levels: Levels, name: str, how: str, *, barred: bool = False) -> Row:
    """Stop as soon as the interval leaves out no effect, which is an error here."""
    stopped = np.full(len(values), max(levels))
    errs = np.zeros(len(values), dtype=bool)
    for n, level in levels.items():
        mean, error = _mean_and_error(values, n)
        crossed = ~errs & (2 * stdtr(n - 1, -np.abs(mean) / error) < 1 - level)
        stopped[crossed] = n
        errs |= crossed
    return Row(name, how, float(errs.mean()), float(stopped.mean()), barred)


def _until_narrow(values: Array, half_width: float) -> Iterator[Row]:
    """Stop as soon as the interval is narrow enough, or all pairs are in; it errs where it leaves out the truth."""
    n = PLANS[0]
    ways = {"plain 95 %": dict.fromkeys(n, 1 - ALPHA)} | {how: _levels(n, s) for how, s in SPENDINGS.items()}
    for how, levels in ways.items():
        going_on, errs, pairs = np.ones(len(values), dtype=bool), 0, 0
        for k, level in levels.items():
            mean, error = _mean_and_error(values, k)
            half = t_quantile(level, k - 1) * error
            ends = going_on & ((half <= half_width) | (k == n[-1]))
            errs += int((ends & (np.abs(mean) > half)).sum())
            pairs += k * int(ends.sum())
            going_on &= ~ends
        name = f"5, 7, 10 until +- {half_width:g} SD"
        yield Row(name, how, errs / len(values), pairs / len(values), how in SPENDINGS)


def _mean_and_error(values: Array, n: int) -> tuple[Array, Array]:
    return values[:, :n].mean(axis=1), values[:, :n].std(axis=1, ddof=1) / np.sqrt(n)


def _page(experiments: int, resolved: list[Row], narrow: list[Row]) -> Iterator[str]:
    yield from (
        "# What looking early costs",
        "",
        f"{experiments:,} simulated sweeps a row in which the arm is no faster; made by",
        "`OMP_NUM_THREADS=1 python tests/benchmarks/early_looks.py > docs/early_looks.md`.",
        "",
        "A sweep that stops as soon as its effect is resolved, and how often there was none:",
        "",
        *_table(resolved, "false positives"),
        "A sweep that stops as soon as its interval is narrow enough, and how often that leaves out the truth:",
        "",
        *_table(narrow, "leaves out the truth"),
    )


def _table(rows: list[Row], errs: str) -> Iterator[str]:
    yield f"| looks, in pairs | levels | {errs} | pairs on average |"
    yield "|---|---|---|---|"
    for row in rows:
        yield f"| {row.looks} | {row.how} | {100 * row.errs:.2f} % | {row.num_pairs:.1f} |"
    yield ""


if __name__ == "__main__":
    sys.exit(main())
