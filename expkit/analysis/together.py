"""What the credit of a sweep rests on, and what methods do in company: interactions, waterfalls, levels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from expkit.analysis import aliases, phrases
from expkit.analysis.cells import switched
from expkit.analysis.contributions import Credit, Interaction, Joint, Levels, Unreplicated, Waterfall
from expkit.analysis.estimates import Interval
from expkit.analysis.fraction import Partial
from expkit.analysis.intervals import excludes
from expkit.analysis.linear import Estimate
from expkit.analysis.nested import Nested, nested
from expkit.analysis.replicate import level_of
from expkit.analysis.shares import Name, Shares, Table, waterfall
from expkit.analysis.study import Study
from expkit.spec.labels import roman

MOST_HIGHER = 12
"""Interactions of three and more methods that are kept, those of smallest q; a 2^10 grid has 968."""
CONTRADICTED = 0.05


class Axis(Protocol):
    """Time or quality, as `credit.Axis` makes them."""

    table: Table
    shares: Shares

    def told(self, one: Estimate | None) -> Interval: ...
    def joint(self, methods: Name) -> Joint: ...


def together(study: Study, time: Axis, quality: Axis, part: Partial | None) -> Credit:
    """The credit of a sweep beyond single methods."""
    kept, left_out = _interactions(study, time, quality, part)
    best = time if time.shares.basis in ("full grid", "orders", "least squares") else quality
    return Credit(
        basis=best.shares.basis,
        sentence=_sentence(study, best, part),
        words=part.words() if part is not None and part.regular else (),
        lack_of_fit_p_time=time.shares.lack_of_fit_p,
        lack_of_fit_p_quality=quality.shares.lack_of_fit_p,
        interactions=kept,
        interactions_left_out=left_out,
        waterfalls=_waterfalls(time, quality),
        levels=tuple(_levels(study, time, quality)),
        unreplicated=tuple(_unreplicated(time, quality)),
    )


def _interactions(study: Study, time: Axis, quality: Axis, part: Partial | None) -> tuple[tuple[Interaction, ...], int]:
    names = dict.fromkeys([*time.shares.interactions, *quality.shares.interactions])
    found = [_interaction(study, name, time, quality, part) for name in names]
    pairs = [one for one in found if len(one.methods) == 2]
    higher = sorted((one for one in found if len(one.methods) > 2), key=lambda one: (_least_q(one), one.methods))
    return (*pairs, *higher[:MOST_HIGHER]), max(0, len(higher) - MOST_HIGHER)


def _interaction(study: Study, name: Name, time: Axis, quality: Axis, part: Partial | None) -> Interaction:
    of_time, of_quality = time.joint(name), quality.joint(name)
    contexts = max(axis.shares.contexts.get(name, 0) for axis in (time, quality))
    regular = part is not None and part.regular
    aliased = part.aliases_of(name) if part is not None and regular else ()
    return Interaction(name, of_time, of_quality, contexts, aliased, _said(name, time, of_time))


def _said(name: Name, time: Axis, joint: Joint) -> str:
    """What a resolved pair does together, and what its singles would have led one to expect."""
    alone = [time.told(time.shares.add_one_in.get(method)).value for method in name]
    beyond = joint.dividend.value
    if len(name) != 2 or beyond is None or not excludes(joint.interaction, 1.0):
        return ""
    singles = math.prod(value for value in alone if value is not None)
    if None in alone:
        return ""
    how = "add to each other" if beyond > 1 else "overlap"
    return (
        f"{name[0]} and {name[1]} {how}: together {phrases.times(singles * beyond)}, "
        f"the product of the two alone would be {phrases.times(singles)}."
    )


def _least_q(one: Interaction) -> float:
    return min((q for q in (one.time.q, one.quality.q) if q is not None), default=math.inf)


def _waterfalls(time: Axis, quality: Axis) -> tuple[Waterfall, ...]:
    """From the largest credit down and back: the more the two differ, the less any order means."""
    credit = time.shares.shapley or quality.shares.shapley
    down = sorted(credit, key=lambda method: -(credit[method].interval.value or 0.0))
    found = []
    for order in (down, down[::-1]):
        steps = [tuple(map(axis.told, waterfall(axis.table, order))) for axis in (time, quality)]
        if any(steps):
            found.append(Waterfall(tuple(order), steps[0], steps[1]))
    return tuple(found[: 1 if len(down) < 2 else 2])


def _levels(study: Study, time: Axis, quality: Axis) -> Iterable[Levels]:
    idle = [study.idle[arm] for arm in study.by_arm]
    for levels in switched(study.cells):
        if len(levels) > 1:
            of_time, of_quality = (nested(study.cells, levels, table, idle, study.ci)
                                   for table in (study.log_speed_CS, study.quality_CS))  # fmt: skip
            yield _nested(levels, of_time, of_quality, time, quality)


def _nested(levels: tuple[str, ...], of_time: Nested, of_quality: Nested, time: Axis, quality: Axis) -> Levels:
    return Levels(
        level_of(levels[0]),
        levels,
        time.told(of_time.any_level),
        quality.told(of_quality.any_level),
        tuple(map(time.told, of_time.apart)),
        tuple(map(quality.told, of_quality.apart)),
        of_time.p,
        of_quality.p,
    )


def _unreplicated(time: Axis, quality: Axis) -> Iterable[Unreplicated]:
    for name, axis in (("time", time), ("quality", quality)):
        if (found := axis.shares.lenth) is not None:
            yield Unreplicated(name, found.m, found.pse, found.margin, found.simultaneous)


def _sentence(study: Study, axis: Axis, part: Partial | None) -> str:
    """How the credit was come by, and what it takes for granted."""
    if part is None or not part.regular:
        return _of_basis(study, axis)
    out = _left_out(study, axis)
    sums = "What is told in sums cannot share out the whole; no three methods are assumed to interact."
    whole = _of_basis(study, axis) if axis.shares.shapley else sums + out
    return f"{_of_fraction(part, 'Interactions' if out else 'Main effects and interactions')} {whole}"


def _left_out(study: Study, axis: Axis) -> str:
    out = len(study.cells) - len(axis.table.cells)
    return f" {phrases.count(out, 'arm')} left out, in which a method did nothing." if out else ""


def _of_fraction(part: Partial, what: str) -> str:
    """Which fraction the arms are, and how their effects are to be read."""
    size, words = roman(aliases.resolution(part.masks, part.grid.k) or 0), part.words()
    constant = f"{phrases.listing(words)} {'is' if len(words) == 1 else 'are'} constant"
    return (
        f"A fraction of resolution {size}: {len(part.masks)} of {2**part.grid.k} sets, in which {constant}. {what} are "
        "contrasts of all of them, each in one number with what its row names."
    )


def _of_basis(study: Study, axis: Axis) -> str:
    cells, factors = axis.table.cells, switched(axis.table.cells)
    idle = _left_out(study, axis)
    full = math.prod(len(levels) + 1 for levels in factors) * len({point for _, point in cells})
    if axis.shares.basis == "full grid":
        seeds = axis.table.complete_CS.shape[1]
        lone = " One seed: intervals are Lenth's margins, which take most effects for none." if (
            axis.shares.lenth is not None) else ""  # fmt: skip
        return f"Exact, from all {len(cells)} arms of a full grid over {phrases.count(seeds, 'seed')}.{lone}{idle}"
    if axis.shares.basis == "orders":
        return (f"Sampled: the mean over {len(study.orders)} orders of switching on, of {len(cells)} of {full} arms; "
                f"intervals are over seeds and orders. Interactions assume that no three interact.{idle}")  # fmt: skip
    if axis.shares.basis == "least squares":
        p = axis.shares.lack_of_fit_p
        doubt = (
            f" The arms contradict that (lack of fit, p = {phrases.significant(p, 2)})."
            if p is not None and p < CONTRADICTED
            else ""
        )
        known = int(np.isfinite(axis.table.values_CS).any(axis=1).sum())
        part = f"{known} of {full} arms" if full > known else f"{full} arms of which some trials are missing"
        return f"By least squares from {part}, assuming no three-way interactions.{doubt}{idle}"
    if axis.shares.basis == "pairs":
        return f"From arms that differ in one or two methods: {len(cells)} of {full} cannot share out the whole.{idle}"
    return ""
