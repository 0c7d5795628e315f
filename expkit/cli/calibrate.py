"""`expkit calibrate`: what work takes on this host, and arms of a sweep in reference system time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.completion import sweeps
from expkit.cli.options import RUNS, Json, RunsDir, TrustImports, give, say

if TYPE_CHECKING:
    from expkit.analysis.estimates import OnReference
    from expkit.analysis.reference_arms import ArmTime
    from expkit.launch.calibrate import Calibration


def calibrate(
    sweep: Annotated[
        str | None,
        typer.Argument(help="A sweep whose arms to tell in the time of this host.", autocompletion=sweeps),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of each phase of each arm that are timed at least.")] = 200,
    rounds: Annotated[int, typer.Option(help="How often the workload is timed; each takes a fifth of a second.")] = 20,
    threads: Annotated[int, typer.Option(help="Threads of the workload, as runtime.threads of the recipe.")] = 1,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while a driver has this machine.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write it to this file.")] = None,
    reference: Annotated[
        Path | None, typer.Option(help="A file that this command wrote on the reference system; nothing is timed.")
    ] = None,
    trust_imports: TrustImports = None,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Time this host, and with a sweep each phase of each arm; then say what the arms' trials would have taken here.

    Steps of one shape, or of one kind such as those that score a batch first, are a phase. The table is kept with the
    sweep, and its report shows the speedups on this host beside the measured ones.

    Example: expkit calibrate ablate -o bench1.json
    """
    from expkit.launch.calibrate import Calibration

    name = _named(sweep, runs_dir) if sweep is not None else ""
    found = Calibration.read(reference) if reference is not None else _timed(
        name, runs_dir, steps, rounds, threads, trust_imports or [], wait=wait)  # fmt: skip
    if output is not None:
        found.write(output)
    arms, told = _arms(name, found, runs_dir) if name else ((), None)
    if as_json:
        arms_json = [dataclasses.asdict(arm) for arm in arms]
        give({**found.to_json(), "doubts": found.doubts, "arms": arms_json,
              "by_phases": dataclasses.asdict(told) if told is not None else None})  # fmt: skip
    else:
        print("\n".join(lines_of(found, arms, told)))
    for doubt in found.doubts:
        say(f"a poor reference: {doubt}")
    say(f"next: expkit report {name}" if told else "next: expkit calibrate SWEEP --reference FILE")


def _named(sweep: str, runs_dir: Path) -> str:
    from expkit.store.find import find_sweep
    from expkit.store.store import Store

    return find_sweep(Store(runs_dir), sweep)


def _timed(
    name: str, runs_dir: Path, steps: int, rounds: int, threads: int, trust_imports: Sequence[str], *, wait: bool
) -> Calibration:
    from expkit.launch.calibrate import Order, calibrate, courses
    from expkit.launch.trials import python_path
    from expkit.spec.trust import read_trust
    from expkit.store.store import Store

    trust = read_trust(Path.cwd(), trust_imports)
    asked = courses(Store(runs_dir), name) if name else []
    order = Order(rounds, threads, asked, steps, trust.patterns, python_path(trust))
    return calibrate(order, wait=wait, on_wait=say)


def _arms(name: str, found: Calibration, runs_dir: Path) -> tuple[tuple[ArmTime, ...], OnReference | None]:
    """(by the workload beside each trial, by phases); the table is kept with the sweep where it has its arms."""
    from expkit.analysis.reference_arms import on_reference
    from expkit.analysis.summary import summarise
    from expkit.errors import UsageError
    from expkit.store.query import connect
    from expkit.store.store import Store

    store = Store(runs_dir)
    own = {one.arm for one in found.phases} & {row.arm for row in store.read_plan(name)}  # not those of another sweep
    if own:
        store.write_reference(name, found.to_json())
    with connect(runs_dir) as con:
        arms = on_reference(con, name, found.cpu_s)
        told = summarise(con, name).reference if own else None
    if not arms and told is None:
        raise UsageError(f"no complete trial of {name} has timed the reference workload beside itself")
    return arms, told


def lines_of(found: Calibration, arms: Sequence[ArmTime], told: OnReference | None) -> list[str]:
    """The host, then a row an arm: by its phases where they were timed, else by the workload."""
    from expkit.analysis.phrases import count, factor, seconds, significant
    from expkit.report.clean import clean

    spread = significant(1000 * 1.4826 * found.mad_s, 2)
    took = f"{significant(1000 * found.cpu_s, 4)} ms of CPU time +- {spread} ms"
    how = f"{count(found.rounds, 'round')}, {count(found.threads, 'thread')}, torch {found.torch}, {found.utc}"
    lines = [f"{found.host}: {took} for the reference workload ({how})"]
    if told is not None:
        for one in told.arms:
            ratio = f", {factor(one.speedup)}" if one.speedup.value is not None else ""
            timed = f"{count(one.trials, 'trial')}, {count(one.timed, 'step')} timed"
            lines.append(f"  {clean(one.arm)}: {seconds(one.seconds)} there ({timed}){ratio}")
        return [*lines, told.sentence]
    for arm in arms:
        ratio = f", {factor(arm.speedup)}" if arm.speedup.value is not None else ""
        where = f" of {count(arm.hosts, 'host')}" if arm.hosts > 1 else ""
        lines.append(f"  {clean(arm.arm)}: {seconds(arm.seconds)} there ({count(arm.trials, 'trial')}{where}){ratio}")
    return lines
