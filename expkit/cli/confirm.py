"""`expkit confirm`: run the best arms of a sweep again on fresh seeds, judged on the test split."""

from __future__ import annotations

from typing import Annotated

import typer

from expkit.cli.options import RUNS, Preset, RunsDir, Set, SweepFile, TrustImports, say
from expkit.cli.sweep import Retry
from expkit.speech import unheard


def confirm(
    file: SweepFile,
    top: Annotated[int | None, typer.Option(help="How many of the fastest arms. [3]", min=1)] = None,
    seeds: Annotated[int | None, typer.Option(help="How many fresh seeds. [5]", min=2)] = None,
    arm: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Confirm this arm instead of the fastest; repeatable.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Begin another confirmation, on other seeds; the report counts them.")
    ] = False,
    sets: Set = None,
    preset: Preset = None,
    jobs: Annotated[
        int | None, typer.Option(help="Trials at a time; more than one needs run.timing: shared.", min=1)
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another driver has this machine.")] = False,
    retry: Annotated[
        Retry | None, typer.Option(help="Run trials again that failed, diverged or were timed badly.")
    ] = None,
    trust_imports: TrustImports = None,
    runs_dir: RunsDir = RUNS,
) -> None:
    """Run the best arms of a sweep again on seeds that chose nothing, judge them on test data, and write the report.

    Arms and seeds are settled at the first call; calling it again goes on with them.

    Example: expkit confirm ablate.yaml --top 3 --seeds 5
    """
    from expkit.errors import UsageError
    from expkit.launch.confirmation import Wanted
    from expkit.spec.files import find_file
    from expkit.sweep import Request, run_confirm

    if arm and top is not None:
        raise UsageError("--arm names the arms that --top would choose; give one of the two")
    request = Request(
        runs_dir, preset or (), sets or (), trust_imports or (), jobs=jobs, wait=wait,
        retry=retry.value if retry else None,
    )  # fmt: skip
    swept = run_confirm(find_file(file, "sweep"), request, Wanted(top, seeds, tuple(arm or ()), again))
    counts = ", ".join(f"{count} {state}" for state, count in sorted(swept.states.items()))
    say(f"{swept.name} on fresh seeds: {counts}; this call ran {swept.num_run}")
    if swept.states["failed"] and not retry:
        say(f"to run the failed ones again: expkit confirm {file} --retry failed; why one failed: expkit why ID")
    if swept.report is None:
        say(f"interrupted; to go on: expkit confirm {file}")
    else:
        with unheard():
            print(f"report: {swept.report}")
        say(f"next: expkit report {swept.name}")
    raise typer.Exit(swept.exit_code)
