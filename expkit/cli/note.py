"""`expkit note`: a sentence on a trial."""

from __future__ import annotations

from typing import Annotated

import typer

from expkit.cli.options import RUNS, Json, RunsDir, Trial, give, say


def note(
    trial: Trial,
    text: Annotated[str | None, typer.Argument(help="What to say of it; an empty text takes the note back.")] = None,
    append: Annotated[bool, typer.Option("--append", "-a", help="After what was said before.")] = False,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Write a note on a trial, or show it. It stands in the view `notes`.

    Example: expkit note 3f2a "loss spikes at batch 900; see the second seed"
    """
    from expkit.report.clean import clean_lines
    from expkit.store import notes
    from expkit.store.find import find
    from expkit.store.store import Store

    store = Store(runs_dir)
    id12 = find(store, trial).id12
    if text is None:
        now = notes.read(store.layout, id12, store.set_aside)
    else:
        now = notes.note(store, id12, text, append=append)
    if as_json:
        give({"id": id12, "note": now.note})
    elif now.note:
        print(clean_lines(now.note))
    else:
        say(f"{id12} has no note")
