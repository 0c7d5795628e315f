"""Tables of credit: each method's part of the whole, what methods do together, orders of switching on, levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from expkit.analysis.contributions import Interaction, Levels, Part, Waterfall
from expkit.analysis.model import Effect, Interval, Summary
from expkit.analysis.phrases import significant
from expkit.report.blocks import Block, Cell, Column, Table, Text
from expkit.report.numbers import cell, fixed, interval, level, metric_name, quality_decimals, ratio_cell, unique

Row = Mapping[str, Cell]
Told = Callable[[Interval], Cell]
CREDIT_NOTE = (
    "Credit: the mean contribution over all orders of switching on (Shapley); credits in time multiply, credits in "
    "quality add up, to the effect of all methods together. Alone: on the bare baseline. Last: on top of all others; "
    "where the two differ, methods interact. Variance: share of the spread over arms that the main effect explains. "
    "q: Benjamini and Hochberg's, over main effects and interactions."
)
INTERACTION_NOTE = (
    "Interaction: half of what the one does with the other minus what it does without, averaged over the rest; ×1 and "
    "+0 are none. Together: what both do on the bare baseline beyond what each does there."
)
MOST_ROWS = 40


def credit(summary: Summary) -> list[Block]:
    """What the credit rests on, and its tables; nothing where there is none."""
    made = [
        *_parts(summary, "time", "Credit in speedup", ratio_cell, lambda e: e.part_time),
        *_parts(summary, "quality", f"Credit in {metric_name(summary)}", _points(summary), lambda e: e.part_quality),
        *_interactions(summary),
        *_waterfalls(summary),
        *_levels(summary),
        *_unreplicated(summary),
    ]
    said = summary.credit.sentence
    return [Text(said), *made] if said and made else made


def _parts(summary: Summary, axis: str, caption: str, told: Told, part_of: Callable[[Effect], Part]) -> list[Block]:
    found = [(e, part_of(e)) for e in summary.effects]
    readings = [i for _, p in found for i in (p.shapley, p.add_one_in, p.leave_one_out) if i.value is not None]
    if not readings:
        return []
    ci = unique([level(i) for i in readings])
    unit = f"×, {ci} interval" if axis == "time" else f"{ci} interval"
    columns = (
        Column("method", "method"),
        Column("credit", "credit", unit, "right"),
        Column("alone", "alone", unit, "right"),
        Column("last", "last", unit, "right"),
        Column("variance", "variance", "%", "right", minor=True),
        Column("q", "q", "", "right"),
        Column("n", "n", "seeds", "right", minor=True),
        *([Column("sentence", "in words")] if axis == "time" else []),
    )
    rows = tuple(_part_row(e, p, told) for e, p in found)
    return [_table(columns, rows, caption, CREDIT_NOTE if axis == "time" else "")]


def _part_row(effect: Effect, part: Part, told: Told) -> Row:
    n = max(part.shapley.n, part.add_one_in.n, part.leave_one_out.n)
    return {
        "method": Cell(effect.method, code=True),
        "credit": told(part.shapley),
        "alone": told(part.add_one_in),
        "last": told(part.leave_one_out),
        "variance": _share(part.variance_share),
        "q": small(part.q),
        "n": Cell(str(n), n),
        "sentence": cell(effect.sentence or "–"),
    }


def _interactions(summary: Summary) -> list[Block]:
    found = sorted(summary.credit.interactions, key=_weakness)
    if not found:
        return []
    quality = metric_name(summary)
    aliased = any(one.aliases for one in found)
    columns = (
        Column("methods", "methods"),
        Column("time", "interaction in speedup", "×", "right"),
        Column("time_q", "q", "", "right"),
        Column("together", "together", "×", "right", minor=True),
        Column("quality", f"interaction in {quality}", "", "right"),
        Column("quality_q", "q", "", "right"),
        Column("contexts", "contexts", "", "right", minor=True),
        *([Column("aliases", "in one number with")] if aliased else []),
        Column("sentence", "in words", minor=True),
    )
    out = len(found) - MOST_ROWS
    more = f" {out} weaker ones of these, not in this table, are in the JSON." if out > 0 else ""
    left = summary.credit.interactions_left_out
    note = f"{INTERACTION_NOTE}{more}{f' {left:,} of three and more methods are left out.' if left else ''}"
    rows = tuple(_interaction_row(summary, one) for one in found[:MOST_ROWS])
    return [_table(columns, rows, "What methods do together", note)]


def _interaction_row(summary: Summary, one: Interaction) -> Row:
    return {
        "methods": Cell(" * ".join(one.methods), code=True),
        "time": ratio_cell(one.time.interaction),
        "time_q": small(one.time.q),
        "together": ratio_cell(one.time.dividend),
        "quality": _points(summary)(one.quality.interaction),
        "quality_q": small(one.quality.q),
        "contexts": Cell(str(one.contexts), one.contexts),
        "aliases": cell(", ".join(one.aliases) or "–"),
        "sentence": cell(one.sentence or "–"),
    }


def _weakness(one: Interaction) -> tuple[float, float, int]:
    """Those that are resolved first, then by p, small sets first."""
    least = min((q for q in (one.time.q, one.quality.q) if q is not None), default=2.0)
    return least, min((p for p in (one.time.p, one.quality.p) if p is not None), default=2.0), len(one.methods)


def _waterfalls(summary: Summary) -> list[Block]:
    if not summary.credit.waterfalls:
        return []
    columns = (
        Column("step", "step", "", "right"),
        Column("method", "method switched on"),
        Column("time", "adds in speedup", "×", "right"),
        Column("quality", f"adds in {metric_name(summary)}", "", "right"),
    )
    note = "The same methods in two orders. What a step adds depends on what is on already; only the whole does not."
    rows = [row for number, one in enumerate(summary.credit.waterfalls) for row in _steps(summary, one, "ab"[number])]
    return [_table(columns, tuple(rows), "One after the other", note)]


def _steps(summary: Summary, one: Waterfall, order: str) -> Iterable[Row]:
    nothing = Interval()
    for i, method in enumerate(one.order):
        yield {
            "step": Cell(f"{order}{i + 1}"),
            "method": Cell(method, code=True),
            "time": ratio_cell(one.time[i] if one.time else nothing),
            "quality": _points(summary)(one.quality[i] if one.quality else nothing),
        }


def _levels(summary: Summary) -> list[Block]:
    if not summary.credit.levels:
        return []
    columns = (
        Column("level", "level"),
        Column("time", "speedup", "×", "right"),
        Column("quality", f"difference in {metric_name(summary)}", "", "right"),
        Column("time_p", "p of equal levels in time", "", "right", minor=True),
        Column("quality_p", "p of equal levels in quality", "", "right", minor=True),
    )
    note = "First what any level does against off, the mean over levels; then each level against that mean."
    rows = [row for one in summary.credit.levels for row in _level_rows(summary, one)]
    return [_table(columns, tuple(rows), "Levels within a method", note)]


def _level_rows(summary: Summary, one: Levels) -> Iterable[Row]:
    points = _points(summary)
    yield {
        "level": Cell(f"{one.method}, any", code=True),
        "time": ratio_cell(one.time),
        "quality": points(one.quality),
        "time_p": small(one.p_time),
        "quality_p": small(one.p_quality),
    }
    for label, time, quality in zip(one.levels, one.time_apart, one.quality_apart, strict=True):
        yield {"level": Cell(label, code=True), "time": ratio_cell(time), "quality": points(quality)}


def _unreplicated(summary: Summary) -> list[Block]:
    return [
        Text(
            f"One seed, so the {one.effects} effects on {one.axis} are each other's yardstick (Lenth): pseudo standard "
            f"error {significant(one.pse)}, margin {significant(one.margin)} for one effect and "
            f"{significant(one.simultaneous)} for the largest of all{' in log-time' if one.axis == 'time' else ''}.",
            note=True,
        )
        for one in summary.credit.unreplicated
    ]


def only(columns: tuple[Column, ...], rows: Sequence[Row], *, note: str) -> Table:
    """A table of the cells that have a column."""
    return replace(_table(columns, rows, "", note), folded=False)


def _table(columns: tuple[Column, ...], rows: Sequence[Row], caption: str, note: str) -> Table:
    """Folded, of the cells that have a column."""
    keys = {column.key for column in columns}
    kept = tuple({key: value for key, value in row.items() if key in keys} for row in rows)
    return Table(columns, kept, caption, note, folded=True)


def _points(summary: Summary) -> Told:
    decimals = quality_decimals(summary)
    return lambda it: cell(interval(it, decimals, signed=True), it.value)


def _share(part: float | None) -> Cell:
    return cell(fixed(None if part is None else 100 * part, 1), part)


def small(p: float | None) -> Cell:
    """A p or q value: `0.031`, `<0.001`; quiet where it says nothing."""
    if p is None:
        return cell("–")
    return Cell("<0.001" if p < 0.001 else fixed(p, 3), p, "" if p < 0.05 else "quiet")


def aliases_column(effects: Sequence[Effect]) -> list[Column]:
    """For a fraction: what else is in the number."""
    return [Column("aliases", "in one number with")] if any(e.aliases for e in effects) else []
