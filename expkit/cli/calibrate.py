"""`expkit calibrate`: the time of the reference workload on this host, and arms of a sweep in reference system time."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.completion import sweeps
from expkit.cli.options import RUNS, Json, ReadDir, give, say

if TYPE_CHECKING:
    from expkit.analysis.reference_arms import ArmTime
    from expkit.launch.calibrate import Calibration


def calibrate(
    sweep: Annotated[
        str | None,
        typer.Argument(help="A sweep whose arms to tell in the time of this host.", autocompletion=sweeps),
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often the workload is timed; each takes a fifth of a second.")] = 20,
    threads: Annotated[int, typer.Option(help="Threads of the workload, as runtime.threads of the recipe.")] = 1,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while a driver has this machine.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write it to this file.")] = None,
    reference: Annotated[
        Path | None, typer.Option(help="A file that this command wrote on the reference system; nothing is timed.")
    ] = None,
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """Time the reference workload on this host, and say what a sweep's arms would have taken here.

    Every trial times the same workload before and after itself, so its seconds can be told in those of one host.

    Example: expkit calibrate ablate --reference bench1.json
    """
    from expkit.launch.calibrate import Calibration, calibrate

    found = Calibration.read(reference) if reference is not None else calibrate(rounds, threads, wait=wait, on_wait=say)
    if output is not None:
        found.write(output)
    arms = _arms(sweep, found, runs_dir) if sweep is not None else ()
    if as_json:
        give({**found.to_json(), "doubts": found.doubts, "arms": [dataclasses.asdict(arm) for arm in arms]})
    else:
        print("\n".join(lines_of(found, arms)))
    for doubt in found.doubts:
        say(f"a poor reference: {doubt}")
    say(f"next: expkit calibrate SWEEP --reference {output}" if output else "next: expkit calibrate -o reference.json")


def _arms(sweep: str, found: Calibration, runs_dir: Path) -> tuple[ArmTime, ...]:
    from expkit.analysis.reference_arms import on_reference
    from expkit.errors import UsageError
    from expkit.store.find import find_sweep
    from expkit.store.query import connect
    from expkit.store.store import Store

    name = find_sweep(Store(runs_dir), sweep)
    with connect(runs_dir) as con:
        arms = on_reference(con, name, found.cpu_s)
    if not arms:
        raise UsageError(f"no complete trial of {name} has timed the reference workload beside itself")
    return arms


def lines_of(found: Calibration, arms: tuple[ArmTime, ...]) -> list[str]:
    """The host, then a row an arm."""
    from expkit.analysis.phrases import count, factor, seconds
    from expkit.report.clean import clean

    took = f"{1000 * found.cpu_s:.4g} ms of CPU time +- {1000 * 1.4826 * found.mad_s:.2g} ms"
    how = f"{count(found.rounds, 'round')}, {count(found.threads, 'thread')}, torch {found.torch}, {found.utc}"
    lines = [f"{found.host}: {took} for the reference workload ({how})"]
    for arm in arms:
        ratio = f", {factor(arm.speedup)}" if arm.speedup.value is not None else ""
        where = f" of {count(arm.hosts, 'host')}" if arm.hosts > 1 else ""
        lines.append(f"  {clean(arm.arm)}: {seconds(arm.seconds)} there ({count(arm.trials, 'trial')}{where}){ratio}")
    return lines
