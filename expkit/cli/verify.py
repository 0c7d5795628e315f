"""`expkit verify`: look at every byte of the results, and say which files are not as they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.completion import trials
from expkit.cli.options import RUNS, Json, RunsDir, give, say

if TYPE_CHECKING:
    from expkit.store.store import Store


def verify(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID|SWEEP]", help="A trial or a sweep; everything where none is given.", autocompletion=trials
        ),
    ] = None,
    runs_dir: RunsDir = RUNS,
    as_json: Json = False,
) -> None:
    """Look at every byte of metrics, records and checkpoints; exit code 1 where one is not as it was written.

    Example: expkit verify --runs-dir runs
    """
    from expkit.errors import ExpkitError, UsageError
    from expkit.launch.verify import verify as files
    from expkit.store.store import Store

    if not runs_dir.exists():
        raise UsageError(f"there are no results in {runs_dir} yet; --runs-dir names another folder")
    store = Store(runs_dir)
    found = list(files(store, _ids(store, what)))
    damaged = [(path, reason) for path, reason in found if reason is not None]
    if as_json:
        give({"files": len(found), "damaged": [{"path": str(path), "reason": reason} for path, reason in damaged]})
    else:
        for path, reason in damaged:
            print(f"{path}: {reason}")
    say(f"{len(found):,} files and checkpoints looked at, {len(damaged)} of them damaged")
    if damaged:
        raise ExpkitError("what is damaged counts for nothing; take it from a copy, or run its trials again")


def _ids(store: Store, what: str | None) -> set[str] | None:
    """The trials that are meant; None means all."""
    from expkit.errors import UsageError
    from expkit.store.find import NoTrial, find, find_sweep

    if what is None:
        return None
    try:
        return {row.id for row in store.read_plan(find_sweep(store, what))}
    except UsageError as no_sweep:
        try:
            return {find(store, what).id12}
        except NoTrial:
            raise UsageError(f"there is no trial {what!r}, and it is an {no_sweep}") from None
