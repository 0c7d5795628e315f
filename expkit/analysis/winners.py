"""Who may be the best at each parameter point, and how much of the winner's lead is luck. A13."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.best import BestSet, best_set
from expkit.analysis.comparisons import Best
from expkit.analysis.intervals import Array, pooled_error
from expkit.analysis.model import Arm
from expkit.analysis.study import Study

NOT_WORSE = ("better", "equal or not worse")


def best(study: Study, arms: Sequence[Arm]) -> tuple[Best, ...]:
    """By time, by time among arms whose quality is not worse, and by quality; nothing where there is no choice.

    `arms` are the rows of the report, with their classes of quality.
    """
    labels = list(study.by_arm)
    fit = {a.label for a in arms if a.baseline or a.quality_class in NOT_WORSE}
    found: list[Best] = []
    for point in dict.fromkeys(point for _, point in study.cells):
        rows = [i for i, (_, where) in enumerate(study.cells) if where == point]
        worthy = [i for i in rows if labels[i] in fit]
        found += _asked(study, "time", point, study.log_speed_CS, rows)
        found += _asked(study, "time, quality not worse", point, study.log_speed_CS, worthy) if (
            worthy != rows) else []  # fmt: skip
        found += _asked(study, "quality", point, study.quality_CS, rows)
    return tuple(found)


def _asked(study: Study, question: str, point: str, values_CS: Array, rows: Sequence[int]) -> Iterable[Best]:
    table = values_CS[list(rows)]
    table = table[:, np.isfinite(table).any(axis=0)] if len(rows) else table
    found = best_set(table, study.ci, pooled_error(table)) if len(rows) > 1 and table.shape[1] > 1 else None
    if found is None:
        return
    labels = [list(study.by_arm)[rows[i]] for i in found.tied]
    winner, of_time = list(study.by_arm)[rows[found.best]], question.startswith("time")
    told = math.exp if of_time else float
    yield Best(
        question=question,
        point=point,
        winner=winner,
        tied=tuple(labels),
        value=told(found.value),
        shrunk=None if found.shrunk is None else told(found.shrunk),
        luck=None if found.luck is None else told(found.luck),
        arms=len(rows),
        n=found.n,
        method=found.method,
        sentence=_sentence(study, question, point, winner, labels, found, len(rows)),
    )


def _sentence(
    study: Study, question: str, point: str, winner: str, tied: Sequence[str], found: BestSet, arms: int
) -> str:
    what = {"time": "Fastest", "quality": f"Best {study.metric}"}.get(question, "Fastest of quality that is not worse")
    others = [_called(study, label) for label in tied if label != winner]
    apart = f"; {phrases.listing(others, most=4)} cannot be told from it" if others else ", told from all others"
    where = f" at {point}" if point else ""
    luck = ""
    if found.luck is not None and found.luck > 0 and question.startswith("time"):
        luck = f" The best of {arms} equal arms would lead by {phrases.percent(found.luck)} by chance."
    return f"{what}{where}: {_called(study, winner)}, of {phrases.count(arms, 'arm')}{apart}.{luck}"


def _called(study: Study, label: str) -> str:
    return "the baseline" if study.is_baseline(label) else label
