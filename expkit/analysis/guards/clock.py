"""Guards of the clock: what it did not bill, and whether it ran as clocks do. B4, B18, B23."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval
from expkit.analysis.guards.light import not_checked
from expkit.analysis.intervals import t_interval
from expkit.analysis.load import Evaluations, Key
from expkit.analysis.model import Guard, Light
from expkit.analysis.pairs import by_block
from expkit.analysis.replicate import Replicate

NOTABLE = 0.02
"""A share of the train clock; less than that beside it is no news. A1 (v)."""
UNBILLED = ("callbacks_s", "eval_s")
SETUP = ("setup_s", "compile_s")


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


def beside_the_clock(arm: Iterable[Replicate], base: Iterable[Replicate], parts: Sequence[str]) -> Beside:
    """Block by block: the arm's seconds in `parts` minus the baseline's, over the baseline's train_s."""
    bases = by_block(base)
    shares, extra, billed, included = [], [], [], []
    for block, members in by_block(arm).items():
        mine, theirs = _seconds(members, parts), _seconds(bases.get(block, []), parts)
        if mine is None or theirs is None:
            continue
        shares.append((mine[0] - theirs[0]) / theirs[1])
        extra.append(mine[0] - theirs[0])
        billed.append(math.log(theirs[1] / mine[1]))
        included.append(math.log((theirs[0] + theirs[1]) / (mine[0] + mine[1])))
    if not shares:
        return Beside(Interval(), 0.0)
    ratios = [math.exp(float(np.mean(logs))) for logs in (billed, included)]
    return Beside(t_interval(shares), float(np.mean(extra)), ratios[0], ratios[1])


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
    looked, odd = 0, []
    for one in replicates:
        points = series.get((one.id, one.replicate))
        if one.complete and points is not None:
            looked += 1
            resumed = "resumed" in one.timing_reasons
            odd += [f"{one.id} r{one.replicate}"] if not _runs_on(points.clocks, resumed) else []
    if not looked:
        return not_checked("clocks", "no complete trial has evaluations of the primary metric")
    if odd:
        return Guard("clocks", "red", len(odd), f"A clock ran backwards or beyond the wall: {phrases.listing(odd)}.")
    return Guard("clocks", "green", 0, f"All clocks ran forwards, within the wall clock, in {looked} replicates.")


def _seconds(members: Sequence[Replicate], parts: Sequence[str]) -> tuple[float, float] | None:
    """(seconds in the parts, seconds of training), means over the replicates that know both."""
    read = [one for one in members if not one.unreadable and one.clocks.get(parts[0]) is not None]
    known = [(sum(one.clocks.get(part) or 0.0 for part in parts), s) for one in read if (s := one.time("train_s"))]
    if not known:
        return None
    beside, train = np.mean(np.array(known), axis=0)
    return float(beside), float(train)


def _runs_on(clocks: Mapping[str, np.typing.NDArray[np.float64]], resumed: bool) -> bool:
    forwards = all(not np.any(np.diff(c[np.isfinite(c)]) < 0) for c in clocks.values())
    train, wall = clocks.get("train_s"), clocks.get("wall_s")
    if resumed or train is None or wall is None:
        return forwards
    both = np.isfinite(train) & np.isfinite(wall)
    return forwards and not bool(np.any(train[both] > wall[both] * 1.001 + 0.05))
