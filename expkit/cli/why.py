"""`expkit why`: why a replicate is in the state it is in; reads only."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from expkit.cli.options import RUNS, Json, ReadDirWithLogs, Replicate, Trial, give, say

if TYPE_CHECKING:
    from expkit.launch.why import Why


def why(trial: Trial, replicate: Replicate = None, runs_dir: ReadDirWithLogs = RUNS, as_json: Json = False) -> None:
    """Say why a trial failed, was lost, is missing or was timed badly, with its traceback and the end of its log.

    Example: expkit why 3f2a
    """
    from expkit.launch.why import replicates_to_explain
    from expkit.launch.why import why as explained
    from expkit.store.find import find
    from expkit.store.store import Store

    store = Store(runs_dir)
    found = find(store, trial if replicate is None else f"{trial} {replicate}")
    told = [explained(store, found.id12, each) for each in replicates_to_explain(store, found.id12, found.replicate)]
    if as_json:
        give([dataclasses.asdict(each) for each in told])
        return
    print("\n\n".join("\n".join(lines_of(each)) for each in told))
    say(f"next: {told[-1].next}")


def lines_of(why: Why) -> list[str]:
    """The sentence, what the trial said, what else is to be known, the end of its log."""
    from expkit.report.clean import clean_lines

    lines = [f"{why.id} r{why.replicate} {why.state}: {why.sentence}"]
    lines += [f"  {line}" for line in clean_lines(why.message or "").splitlines()]
    lines += [f"  note: {clean_lines(remark)}" for remark in why.remarks]
    if why.lines:
        lines += ["  the end of its log:", *(f"  | {line}" for line in clean_lines("\n".join(why.lines)).splitlines())]
    return [*lines, *([f"  log: {why.log}"] if why.log else [])]
