"""What was chosen by the sweep and run again on fresh seeds: both answers side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Confirmation as Found
from expkit.analysis.model import Confirmed, Summary
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.numbers import cell, count, fixed, interval, level, moment, quality_decimals, ratio_cell
from expkit.report.section import Section

NOTHING = "Whatever is fastest was chosen by the trials that measure it; to run the best arms once more: expkit confirm"


@dataclass(frozen=True)
class Confirmation(Section):
    """How the arms were chosen, when test data was opened, and each arm's speedup and quality then and now."""

    title: ClassVar[str] = "On fresh seeds"
    order: ClassVar[int] = 33

    def blocks(self, summary: Summary) -> Sequence[Block]:
        found = summary.confirmation
        if found is None:
            return [Text(f"On these terms no arm was run again on fresh seeds. {NOTHING} {summary.sweep}.")]
        texts = [Text(sentence) for sentence in found.sentences[:2]]
        notes = [Text(sentence, note=True) for sentence in (*found.sentences[2:], found.noise.sentence, _when(found))]
        if not found.arms:
            return [*texts, Text("None of these trials has been planned yet."), *notes]
        return [*texts, _table(summary, found), *notes]


def _when(found: Found) -> str:
    done, total = found.states.get("complete", 0), sum(found.states.values())
    opened = f"; test data opened {moment(found.opened_utc)}" if found.opened_utc else ""
    return f"{done:,} of {count(total, 'replicate')} complete; settled {moment(found.utc)}{opened}."


def _table(summary: Summary, found: Found) -> Table:
    sample = found.arms[0]
    columns = (
        Column("arm", "arm"),
        Column("was", "speedup in the sweep", f"×, {level(sample.was)} interval", "right"),
        Column("speedup", "speedup on fresh seeds", f"×, {level(sample.arm.speedup)} interval", "right"),
        Column("p", "adjusted p", "Holm", "right"),
        Column("was_quality", f"{summary.metric} in the sweep", "arm − baseline", "right", minor=True),
        Column("quality", f"{found.metric} on fresh seeds", "arm − baseline", "right"),
        Column("n", "n", "pairs", "right"),
        Column("verdict", "verdict on fresh seeds"),
    )
    decimals = quality_decimals(summary)
    note = (
        "Speedup = baseline time / arm time; quality: more is better, 90 % interval. The fastest of many is partly "
        "the luckiest, so the left speedup is too great on average; the right one is not."
    )
    return Table(columns, tuple(_row(one, decimals) for one in found.arms), "Chosen, and run again", note)


def _row(one: Confirmed, decimals: int) -> Mapping[str, Cell]:
    quality = interval(one.arm.quality_difference, decimals, signed=True)
    was = interval(one.was_quality, decimals, signed=True)
    return {
        "arm": Cell(one.arm.label, code=True),
        "was": ratio_cell(one.was),
        "speedup": ratio_cell(one.arm.speedup),
        "p": cell(fixed(one.p_holm, 4), one.p_holm),
        "was_quality": cell(was, one.was_quality.value),
        "quality": cell(quality, one.arm.quality_difference.value),
        "n": Cell(str(one.arm.pairs), one.arm.pairs),
        "verdict": Cell(one.arm.verdict, strong=True),
    }
