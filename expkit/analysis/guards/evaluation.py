"""Guards of evaluation: when, how often, on what data, by which metric, and what became of misses. B10-B13, B15."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval
from expkit.analysis.guards.light import not_checked
from expkit.analysis.model import Guard, Light
from expkit.analysis.other_metrics import Differences, turned
from expkit.analysis.time_to_target import Crossing

RESOLUTION = 0.02
"""A share of the time to target; evaluations that lie closer resolve it well (A3)."""
CONFIRMED = 0.9
"""A share of first crossings that the next evaluation bears out; fewer, and the target lies in the noise."""


def resolution(crossings: Iterable[Crossing]) -> Guard:
    """B10: how finely evaluations resolve the time to target, the median bracket as a share of the time."""
    shares = [(c.bracket[1] - c.bracket[0]) / c.t for c in crossings if c.hit and c.t and c.bracket]
    if not shares:
        return Guard("evaluation resolution", "amber", None, "No trial reached the target: no resolution to speak of.")
    share = statistics.median(shares)
    sentence = f"Time resolution: {phrases.share(share)} of the time to target, interpolated."
    return Guard("evaluation resolution", "green" if share <= RESOLUTION else "amber", share, sentence)


def evaluation_points(
    by_budget: Mapping[str, Sequence[Sequence[float]]], first: Sequence[Crossing], sustained: Sequence[Crossing]
) -> Guard:
    """B11: whether all runs of one budget were looked at equally often, and whether first crossings last.

    `by_budget` has the batches at which each complete run was evaluated; the crossings are those of one run each, by
    both rules. The number is the share of first crossings that the next evaluation confirms.
    """
    runs = [tuple(points) for series in by_budget.values() for points in series]
    if not runs:
        return not_checked("evaluation points", "no complete trial has evaluations of the primary metric")
    uneven = sorted(budget for budget, series in by_budget.items() if len({tuple(points) for points in series}) > 1)
    crossed = [(a, b) for a, b in zip(first, sustained, strict=True) if a.hit]
    held = sum(b.hit and a.bracket == b.bracket for a, b in crossed)
    share = held / len(crossed) if crossed else None
    kept = f"; crossing confirmed by the next evaluation in {held} of {len(crossed)} runs" if crossed else ""
    if uneven:
        where = f" at {phrases.listing(uneven)}" if any(uneven) else ""
        said = f"Runs were not evaluated at the same points{where}: more looks cross a target sooner"
        return Guard("evaluation points", "amber", share, f"{said}{kept}.")
    counts = sorted({len(points) for points in runs})
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    light: Light = "green" if share is None or share >= CONFIRMED else "amber"
    return Guard("evaluation points", light, share, f"All runs were evaluated at the same {span} points{kept}.")


def selection_split(splits: Iterable[str], opened: int = 0, of_confirmed: Iterable[str] = ()) -> Guard:
    """B12: whether the arms were compared on data that selects nothing; `opened` counts confirming trials.

    The number is how many times the test split was looked at by the trials that select.
    """
    names = set(splits)
    once = (f"test used once, by {phrases.count(opened, 'confirming trial')}" if "test" in set(of_confirmed)
            else "test not opened")  # fmt: skip
    if not names:
        return not_checked("test split", "the recipes do not say which split they evaluate on")
    if "test" in names:
        said = "Arms were compared on the test split, so it selects: there is no unseen data left to confirm on."
        return Guard("test split", "amber", 1, said)
    return Guard("test split", "green", 0, f"Selection on {phrases.listing(sorted(names))}; {once}.")


def metric_unchanged(
    metric: str, mode: str, changing: Iterable[str], others: Iterable[str] = (), found: Differences | None = None
) -> Guard:
    """B13: whether the metric means the same in every arm. `changing`: methods that train on other targets.

    A loss of training is what a method changes; an evaluated loss on plain targets is computed alike, but punishes
    methods that train for soft ones. So `found` is what each metric says, and an arm that one calls better and another
    worse is named with both numbers. The number counts the methods.
    """
    methods = sorted(set(changing))
    beside = sorted(set(others) - {metric})
    also = f"; also recorded: {phrases.listing(beside, most=3)}" if beside else "; no second metric is recorded"
    if metric.startswith("train/"):
        return Guard("metric", "amber", len(methods), f"Judged by {metric}, which methods change; evaluate{also}.")
    if not methods:
        return Guard("metric", "green", 0, f"{metric} is evaluated alike in every arm{also}.")
    change = f"{phrases.listing(methods)} {'changes' if len(methods) == 1 else 'change'} the training loss"
    if arms := turned(found or {metric: {}}, metric):
        said = f"{change}, and the verdict hangs on the metric: {_turned(metric, arms)}."
        return Guard("metric", "amber", len(methods), said)
    if mode == "min":
        said = f"{change}, and arms are judged by {metric}, a loss on plain targets{also}."
        return Guard("metric", "amber", len(methods), said)
    return Guard("metric", "green", len(methods), f"{change}; compared on {metric}, evaluated alike{also}.")


def _turned(metric: str, arms: Mapping[str, tuple[str, Interval, Interval]]) -> str:
    """The arm that comes first in numbers, the others by name."""
    (arm, (other, own, its)), *rest = arms.items()
    better, worse = (metric, other) if (own.value or 0.0) > 0 else (other, metric)
    said = f"{arm} is better by {better} ({phrases.difference(own if better == metric else its)})"
    said += f" and worse by {worse} ({phrases.difference(own if worse == metric else its)})"
    return said + (
        f"; so {'is' if len(rest) == 1 else 'are'} {phrases.listing([name for name, _ in rest])}" if rest else ""
    )


def hits(num_hits: int, n: int, shorter: tuple[int, int] = (0, 0)) -> Guard:
    """B15: trials that never reached the target; they are counted as later than their last evaluation.

    `shorter` are hits and trials of the shorter budgets, where there are several: they were not meant to reach it.
    """
    at = " at the longest budget" if shorter[1] else ""
    also = f"; {shorter[0]} of {shorter[1]} at shorter ones did" if shorter[1] else ""
    if n == 0:
        return Guard("hits", "amber", None, "No complete trial to look for the target in.")
    if num_hits == n:
        return Guard("hits", "green", 1, f"All {phrases.count(n, 'trial')}{at} reached the target and kept it{also}.")
    missed = f"{n - num_hits} of {phrases.count(n, 'trial')}{at} never reached the target and kept it{also}"
    return Guard("hits", "amber", num_hits / n, f"{missed}: counted as later than their last evaluation.")
