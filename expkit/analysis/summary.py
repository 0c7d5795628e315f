"""summarise: one sweep in, everything that a report says out; the same on a complete, a running and an empty sweep."""

from __future__ import annotations

import dataclasses
import gc
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from expkit.analysis import speedup, terms
from expkit.analysis.arms import arms
from expkit.analysis.at_once import at_once
from expkit.analysis.attainment import attained
from expkit.analysis.box import verdict_box
from expkit.analysis.budgets import equal_quality
from expkit.analysis.confirmation import confirmation
from expkit.analysis.credit import credited
from expkit.analysis.curves import curve
from expkit.analysis.fronts import fronts
from expkit.analysis.guards import every, light, machine
from expkit.analysis.guards.tables import Tables, tables
from expkit.analysis.headline import SCOPE, headline, noise_sentence
from expkit.analysis.load import Settings, Sweep, Views, load, recorded_metrics, settings, sweep_row
from expkit.analysis.model import SCHEMA_VERSION, Confirmation, Failure, Noise, Summary, TrialRow
from expkit.analysis.noise import aa_floor
from expkit.analysis.pairs import aa_pairs, quality_pairs
from expkit.analysis.reference_system import on_reference_system
from expkit.analysis.replicate import LOST, Replicate
from expkit.analysis.reproduce import confirmed, statements
from expkit.analysis.study import COMPARED, Study
from expkit.analysis.terms import Asked
from expkit.store.layout import Layout

CLOCKS = ("train_s", "cpu_s")
_PARTS = ("data_wait_s", "forward_s", "backward_s", "optimizer_s", "algorithms_s")


@contextmanager
def _garbage_waits() -> Iterator[None]:
    """At 10,000 trials a million objects are made that live to the end; looking for garbage among them again and again
    takes an eighth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_garbage_waits()
def summarise(
    con: Views, sweep: str, *, target: float | None = None, metric: str | None = None, baseline: str | None = None
) -> Summary:
    """The summary of a sweep from a connection to its store.

    `target`, `metric` (with its mode as `eval/f1:max` where the name does not tell) and `baseline` (a set of methods)
    read the same trials on other terms; a target or metric that was not fixed before is marked exploratory.
    UsageError for a sweep, metric or baseline that is not there.
    """
    asked = Asked(target, metric, baseline)
    row = sweep_row(con, sweep)
    wanted = settings(con, sweep, row["target_metric"])
    name, mode = terms.metric_and_mode(asked, wanted)
    data = load(con, row, name, exclusive=wanted.exclusive)
    terms.check_recorded(name, data, recorded_metrics(con, sweep) if not data.series else ())
    grid = tuple(r for r in data.replicates if r.role in COMPARED)
    base = terms.baseline_set(asked, wanted, grid)
    info = terms.target_info(data, wanted, name, mode, asked, base)
    clock, clock_sentence = machine.headline_clock(grid, wanted.clock)
    study = Study(
        grid, name, mode, clock, _other(clock, wanted.clock), wanted.ci, terms.delta(name, wanted), base,
        attained(data.series, info.value, info.ladder, mode, clock, terms.rungs_of(info, data.replicates)),
        wanted.orders,
    )  # fmt: skip
    floor = aa_floor(*aa_pairs(study.replicates, study.clock))
    looked = tables(con, data, study, info, floor, other_terms=asked != Asked())
    made = _summary(con, looked, wanted, clock_sentence)
    if asked != Asked():
        return made
    return _with_confirmation(made, confirmation(con, row, data, study, info, wanted))


def _with_confirmation(summary: Summary, found: Confirmation | None) -> Summary:
    """With what fresh seeds said, told right after what the sweep's own seeds did, in the place of who earned it."""
    if found is None:
        return summary
    first, *rest = summary.headline
    said = (first, found.headline, *rest[-1:]) if found.headline else summary.headline
    bases = [arm.label for arm in summary.arms if arm.baseline]
    sql = {**summary.sql, "confirmed": confirmed(summary.sweep, bases, found.clock, found.seeds)}
    return dataclasses.replace(summary, headline=said, confirmation=found, sql=sql)


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """The summary as JSON values: tuples as lists, what is not finite as null."""
    plain = _plain(dataclasses.asdict(summary))
    assert isinstance(plain, dict)
    return plain


def _summary(con: Views, looked: Tables, wanted: Settings, clock_sentence: str) -> Summary:
    data, study, info, floor = looked.data, looked.study, looked.info, looked.floor
    found = every.look(looked)
    red = light.red(found)
    judged = arms(study, floor, red)
    effects, credit = credited(study, floor)
    curves = equal_quality(study, terms.preset(info))
    scope = next((g.sentence for g in found if g.name == "scope" and g.checked), SCOPE)
    said = headline(study, judged, effects, floor, red, info, scope, curves)
    states = Counter(r.state for r in study.replicates)
    return Summary(
        schema_version=SCHEMA_VERSION,
        sweep=data.name,
        generated_utc=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        created_utc=data.created_utc,
        running=any(r.state in ("claimed", "running") for r in data.replicates),
        states=dict(sorted(states.items())),
        metric=study.metric,
        mode=study.mode,
        unit="",
        clock=study.clock,
        clock_requested=wanted.clock,
        clock_sentence=clock_sentence,
        ci=study.ci,
        delta=study.delta,
        target=info,
        noise=_noise(study),
        rho=_rho(study),
        arms=judged,
        effects=effects,
        curves=tuple(c for a, members in study.by_arm.items()
                     if (c := curve(a, study.metric, members, data.series, study.ci)) is not None),
        guards=found,
        failures=tuple(_failure(r) for r in data.replicates if r.state in LOST),
        trials=tuple(_trial_row(r) for r in data.replicates),
        provenance=_provenance(con, data, looked.silent),
        sql=statements(data.name, study),
        headline=said,
        withheld=tuple(g.name for g in red),
        equal_quality=curves,
        fronts=fronts(study),
        credit=credit,
        many=at_once(con, data, study, judged, wanted),
        pooling=study.pooling,
        box=verdict_box(looked, judged, effects, found, said, clock_sentence, curves),
        reference=on_reference_system(study, con.store.reference(data.name)),
    )  # fmt: skip


def _other(clock: str, requested: str) -> str:
    """The clock shown beside: the requested one where the headline left it, else CPU time or the train clock."""
    if clock != requested:
        return requested
    return "train_s" if clock == "cpu_s" else "cpu_s"


def _noise(study: Study) -> tuple[Noise, ...]:
    """The floor on the headline's clock first, then on the other one."""
    found = []
    for clock in dict.fromkeys((study.clock, study.other_clock, *CLOCKS)):
        floor = aa_floor(*aa_pairs(study.replicates, clock))
        sentence = noise_sentence(clock, floor)
        found.append(Noise(clock, floor.eps, floor.ratio, floor.pairs, floor.contains_one, sentence))
    return tuple(found)


def _rho(study: Study) -> dict[str, float]:
    """Mean over arms of the correlation between arm and baseline over blocks: of log-time, and of final quality."""
    found: dict[str, list[float]] = {}
    for arm, members in study.by_arm.items():
        if study.is_baseline(arm):
            continue
        for clock in dict.fromkeys((study.clock, study.other_clock)):
            pairs = study.pairs(arm, clock)
            _add(found, clock, speedup.paired(pairs.base, pairs.arm).rho)
        _add(found, study.metric, speedup.correlation(*quality_pairs(members, study.baseline_of(arm))))
    return {name: sum(values) / len(values) for name, values in found.items()}


def _add(found: dict[str, list[float]], name: str, value: float | None) -> None:
    if value is not None:
        found.setdefault(name, []).append(value)


def _failure(one: Replicate) -> Failure:
    layout = Layout(Path())
    log = layout.log(layout.attempt(one.id, one.replicate, max(one.attempts, 1)), 0)
    arm = one.arm if one.role in COMPARED else f"{one.arm} ({one.role})"
    return Failure(one.id, one.replicate, arm, one.seed, one.state, one.cause, one.message, log.as_posix())


def _trial_row(one: Replicate) -> TrialRow:
    clocks = one.clocks
    parts = {part.removesuffix("_s"): clocks[part] for part in _PARTS if clocks.get(part) is not None}
    return TrialRow(
        id=one.id,
        replicate=one.replicate,
        arm=one.arm,
        role=one.role,
        block=one.block,
        position=one.position,
        seed=one.seed,
        state=one.state,
        attempts=one.attempts,
        train_s=clocks.get("train_s"),
        cpu_s=clocks.get("cpu_s"),
        wall_s=clocks.get("wall_s"),
        setup_s=clocks.get("setup_s"),
        eval_s=clocks.get("eval_s"),
        quality=one.quality,
        timing_valid=one.timing_valid,
        timing_reasons=one.timing_reasons,
        effective=dict(one.effective),
        command=f"expkit rerun {one.id} --verify",
        parts={name: value for name, value in parts.items() if value is not None},
    )


def _provenance(con: Views, data: Sweep, silent: str) -> dict[str, Any]:
    grid = data.replicates
    return {
        "sweep_file": {"path": data.file, "sha256": data.sha256, "created_utc": data.created_utc},
        "code": {
            "code_sha": sorted({r.code_sha for r in grid if r.code_sha}),
            "versions": _versions(grid),
            "dirty": any(r.dirty for r in grid) or silent or False,
        },
        "hosts": sorted({r.host for r in grid if r.host}),
        "settings": [dict(s) for s in data.settings_found],
        "driver_runs": len({r.driver for r in grid if r.driver}),
        "set_aside": [str(entry) for entry in con.set_aside],
    }


def _versions(grid: Sequence[Replicate]) -> dict[str, list[str]]:
    """By module what replicates ran of it, expkit's own and those that recipes name."""
    modules = sorted({module for r in grid for module in r.sources})
    return {module: sorted({r.sources[module] for r in grid if module in r.sources}) for module in modules}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)
