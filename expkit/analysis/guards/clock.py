"""Guards of the clock: what it did not bill, and whether it ran as clocks do. B4, B18, B23."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval
from expkit.analysis.guards.light import not_checked
from expkit.analysis.intervals import Array, t_interval
from expkit.analysis.load import Evaluations, Key
from expkit.analysis.model import Guard, Light
from expkit.analysis.pairs import by_block
from expkit.analysis.replicate import Replicate

NOTABLE = 0.02
"""A share of the train clock; less than that beside it is no news. A1 (v)."""
UNBILLED = ("callbacks_s", "eval_s")
SETUP = ("setup_s", "compile_s")
Seconds = Mapping[int, tuple[float, float]]
"""By block: seconds in some parts beside the train clock, seconds on it."""


@dataclass(frozen=True)
class Beside:
    """What one arm spends beside the train clock more than its baseline, as a share of the baseline's train clock."""

    excess: Interval
    seconds: float
    """Mean excess a trial."""
    billed: float | None = None
    """Geometric mean over blocks of baseline / arm on the train clock."""
    included: float | None = None
    """The same with the parts on it."""


def beside_the_clock(arm: Seconds, base: Seconds) -> Beside:
    """Block by block: the arm's seconds beside the train clock minus the baseline's, over the baseline's train_s."""
    shares, extra, billed, included = [], [], [], []
    for block, mine in arm.items():
        theirs = base.get(block)
        if theirs is None:
            continue
        shares.append((mine[0] - theirs[0]) / theirs[1])
        extra.append(mine[0] - theirs[0])
        billed.append(math.log(theirs[1] / mine[1]))
        included.append(math.log((theirs[0] + theirs[1]) / (mine[0] + mine[1])))
    if not shares:
        return Beside(Interval(), 0.0)
    ratios = [math.exp(float(np.mean(logs))) for logs in (billed, included)]
    return Beside(t_interval(shares), float(np.mean(extra)), ratios[0], ratios[1])


def by_blocks(replicates: Iterable[Replicate], parts: Sequence[str]) -> Seconds:
    """Means over the complete replicates of a block that know both."""
    blocks = ((block, _means(members, parts)) for block, members in by_block(replicates).items())
    return {block: seconds for block, seconds in blocks if seconds is not None}


def off_the_clock(arms: Mapping[str, Beside]) -> Guard:
    """B4: whether an arm does more than the baseline in evaluation and callbacks, where the clock is paused.

    Amber where its excess is beyond chance and above 2 % of the train clock; the number is the largest share.
    """
    known = {arm: b for arm, b in arms.items() if b.excess.value is not None}
    if not known:
        return not_checked("off the clock", "no arm has a block whose evaluation and callback seconds are stored")
    most = max(b.excess.value or 0.0 for b in known.values())
    notable = {arm: b for arm, b in known.items() if (b.excess.value or 0) > NOTABLE and (b.excess.lo or 0) > 0}
    if notable:
        worst = sorted(notable, key=lambda arm: -(notable[arm].excess.value or 0))
        named = [f"{arm} {phrases.seconds(known[arm].seconds)} a trial ({phrases.share(known[arm].excess.value or 0)})"
                 for arm in worst]  # fmt: skip
        said = "Evaluation and callbacks, which are not billed, take longer than in the baseline"
        return Guard("off the clock", "amber", most, f"{said}: {phrases.listing(named, most=3)}.")
    done = "Methods are billed on every event; beside the clock no arm is shown to do more than the baseline."
    return Guard("off the clock", "green", most, done)


def setup(arms: Mapping[str, Beside], base_s: float | None, eps: float | None) -> Guard:
    """B18: setup and compilation are not in the ratio; what the ratio would be with them, for the arm it moves most.

    Amber where that moves it by more than 2 % and by more than the noise floor; the number is the ratio with them.
    """
    known = {arm: b for arm, b in arms.items() if b.billed and b.included}
    if not known or base_s is None:
        return not_checked("setup", "no arm has a block whose setup seconds are stored")
    moved = {arm: abs(math.log((b.included or 1) / (b.billed or 1))) for arm, b in known.items()}
    arm = max(moved, key=lambda name: moved[name])
    one = known[arm]
    own = f"{phrases.seconds(base_s)} baseline, {phrases.seconds(base_s + one.seconds)} {arm}"
    ratios = f"including it {phrases.times(one.included or 1)} (without {phrases.times(one.billed or 1)})"
    said = f"Setup excluded: {own}; {ratios}."
    light: Light = "amber" if moved[arm] > max(NOTABLE, eps or 0.0) else "green"
    return Guard("setup", light, one.included, said)


def clocks_run(replicates: Iterable[Replicate], series: Mapping[Key, Evaluations]) -> Guard:
    """B23: whether clocks never went back, and training never took longer than the wall clock; red where one did.

    It is perf_counter's duty, synchronised at evaluations; datetime.now would fail here when the host's time is set.
    """
    known = [(one, series.get((one.id, one.replicate))) for one in replicates if one.complete]
    looked = [(one, points.clocks) for one, points in known if points is not None]
    if not looked:
        return not_checked("clocks", "no complete trial has evaluations of the primary metric")
    odd = [f"{looked[i][0].id} r{looked[i][0].replicate}" for i in sorted(_odd(looked))]
    if odd:
        return Guard("clocks", "red", len(odd), f"A clock ran backwards or beyond the wall: {phrases.listing(odd)}.")
    return Guard("clocks", "green", 0, f"All clocks ran forwards, within the wall clock, in {len(looked)} replicates.")


def _means(members: Sequence[Replicate], parts: Sequence[str]) -> tuple[float, float] | None:
    read = [one for one in members if not one.unreadable and one.clocks.get(parts[0]) is not None]
    known = [(sum(one.clocks.get(part) or 0.0 for part in parts), s) for one in read if (s := one.time("train_s"))]
    if len(known) < 2:
        return known[0] if known else None
    beside, train = np.mean(np.array(known), axis=0)
    return float(beside), float(train)


def _odd(looked: Sequence[tuple[Replicate, Mapping[str, Array]]]) -> set[int]:
    """Places of those of which a clock ran backwards, or training took longer than the wall clock; all in one go."""
    found: set[int] = set()
    for clock in dict.fromkeys(name for _, clocks in looked for name in clocks):
        place, (seconds,) = _end_to_end(looked, [clock])
        found |= set(place[1:][(np.diff(seconds) < 0) & (np.diff(place) == 0)].tolist())
    at_one_go = [(one, clocks if "resumed" not in one.timing_reasons else {}) for one, clocks in looked]
    place, (train, wall) = _end_to_end(at_one_go, ["train_s", "wall_s"])
    return found | set(place[train > wall * 1.001 + 0.05].tolist())


def _end_to_end(
    looked: Sequence[tuple[Replicate, Mapping[str, Array]]], clocks: Sequence[str]
) -> tuple[np.typing.NDArray[np.int64], list[Array]]:
    """(places, seconds on each clock) of all evaluations that know all of these clocks."""
    having = [(i, own) for i, (_, own) in enumerate(looked) if all(clock in own for clock in clocks)]
    place = np.repeat([i for i, _ in having], [len(own[clocks[0]]) for _, own in having]).astype(np.int64)
    seconds = [np.concatenate([own[clock] for _, own in having] or [np.zeros(0)]) for clock in clocks]
    finite = np.logical_and.reduce([np.isfinite(each) for each in seconds])
    return place[finite], [each[finite] for each in seconds]
