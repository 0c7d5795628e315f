"""On what terms a sweep is judged: the metric and its mode, the target and where it comes from, the baseline."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from expkit.analysis import phrases
from expkit.analysis.attainment import Ladder
from expkit.analysis.budgets import budget_of
from expkit.analysis.load import Key, Settings, Sweep
from expkit.analysis.model import TargetInfo
from expkit.analysis.replicate import Replicate, methods_of, split_arm
from expkit.analysis.study import COMPARED
from expkit.analysis.target import GAINS, exploratory, ladder, too_flat
from expkit.errors import UsageError, unknown

_SMALLER = re.compile(r"loss|entropy|error|perplexity|mse|mae|nll|bits", re.IGNORECASE)
_DERIVED = ("lowest_final", *GAINS)


@dataclass(frozen=True)
class Asked:
    """What the caller wants other than the sweep file does; None where nothing."""

    target: float | None = None
    metric: str | None = None
    baseline: str | None = None


def metric_and_mode(asked: Asked, settings: Settings) -> tuple[str, Literal["max", "min"]]:
    """The metric to judge by. One that is not the sweep's own may say its mode, `eval/f1:max`; else its name does."""
    if asked.metric is None or asked.metric == settings.metric:
        return settings.metric, settings.mode
    name, _, mode = asked.metric.rpartition(":")
    if name and mode in ("max", "min"):
        return name, "max" if mode == "max" else "min"
    return asked.metric, mode_by_name(asked.metric)


def mode_by_name(metric: str) -> Literal["max", "min"]:
    """`eval/cross_entropy` is to be minimised, as every loss, error and perplexity; all else to be maximised."""
    return "min" if _SMALLER.search(metric) else "max"


def delta(metric: str, settings: Settings) -> float:
    """The margin of `not worse` is in the unit of the sweep's own metric; another one has none."""
    return settings.delta if metric == settings.metric else 0.0


def baseline_set(asked: Asked, settings: Settings, replicates: Iterable[Replicate]) -> str:
    """The label of the baseline's set; UsageError with the nearest name for a set that the sweep does not have."""
    if asked.baseline is None:
        return settings.baseline
    sets = {split_arm(r.arm)[0] for r in replicates}
    found = [s for s in sets if methods_of(s) == methods_of(asked.baseline)]
    if not found:
        raise UsageError(unknown("arm", asked.baseline, sets))
    return found[0]


def check_recorded(metric: str, sweep: Sweep, recorded: Iterable[str]) -> None:
    """UsageError where trials are complete and none has recorded the metric."""
    if not sweep.series and any(r.complete and not r.unreadable for r in sweep.replicates):
        raise UsageError(unknown("metric", metric, recorded))


def target_info(
    sweep: Sweep, settings: Settings, metric: str, mode: Literal["max", "min"], asked: Asked, baseline: str
) -> TargetInfo:
    """The target of this reading, its ladder, and whether it was there before the data."""
    own = metric == sweep.target.get("metric", settings.metric)
    record = sweep.target if own else {}
    if asked.target is not None and asked.target == _number(record.get("value")):
        asked = replace(asked, target=None)  # the sweep's own, said again
    ladders = _ladders(record, sweep, baseline) if own or asked.target is not None else {None: ()}
    value = asked.target if asked.target is not None else _number(record.get("value"))
    if asked.target is not None and not math.isfinite(asked.target):
        raise UsageError(f"a target must be a finite number, but got {asked.target}")
    rule = str(record.get("rule") or "given")
    derived = rule in _DERIVED and asked.target is None
    allowed = derived and record.get("flat") is True
    info = TargetInfo(
        metric=metric,
        mode=mode,
        value=value,
        rule=rule if derived else "given",
        given="none" if value is None else "pilot" if derived else "number",
        seeds=tuple(record.get("seeds") or ()) if derived else (),
        utc=record.get("utc") if asked.target is None else None,
        hash=record.get("hash") if asked.target is None else None,
        exploratory=value is not None and (allowed or _is_exploratory(record, sweep, asked)),
        of_another=derived and own and settings.target_of_another,
        flat=allowed,
        ladder=list(ladders.values())[-1],
        ladders=tuple((budget, rungs) for budget, rungs in ladders.items() if budget is not None),
    )
    flat = too_flat(_number(record.get("slope")), _number(record.get("sd"))) if derived else ""
    return replace(info, sentence=_sentence(info, flat))


def preset(info: TargetInfo) -> list[float]:
    """The qualities that were fixed before the data: the target, and its rungs where a pilot made them."""
    if info.exploratory or info.value is None:
        return []
    return [info.value, *(quality for _, quality in info.ladder if info.given == "pilot")]


def _is_exploratory(record: Mapping[str, Any], sweep: Sweep, asked: Asked) -> bool:
    if asked.target is not None:
        return True
    grid = [r for r in sweep.replicates if r.role in COMPARED]
    started = [r.started_utc for r in grid if r.role == "arm" and r.started_utc]
    hashes = [r.target_hash for r in grid if r.role == "arm" and r.started_utc]
    return exploratory(record.get("utc"), min(started, default=None), hashes, record.get("hash"))


def _sentence(info: TargetInfo, flat: str) -> str:
    if info.value is None:
        return f"No target is set for {info.metric}."
    what = f"Target {phrases.quality(info.value)} of {info.metric}"
    if info.flat:
        return f"{what} is too flat to time anything and was allowed all the same: exploratory; {flat}."
    if info.exploratory:
        return f"{what} was set after data had been seen: exploratory."
    on = f" on {info.utc[:10]}" if info.utc else ""
    mark = f" (hash {info.hash[:12]})" if info.hash else ""
    if info.of_another:
        return f"{what} is of another baseline than this sweep's; expkit pilot --force derives it anew."
    if info.given == "pilot":
        seeds = phrases.count(len(info.seeds), "baseline pilot seed")
        but = f"; {flat}" if flat else ""
        return f"{what} fixed from {seeds} by {info.rule}{on}, before any other arm ran{mark}{but}."
    return f"{what} was given, not derived{on}{mark}."


def rungs_of(info: TargetInfo, replicates: Iterable[Replicate]) -> dict[Key, Ladder]:
    """The ladder of each replicate where each budget has one of its own; no rung where its baseline has none yet."""
    ladders: dict[float | None, Ladder] = dict(info.ladders)
    return {(r.id, r.replicate): ladders.get(budget_of(r.arm)[1], ()) for r in replicates} if ladders else {}


def _ladders(record: Mapping[str, Any], sweep: Sweep, baseline: str) -> dict[float | None, Ladder]:
    """The pilot's, or else those of this sweep's own baseline."""
    rungs = [(_number(share), _number(value)) for share, value in record.get("ladder") or ()]
    kept = tuple((share, value) for share, value in rungs if share is not None and value is not None)
    return {None: kept} if kept else own_ladders(sweep, baseline)


def own_ladders(sweep: Sweep, baseline: str) -> dict[float | None, Ladder]:
    """The ladder of the complete baseline trials of each budget, the longest last; under None where none is varied.

    A median over runs of several lengths is the gain of none of them.
    """
    ends: dict[float | None, list[tuple[float, float]]] = {}
    for one in sweep.replicates:
        series = sweep.series.get((one.id, one.replicate))
        own = one.complete and one.role in COMPARED and methods_of(one.arm) == methods_of(baseline)
        if own and series is not None:
            at = ends.setdefault(budget_of(one.arm)[1], [])
            at.append((float(series.value[0]), float(series.value[-1])))
    budgets = sorted(ends, key=lambda budget: budget or 0.0)
    return {b: ladder([first for first, _ in ends[b]], [last for _, last in ends[b]]) for b in budgets} or {None: ()}


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None
