"""`expkit compact`: fold the metrics of finished trials into a few large files, so that questions are quick."""

from __future__ import annotations

import dataclasses

from expkit.cli.options import RUNS, Json, RunsDir, give, say


def compact(runs_dir: RunsDir = RUNS, as_json: Json = False) -> None:
    """Fold the metrics of finished trials into large files; safe while trials run, readers read, and after a kill.

    Example: expkit compact --runs-dir runs
    """
    from expkit.errors import ExpkitError, UsageError
    from expkit.report.numbers import count
    from expkit.store.compact import compact as compact_store
    from expkit.store.store import Store

    if not runs_dir.exists():
        raise UsageError(f"there are no results in {runs_dir} yet; --runs-dir names another folder")
    done = compact_store(Store(runs_dir))
    if as_json:
        damaged = [{"path": str(bad.path), "reason": bad.reason} for bad in done.damaged]
        give({**dataclasses.asdict(done), "damaged": damaged})
    elif done.files:
        files, removed = count(done.files, "file"), count(done.parts, "file")
        print(f"{count(done.rows, 'row')} of {count(done.attempts, 'attempt')} in {files}; {removed} removed")
    else:
        say("there is nothing to compact: what is finished is compacted already")
    for bad in done.damaged:
        say(f"left as it is: {bad}")
    if done.damaged:
        raise ExpkitError("some files are not as they were written; expkit verify looks at all")
