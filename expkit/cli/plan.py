"""`expkit plan`: what a sweep file asks for, step by step, and what of it is there already; starts nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expkit.cli.options import RUNS, Json, Preset, ReadDir, Set, SweepFile, TrustImports, give, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from expkit.launch.disk import Disk
    from expkit.launch.drive import Job
    from expkit.launch.forecast import Detects, Hours
    from expkit.launch.reconcile import Reconciled
    from expkit.launch.sources import Changed
    from expkit.plan.trial import Arithmetic, Cell
    from expkit.spec.sweep import Sweep

MOST_LOOKED_UP = 200_000
"""Replicates whose state is looked up in the store."""


def plan(
    file: SweepFile,
    cells: Annotated[bool, typer.Option("--cells", help="List every replicate in run order.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Run 20 steps of the baseline and of all on, for the hours.")
    ] = False,
    noise: Annotated[
        float | None, typer.Option("--noise", min=1e-6, max=10, help="SD of ln time between equal runs, to plan with.")
    ] = None,
    sets: Set = None,
    preset: Preset = None,
    trust_imports: TrustImports = None,
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """Show how many trials a sweep has and why, what each rule removes, and what is done, running, failed and to run.

    Also the hours, once a trial has finished or with --probe; the smallest speedup that so many arms and seeds can
    detect, at the noise of the A/A repeats or an assumed one; what a fraction cannot tell apart; and the disk that
    checkpoints take, where trainer.checkpoint keeps any.

    Example: expkit plan ablate.yaml
    """
    from expkit.plan.count import count
    from expkit.spec.files import find_file
    from expkit.spec.sweep_file import load_sweep

    sweep = load_sweep(
        find_file(file, "sweep"), presets=preset or (), overrides=sets or (), trust_imports=trust_imports or ()
    )
    counted = count(sweep)
    known = _reconciled(sweep, counted, runs_dir)
    states = _states(counted, known)
    differ = _changed_code(sweep, known, runs_dir)
    disk = _disk(sweep, counted, known, runs_dir)
    hours = _hours(sweep, states["to run"], known, runs_dir, probe)
    found, of_noise = _detects(sweep, counted, known, runs_dir, noise)
    if as_json:
        more = {"changed_code": list(differ.replicates if differ else ()), "checkpoints": _of_disk(sweep, disk),
                "hours": hours and asdict(hours), "detects": {**asdict(found), "sd_source": of_noise}}  # fmt: skip
        give({**_document(sweep, counted, states, known, cells), **more})
        return
    print("\n".join(arithmetic_lines(sweep, counted)))
    print(f"{'state':>12}  {', '.join(f'{num:,} {state}' for state, num in states.items())}")
    for job in known.late if known else ():
        print(f"{'late':>12}  the baseline runs once more in block {job.cell.block}: {job.name()}")
    if states["to run"]:
        print(f"{'hours':>12}  {hours or 'known once a trial has finished; --probe measures 20 steps of two arms'}")
    print(f"{'detects':>12}  {_told(found)}")
    print(f"{'':>12}  where ln time varies by {found.sd:.2g} between equal runs ({of_noise})")
    if disk:
        print(f"{'disk':>12}  {disk}")
    if differ:
        print(f"{'code':>12}  {differ}")
    if cells:
        print("\n".join(_cell_lines(sweep, known)))
    say(f"next: expkit sweep {file}" if states.get("to run") else f"nothing is missing; expkit report {sweep.name}")


def arithmetic_lines(sweep: Sweep, counted: Arithmetic) -> list[str]:
    """The multiplication line by line, the reason under each rule, A/A repeats on a line of their own."""
    lines = [f"sweep {sweep.name}: recipe {sweep.recipe.name}"]
    for step in counted.steps:
        lines.append(f"{step.count:>12,}  {step.text}")
        if step.because:
            lines.append(f"{'':>12}  because {step.because}")
    lines.append(f"{counted.trials:>12,}  trials over {counted.sets:,} sets in {counted.blocks:,} blocks")
    lines.append(f"{counted.repeats:>12,}  A/A repeats of the baseline {baseline(sweep)}, one a block")
    lines.append(f"{counted.replicates:>12,}  replicates in all")
    lines += [f"{head:>12}  {text}" for fraction in counted.fractions for head, text in fraction.lines()]
    lines += [f"{'orders':>12}  {counted.orders}"] if counted.orders else []
    return lines


def baseline(sweep: Sweep) -> str:
    """The baseline's set as arms are called."""
    return "+".join(sorted(level.label for level in sweep.baseline)) or "none"


def _reconciled(sweep: Sweep, counted: Arithmetic, runs_dir: Path) -> Reconciled | None:
    """How the plan compares with the store; None where there is no store or the plan is too long to look up."""
    if not runs_dir.is_dir():
        return None
    if counted.replicates > MOST_LOOKED_UP:
        say(f"the plan is longer than {MOST_LOOKED_UP:,} replicates; their states are not looked up")
        return None
    from expkit.store.store import Store
    from expkit.sweep import planned

    return planned(sweep, Store(runs_dir))


def _changed_code(sweep: Sweep, known: Reconciled | None, runs_dir: Path) -> Changed | None:
    if known is None:
        return None
    from expkit.store.store import Store
    from expkit.sweep import changed_code

    return changed_code(sweep, Store(runs_dir), known)


def _disk(sweep: Sweep, counted: Arithmetic, known: Reconciled | None, runs_dir: Path) -> Disk | None:
    from expkit.launch.disk import disk_of
    from expkit.store.store import Store

    store = Store(runs_dir) if known else None
    return disk_of(sweep.recipe, counted.replicates, store, known.jobs if known else ())


def _hours(sweep: Sweep, num: int, known: Reconciled | None, runs_dir: Path, probe: bool) -> Hours | None:
    from expkit.launch.forecast import from_finished, from_probe
    from expkit.store.store import Store

    if probe and num:
        return from_probe(sweep, num)
    return from_finished(sweep, Store(runs_dir), _done(known), known.todo) if known else None


def _detects(
    sweep: Sweep, counted: Arithmetic, known: Reconciled | None, runs_dir: Path, noise: float | None
) -> tuple[Detects, str]:
    """What the design can detect, and where the noise comes from that this rests on."""
    from expkit.launch.forecast import ASSUMED_SD, detects, measured_sd
    from expkit.store.store import Store

    if noise is not None:
        return detects(sweep, counted, noise), "as given"
    measured = measured_sd(sweep, Store(runs_dir), _done(known)) if known else None
    if measured is not None:
        return detects(sweep, counted, measured[0]), f"as {measured[1]} A/A pairs did"
    return detects(sweep, counted, ASSUMED_SD), "assumed; --noise for another"


def _told(found: Detects) -> str:
    if found.arm is None:
        return "nothing: one seed has no error to judge by"
    main = "" if found.method is None else f"x{found.method:.3f} as the main effect of a method, "
    return f"{main}x{found.arm:.3f} as the speedup of one arm (80 % power, two-sided {100 * (1 - found.level):.2g} %)"


def _done(known: Reconciled | None) -> list[Job]:
    return [job for job, state in zip(known.jobs, known.states, strict=True) if state == "complete"] if known else []


def _of_disk(sweep: Sweep, disk: Disk | None) -> dict[str, Any] | None:
    if disk is None:
        return None
    return {"keep": sweep.recipe.trainer.checkpoint.keep, "bytes": disk.bytes, "each_bytes": disk.each_bytes,
            "per_replicate": disk.per_replicate, "replicates": disk.replicates, "source": disk.source}  # fmt: skip


def _states(counted: Arithmetic, known: Reconciled | None) -> dict[str, int]:
    """Replicates done, running, failed (and the like) and to run, in this order."""
    if known is None:
        return {"done": 0, "running": 0, "failed": 0, "to run": counted.replicates}
    todo = {(job.id12, job.replicate) for job in known.todo}
    tally: Counter[str] = Counter()
    for job, state in zip(known.jobs, known.states, strict=True):
        tally["to run" if (job.id12, job.replicate) in todo else _WORDS.get(state, state)] += 1
    first = {key: tally.pop(key, 0) for key in ("done", "running", "failed")}
    return {**first, **{key: tally[key] for key in sorted(tally) if key != "to run"}, "to run": tally["to run"]}


_WORDS = {"complete": "done"}


def _document(
    sweep: Sweep, counted: Arithmetic, states: dict[str, int], known: Reconciled | None, cells: bool
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "sweep": sweep.name,
        "steps": [{"text": step.text, "count": step.count} for step in counted.steps],
        "removed": [{"rule": r.rule, "because": r.because, "count": r.count} for r in counted.removed],
        "sets": counted.sets,
        "trials": counted.trials,
        "repeats": counted.repeats,
        "blocks": counted.blocks,
        "replicates": counted.replicates,
        "fractions": [asdict(fraction) for fraction in counted.fractions],
        "orders": counted.orders and asdict(counted.orders),
        "baseline": baseline(sweep),
        "states": states,
    }
    return {**document, "cells": list(_cell_rows(sweep, known))} if cells else document


def _cell_rows(sweep: Sweep, known: Reconciled | None) -> Iterable[dict[str, Any]]:
    if known is not None:
        for job, state in zip(known.jobs, known.states, strict=True):
            yield _row(job.cell, job.replicate, state)
        return
    from expkit.plan.expand import expand

    for cell in expand(sweep):
        yield _row(cell, cell.replicate, "pending")


def _row(cell: Cell, replicate: int, state: str) -> dict[str, Any]:
    return {
        "position": cell.position,
        "block": cell.block,
        "id": cell.trial.id12,
        "replicate": replicate,
        "role": cell.role,
        "seed": cell.trial.seed,
        "arm": cell.trial.arm,
        "state": state,
    }


def _cell_lines(sweep: Sweep, known: Reconciled | None) -> Iterable[str]:
    yield f"{'position':>8} {'block':>5} {'trial':<12} {'replicate':>9} {'role':<8} {'seed':>6} {'state':<9} arm"
    for row in _cell_rows(sweep, known):
        yield (
            f"{row['position']:>8} {row['block']:>5} {row['id']:<12} {'r' + str(row['replicate']):>9} "
            f"{row['role']:<8} {row['seed']:>6} {row['state']:<9} {row['arm']}"
        )
