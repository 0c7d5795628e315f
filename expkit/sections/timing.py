"""Whether the clocks can be believed, what identical code differs by, and where the time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1
from statistics import fmean
from typing import ClassVar

from expkit.analysis.model import Arm, Noise, Summary, TrialRow
from expkit.analysis.phrases import TIMING_REASONS
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.charts import Words, bars
from expkit.report.numbers import cell, count, fixed, level, ratio_cell, seconds, span, unique
from expkit.report.ranking import ranked
from expkit.report.section import Section

UNBILLED = ("eval", "setup")


@dataclass(frozen=True)
class Timing(Section):
    """Valid timings and why others are not, A/A per clock, seconds per arm."""

    title: ClassVar[str] = "Timing"
    order: ClassVar[int] = 80

    def blocks(self, summary: Summary) -> Sequence[Block]:
        return [*_validity(summary), *_noise(summary), *_where(summary), *_on_reference(summary)]


def _validity(summary: Summary) -> list[Block]:
    done = [t for t in summary.trials if t.state == "complete" and t.role not in ("pilot", "confirm")]
    if not done:
        return [Text("No replicate is complete, so there is no timing to judge.")]
    bad = Counter(
        reason for t in done if t.timing_valid is False for reason in t.timing_reasons or ("no reason given",)
    )
    valid = sum(t.timing_valid is True for t in done)
    text = Text(f"The timing of {valid:,} of {count(len(done), 'complete replicate')} is valid.")
    if not bad:
        return [text]
    columns = (Column("reason", "reason"), Column("replicates", "replicates", "", "right"), Column("means", "meaning"))
    rows = tuple(
        {"reason": Cell(why), "replicates": Cell(str(k), k), "means": cell(TIMING_REASONS.get(why, "–"))}
        for why, k in sorted(bad.items())
    )
    return [text, Table(columns, rows, "Timings that are not valid", "A replicate may have several reasons.")]


def _noise(summary: Summary) -> list[Block]:
    if not summary.noise:
        return [Text("No A/A pair (the baseline run twice in one block) is complete, so the noise floor is unknown.")]
    ci = unique([level(n.ratio) for n in summary.noise])
    columns = (
        Column("clock", "clock"),
        Column("ratio", "A/A ratio r0 / r1", f"×, {ci} interval", "right"),
        Column("pairs", "n", "A/A pairs", "right"),
        Column("eps", "noise floor eps", "% of time", "right"),
        Column("sentence", "in words"),
    )
    note = (
        "The baseline runs twice in each block; what the two differ by is noise. No time effect below eps is claimed."
    )
    return [Table(columns, tuple(_noise_row(n) for n in summary.noise), "Noise: the baseline against itself", note)]


def _noise_row(noise: Noise) -> dict[str, Cell]:
    percent = None if noise.eps is None else 100 * expm1(min(noise.eps, 50))  # as the sentence beside it says
    return {
        "clock": Cell(noise.clock, code=True),
        "ratio": ratio_cell(noise.ratio),
        "pairs": Cell(str(noise.pairs), noise.pairs),
        "eps": cell(fixed(percent, 2), percent),
        "sentence": cell(noise.sentence or "–"),
    }


def _where(summary: Summary) -> list[Block]:
    spent = [(arm, _seconds(summary, arm)) for arm in ranked(summary)]
    spent = [(arm, parts) for arm, parts in spent if parts]
    if not spent:
        return []
    names = list(dict.fromkeys(name for _, parts in spent for name in parts))
    columns = (
        Column("arm", "arm"),
        *(Column(n, n, "s", "right") for n in names),
        Column("n", "n", "replicates", "right"),
    )
    rows = tuple(
        {"arm": Cell(arm.label, code=True), "n": Cell(str(len(_complete(summary, arm))))}
        | {name: cell(seconds(parts.get(name)), parts.get(name)) for name in names}
        for arm, parts in spent
    )
    n = span(len(_complete(summary, arm)) for arm, _ in spent)
    longest, parts = max(spent, key=lambda each: sum(each[1].values()))
    most = f"{longest.label}, {seconds(sum(parts.values()))} s"
    words = Words(
        title="Where the time went",
        x="seconds per replicate [s]",
        y="",
        caption=f"Arithmetic means over complete replicates, n = {n}; "
        f"{' and '.join(UNBILLED)} are not on the training clock.",
        alt=f"Seconds per replicate of {count(len(spent), 'arm')} by what they went into; the most: {most}.",
    )
    return [bars(words, {arm.label: parts for arm, parts in spent}, Table(columns, rows, folded=True))]


def _on_reference(summary: Summary) -> list[Block]:
    """Speedups that have no noise of the machines that trained, beside the measured ones."""
    if summary.reference is None:
        return []
    measured = {arm.label: arm for arm in ranked(summary)}
    told = {one.arm: one for one in summary.reference.arms}
    ci = unique([level(one.speedup) for one in told.values()])
    columns = (
        Column("arm", "arm"),
        Column("there", "time there", "s, geometric mean", "right"),
        Column("speedup", "speedup there", f"×, {ci} interval", "right"),
        Column("measured", "speedup as measured", f"×, {ci} interval", "right"),
        Column("timed", "timed", "steps", "right"),
    )
    rows = tuple(
        {
            "arm": Cell(label, code=True, strong=arm.baseline),
            "there": cell(seconds(told[label].seconds), told[label].seconds),
            "speedup": Cell("1", 1.0, "quiet") if arm.baseline else ratio_cell(told[label].speedup),
            "measured": Cell("1", 1.0, "quiet") if arm.baseline else ratio_cell(arm.speedup),
            "timed": Cell(f"{told[label].timed:,}", told[label].timed),
        }
        for label, arm in measured.items()
        if label in told
    )
    note = (
        f"{summary.reference.sentence} It sees no stall of data loading, and no other program, that one machine had. "
        "Verdicts rest on what was measured."
    )
    return [Table(columns, rows, "In reference system time", note)]


def _seconds(summary: Summary, arm: Arm) -> dict[str, float]:
    replicates = _complete(summary, arm)
    parts = {
        name: [value for t in replicates if (value := _parts(t).get(name)) is not None] for name in _names(replicates)
    }
    return {name: fmean(values) for name, values in parts.items() if values and fmean(values) > 0}


def _names(replicates: list[TrialRow]) -> list[str]:
    return list(dict.fromkeys(name for t in replicates for name in _parts(t)))


def _parts(trial: TrialRow) -> dict[str, float | None]:
    """Billed parts first; what is on the clock but in no part is `other`."""
    inside = dict(trial.parts)
    rest = None if trial.train_s is None else max(0.0, trial.train_s - sum(inside.values()))
    billed: dict[str, float | None] = {**inside, "other" if inside else "train": rest}
    return {**billed, "eval": trial.eval_s, "setup": trial.setup_s}


def _complete(summary: Summary, arm: Arm) -> list[TrialRow]:
    done = [t for t in summary.trials if t.arm == arm.label and t.state == "complete"]
    return [t for t in done if t.role not in ("pilot", "confirm")]
