"""`expkit tag`: words on a trial, to find it by."""

from __future__ import annotations

from typing import Annotated

import typer

from expkit.cli.options import RUNS, Json, RunsDir, Trial, give, say


def tag(
    trial: Trial,
    tags: Annotated[list[str] | None, typer.Argument(metavar="TAG...", help="What to add.")] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", "-r", metavar="TAG", help="What to take away; repeatable.")
    ] = None,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Tag a trial, or show its tags; expkit list trials --where "list_contains(tags, 'keep')" finds it. They stand in
    the view `notes`; a tagged trial is never garbage.

    Example: expkit tag 3f2a keep paper-fig2
    """
    from expkit.store import notes
    from expkit.store.find import find
    from expkit.store.store import Store

    store = Store(runs_dir)
    id12 = find(store, trial).id12
    if tags or remove:
        now = notes.tag(store, id12, tags or (), remove or ())
    else:
        now = notes.read(store.layout, id12, store.set_aside)
    if as_json:
        give({"id": id12, "tags": now.tags})
    elif now.tags:
        print(" ".join(now.tags))
    else:
        say(f"{id12} has no tags")
