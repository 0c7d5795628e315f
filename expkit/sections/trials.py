"""Every replicate of the sweep, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from expkit.analysis.model import Summary, TrialRow
from expkit.report.blocks import Block, Cell, Column, Table, Text, Tone
from expkit.report.numbers import cell, fixed, metric_name, progress, quality_decimals, seconds
from expkit.report.section import Section

TONES: dict[str, Tone] = {"complete": "", "failed": "bad", "lost": "bad", "diverged": "bad"}


@dataclass(frozen=True)
class Trials(Section):
    """A row a replicate in the order they were made; closed at first, because there may be thousands."""

    title: ClassVar[str] = "Replicates"
    order: ClassVar[int] = 110

    def blocks(self, summary: Summary) -> Sequence[Block]:
        if not summary.trials:
            return [Text("No replicate has been planned.")]
        columns = (
            Column("arm", "arm"),
            Column("seed", "seed", align="right"),
            Column("role", "role"),
            Column("block", "block", align="right"),
            Column("state", "state"),
            Column("quality", metric_name(summary), "last", "right"),
            Column("train_s", "train_s", "s", "right"),
            Column("cpu_s", "cpu_s", "s", "right"),
            Column("wall_s", "wall_s", "s", "right"),
            Column("timing", "timing"),
            Column("attempts", "attempts", align="right"),
            Column("command", "to repeat it"),
        )
        rows = sorted(summary.trials, key=lambda t: (t.position, t.id, t.replicate))
        caption = f"{progress(summary)}, in the order of the plan"
        return [Table(columns, tuple(_row(summary, t) for t in rows), caption, folded=True)]


def _row(summary: Summary, t: TrialRow) -> dict[str, Cell]:
    timing = (
        "–" if t.timing_valid is None else "valid" if t.timing_valid else ", ".join(t.timing_reasons) or "not valid"
    )
    return {
        "arm": Cell(t.arm, code=True),
        "seed": cell("–" if t.seed is None else str(t.seed), t.seed),
        "role": Cell(t.role),
        "block": Cell(str(t.block), t.block),
        "state": Cell(t.state, tone=TONES.get(t.state, "quiet")),
        "quality": cell(fixed(t.quality, quality_decimals(summary)), t.quality),
        "train_s": cell(seconds(t.train_s), t.train_s),
        "cpu_s": cell(seconds(t.cpu_s), t.cpu_s),
        "wall_s": cell(seconds(t.wall_s), t.wall_s),
        "timing": cell(timing, tone="warn" if t.timing_valid is False else ""),
        "attempts": Cell(str(t.attempts), t.attempts),
        "command": Cell(t.command, code=True),
    }
