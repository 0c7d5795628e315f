"""`expkit run`: train one recipe on the road that sweeps take."""

from __future__ import annotations

from typing import Annotated

import typer

from expkit.cli.completion import recipes
from expkit.cli.options import RUNS, Json, Preset, RunsDir, Set, TrustImports, give, say


def run(
    recipe: Annotated[
        str,
        typer.Argument(help="A recipe file; a bare name is looked for here, then in recipes/.", autocompletion=recipes),
    ],
    sets: Set = None,
    preset: Preset = None,
    seed: Annotated[int | None, typer.Option(help="Seed, instead of the recipe's.")] = None,
    fast_dev_run: Annotated[
        bool, typer.Option("--fast-dev-run", help="Four batches only, to see that it works.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another driver has this machine.")] = False,
    trust_imports: TrustImports = None,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Train one recipe and print its final metrics. A trial that is complete already is not trained again.

    Example: expkit run fashion_resnet --fast-dev-run
    """
    from expkit.launch.single import FAST_DEV_RUN, run_recipe
    from expkit.spec.files import find_file, load_recipe

    file = find_file(recipe, "recipe")
    overrides = [
        *(sets or ()),
        *([f"seed={seed}"] if seed is not None else ()),
        *(FAST_DEV_RUN if fast_dev_run else ()),
    ]
    loaded = load_recipe(file, presets=preset or (), overrides=overrides, trust_imports=trust_imports or ())
    ran = run_recipe(file, loaded, runs_dir, trust_imports=trust_imports or (), wait=wait)
    final = ran.status.final if ran.status else {}
    if as_json:
        give({"id": ran.id12, "replicate": ran.replicate, "state": ran.state, "already": ran.already, "final": final,
              "message": ran.status.message if ran.status else None,
              "changed_modules": ran.changed.modules if ran.changed else ()})  # fmt: skip
    else:
        print(f"{ran.id12} r{ran.replicate}: {ran.state}{' already, nothing to train' if ran.already else ''}")
        for name, value in sorted(final.items()):
            print(f"  {name} {value:.6g}")
    if ran.changed:
        say(str(ran.changed))
    if ran.state == "complete":
        say(f"next: expkit rerun {ran.id12} --verify")
    raise typer.Exit(ran.exit_code)
