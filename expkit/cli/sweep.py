"""`expkit sweep`: run what a sweep file asks for and is not there yet, then write the report."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from expkit.cli.options import RUNS, AllowFlat, Preset, RunsDir, Set, SweepFile, TrustImports, say
from expkit.speech import unheard


class Retry(StrEnum):
    """Which settled trials run again."""

    failed = "failed"
    diverged = "diverged"
    timing = "timing"
    all = "all"


def sweep(
    file: SweepFile,
    sets: Set = None,
    preset: Preset = None,
    jobs: Annotated[
        int | None, typer.Option(help="Trials at a time; more than one needs run.timing: shared.", min=1)
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another driver has this machine.")] = False,
    retry: Annotated[
        Retry | None, typer.Option(help="Run trials again that failed, diverged or were timed badly.")
    ] = None,
    allow_flat: AllowFlat = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION", help="Run only what it picks: \"has('ema') and seed == 17\"; knows arm, too."
        ),
    ] = None,
    trust_imports: TrustImports = None,
    runs_dir: RunsDir = RUNS,
) -> None:
    """Run every trial of a sweep that has no result yet, then write its report. Calling it again goes on.

    Example: expkit sweep ablate.yaml
    """
    from expkit.spec.files import find_file
    from expkit.sweep import Request, run_sweep

    request = Request(
        runs_dir,
        preset or (),
        sets or (),
        trust_imports or (),
        jobs=jobs,
        wait=wait,
        retry=retry.value if retry else None,
        only=only,
        allow_flat=allow_flat,
    )
    swept = run_sweep(find_file(file, "sweep"), request)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(swept.states.items()))
    pilots = f" and {swept.num_pilots} as pilots" if swept.num_pilots else ""
    say(f"{swept.name}: {counts}; this call ran {swept.num_run}{pilots}")
    if swept.states["failed"] and not retry:
        say(f"to run the failed ones again: expkit sweep {file} --retry failed; why one failed: expkit why ID")
    if swept.report is None:
        say(f"interrupted; to go on: expkit sweep {file}")
    else:
        with unheard():
            print(f"report: {swept.report}")
        say(f"next: expkit report {swept.name}")
    raise typer.Exit(swept.exit_code)
