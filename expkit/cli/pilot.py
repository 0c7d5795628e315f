"""`expkit pilot`: fix a sweep's target from baseline runs on seeds of their own, before anything else runs."""

from __future__ import annotations

from typing import Annotated

import typer

from expkit.cli.options import RUNS, AllowFlat, Json, Preset, RunsDir, Set, SweepFile, TrustImports, give, say


def pilot(
    file: SweepFile,
    sets: Set = None,
    preset: Preset = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a target file that is there.")] = False,
    allow_flat: AllowFlat = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another driver has this machine.")] = False,
    trust_imports: TrustImports = None,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Train the baseline on pilot seeds and write NAME.target.json beside the sweep file, to be committed with it.

    Example: expkit pilot ablate.yaml
    """
    from expkit.launch import targets
    from expkit.spec.files import find_file
    from expkit.sweep import Request, run_pilot

    request = Request(runs_dir, preset or (), sets or (), trust_imports or (), wait=wait, allow_flat=allow_flat)
    path = run_pilot(find_file(file, "sweep"), request, force=force)
    target = targets.read(path)
    if as_json:
        give({"file": str(path), **target})
    else:
        finals = ", ".join(f"{final:.4g}" for final in target["finals"])
        print(f"{target['metric']} {target['value']:.4g}: {target['rule']} of {finals}, written to {path}")
        rungs = ", ".join(f"{100 * share:g} % {quality:.4g}" for share, quality in target["ladder"])
        print(f"hash {target['hash']}, {target['utc'][:10]}; ladder of the median gain: {rungs or 'none'}")
        if target.get("flat"):
            say("this target is too flat to time anything, as allowed: times to it are exploratory")
        say(f"next: git add {path}; expkit sweep {file}")
