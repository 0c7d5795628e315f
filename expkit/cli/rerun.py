"""`expkit rerun`: train a trial once more, and see whether it gives the same bits."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from expkit.cli.options import RUNS, Json, RunsDir, Trial, TrustImports, give, say


def rerun(
    trial: Trial,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare with the first result, bit by bit; exit 1 where they differ.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another driver has this machine.")] = False,
    trust_imports: TrustImports = None,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Train a trial once more as its next replicate.

    Example: expkit rerun 3f2a91c04e7b --verify
    """
    from expkit.launch.single import earlier_result, verify_replicate
    from expkit.launch.single import rerun as run_again
    from expkit.store.find import find
    from expkit.store.store import Store

    if verify:
        store = Store(runs_dir)
        id12 = find(store, trial).id12
        earlier_result(store, id12, max(store.replicates(id12), default=-1) + 1)  # before an hour is spent
    ran, recipe = run_again(trial, runs_dir, trust_imports=trust_imports or (), wait=wait)
    if not verify or ran.state not in ("complete", "diverged"):
        give({"id": ran.id12, "replicate": ran.replicate, "state": ran.state}) if as_json else print(
            f"{ran.id12} r{ran.replicate}: {ran.state}"
        )
        raise typer.Exit(ran.exit_code)
    found = verify_replicate(runs_dir, ran, recipe)
    if as_json:
        give(
            {"id": ran.id12, "replicate": ran.replicate, "same": found.difference is None, **dataclasses.asdict(found)}
        )
    elif found.difference is None:
        print(f"{ran.id12}: r{ran.replicate} equals r{found.against} bit by bit, {found.num_values} values")
    else:
        print(f"{ran.id12}: r{ran.replicate} differs from r{found.against}: {found.difference}")
    for change in found.changed:
        say(f"between them {change}")
    if found.incomparable:
        say(f"not comparable bit by bit: {found.incomparable}")
    raise typer.Exit(1 if found.difference is not None and not found.incomparable else 0)
