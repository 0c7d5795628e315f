"""Every arm against the baseline at equal budget: verdict, time, quality, time to target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Arm, Summary
from expkit.report.blocks import ABSENT, Block, Cell, Column, Table, Text, Tone
from expkit.report.charts import Estimate, Words, forest
from expkit.report.noise import band_of
from expkit.report.numbers import (
    cell,
    count,
    fixed,
    interval,
    level,
    metric_name,
    quality_decimals,
    ratio_cell,
    seconds,
    span,
    unique,
)
from expkit.report.ranking import primary_time, ranked
from expkit.report.section import Section


@dataclass(frozen=True)
class Arms(Section):
    """A row per arm, the baseline first, then the fastest; the chart of speedups; what else there is to know."""

    title: ClassVar[str] = "Arms at equal budget"
    order: ClassVar[int] = 30

    def blocks(self, summary: Summary) -> Sequence[Block]:
        if not summary.arms:
            return [Text("No arm of this sweep is in the store.")]
        arms = ranked(summary)
        chart = [_chart(summary, arms)] if any(a.speedup.value is not None for a in arms) else []
        return [_table(summary, arms), *chart, _more(summary, arms)]


def _table(summary: Summary, arms: list[Arm]) -> Table:
    ci, dq = _levels(arms)
    columns = (
        Column("arm", "arm"),
        Column("verdict", "verdict"),
        Column("speedup", "speedup", f"×, {ci} interval", "right"),
        Column("pairs", "n", "pairs", "right"),
        Column("difference", "quality difference", f"{dq} interval", "right"),
        Column("quality", metric_name(summary), f"mean, {ci} interval", "right", minor=True),
        Column("target", "time to target", "s, hits", "right"),
    )
    note = (
        f"Speedup = baseline time / arm time on {summary.clock}, paired by seed; more than one is faster. "
        f"Quality difference = arm − baseline in {metric_name(summary)}, signed so that more is better; "
        f"not worse means above −{summary.delta:g}. A miss of the target is > its horizon."
    )
    return Table(columns, tuple(_row(summary, arm) for arm in arms), note=note)


def _row(summary: Summary, arm: Arm) -> dict[str, Cell]:
    decimals = quality_decimals(summary)
    quality, difference = arm.quality, arm.quality_difference
    return {
        "arm": Cell(arm.label, code=True, strong=arm.baseline),
        "verdict": Cell("baseline", tone="quiet") if arm.baseline else cell(_verdict(arm), tone=tone_of(arm)),
        "speedup": Cell("1", 1.0, "quiet") if arm.baseline and arm.complete else ratio_cell(arm.speedup),
        "pairs": ABSENT if arm.baseline else Cell(str(arm.pairs), arm.pairs),
        "difference": ABSENT if arm.baseline else cell(interval(difference, decimals, signed=True), difference.value),
        "quality": cell(interval(quality, decimals), quality.value),
        "target": _target(arm),
    }


def _verdict(arm: Arm) -> str:
    text = arm.verdict or "–"
    if text == "WITHHELD" and arm.complete < arm.planned:
        text += f" ({arm.complete} of {arm.planned} trials)"
    return f"{text} (equals {arm.equals})" if arm.equals else text


def tone_of(arm: Arm) -> Tone:
    """Green only for what is better on one axis and no worse on the other."""
    word = arm.verdict
    if word.startswith(("FASTER AND", "FASTER at", "BETTER")):
        return "good"
    if word.startswith(("FAILED", "WORSE", "SLOWER")):
        return "bad"
    return "warn" if word.startswith(("TRADE", "WITHHELD", "NO PAIRS", "FASTER")) else "quiet"


def _target(arm: Arm) -> Cell:
    time = primary_time(arm)
    return (
        ABSENT
        if time is None or not time.n or not arm.complete
        else Cell(time.text, time.median_s, "quiet" if time.median_s is None else "")
    )


def _levels(arms: list[Arm]) -> tuple[str, str]:
    compared = [arm for arm in arms if not arm.baseline] or arms
    ci = unique([level(a.speedup) for a in compared])
    return ci, unique([level(a.quality_difference) for a in compared])


def _chart(summary: Summary, arms: list[Arm]) -> Block:
    ci, _ = _levels(arms)
    estimates = [
        Estimate(a.label, a.speedup.value, a.speedup.lo, a.speedup.hi, a.speedup.n, interval(a.speedup, 3))
        for a in arms
        if a.speedup.value is not None
    ]
    band = band_of(summary)
    shade = f" The grey band is the noise floor, ×{fixed(band[0], 3)} to ×{fixed(band[1], 3)}." if band else ""
    fastest = max(estimates, key=lambda e: e.value)
    words = Words(
        title="Speedup at equal budget",
        x=f"speedup on {summary.clock} [×], faster to the right",
        y="",
        caption=f"Mean and {ci} interval, n = {span(e.n for e in estimates)} pairs of seeds.{shade}",
        alt=f"Speedups of {count(len(estimates), 'arm')}; the largest: {fastest.label} {fastest.text}.",
    )
    return forest(words, estimates, centre=1.0, band=band, log=True, what="arm")


def _more(summary: Summary, arms: list[Arm]) -> Table:
    ci, _ = _levels(arms)
    other = next((a.other_clock for a in arms if a.other_clock), "the other clock")
    columns = (
        Column("arm", "arm"),
        Column("trials", "trials", "complete / planned", "right"),
        Column("time", f"time, {summary.clock}", "s, geometric mean", "right"),
        Column("relative", "time, relative", "× that of the fastest", "right"),
        Column("other", f"speedup on {other}", f"×, {ci} interval", "right"),
        Column("target", "speedup to target", f"×, {ci} interval", "right"),
        Column("p", "p of sign flips", "", "right"),
        Column("setup", "setup", "s", "right"),
        Column("sentence", "in words"),
    )
    rows = tuple(
        {
            "arm": Cell(arm.label, code=True, strong=arm.baseline),
            "trials": Cell(
                f"{arm.complete} / {arm.planned}", arm.complete, "warn" if arm.complete < arm.planned else ""
            ),
            "time": cell(seconds(arm.time_s), arm.time_s),
            "relative": cell(fixed(arm.relative_time, 3), arm.relative_time),
            "other": ratio_cell(arm.speedup_other_clock),
            "target": ratio_cell(arm.target_speedup),
            "p": cell(fixed(arm.p_sign_flip, 4), arm.p_sign_flip),
            "setup": cell(seconds(arm.setup_s), arm.setup_s),
            "sentence": cell(" ".join(filter(None, [arm.sentence, arm.time_missing])) or "–"),
        }
        for arm in arms
    )
    note = (
        "Setup is outside the clock. Speedup to target: paired where every trial reached it, else unpaired with misses "
        "censored; there is none where fewer than half of a side's trials reached it."
    )
    return Table(columns, rows, "More about each arm", note, folded=True)
