"""Account: all that the store has of one trial, as one JSON value; what `expkit show` prints. Reads, starts nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from expkit.launch.progress import progress_of
from expkit.launch.resume import checkpoints, continued
from expkit.store.records import Status
from expkit.store.store import Store


def account(store: Store, id12: str, only: int | None = None) -> dict[str, Any]:
    """Arm, seed, methods, configuration, sweeps, and each replicate; one replicate where `only` names it."""
    record = store.read_trial(id12)
    replicates = [r for r in store.replicates(id12) if only is None or r == only]
    return {
        "id": id12,
        "full_id": record.id if record else None,
        "arm": record.label if record else None,
        "algorithms": record.algorithms if record else [],
        "seed": record.seed if record else None,
        "sweeps": sweeps_of(store, id12),
        "replicates": [_replicate(store, id12, replicate) for replicate in replicates],
        "config": record.config if record else None,
        "recipe": str(store.layout.recipe(id12)),
    }


def sweeps_of(store: Store, id12: str) -> list[dict[str, Any]]:
    """Which replicates of the trial each sweep uses, as what; `position` is the place in its run order."""
    return [
        {"sweep": name, "file": store.sweep_record(name).get("file") or name, "replicate": row.replicate,
         "role": row.role, "arm": row.arm, "block": row.block, "position": row.position, "of": len(plan)}
        for name in store.sweeps() for plan in [store.read_plan(name)] for row in plan if row.id == id12
    ]  # fmt: skip


def next_command(store: Store, id12: str, replicate: int, state: str, sweeps: list[dict[str, Any]]) -> str:
    """What a person would like to do about a replicate in this state."""
    if state in ("claimed", "running"):
        return f"expkit logs {id12} r{replicate} -f"
    if state == "complete":
        return f"expkit rerun {id12} --verify"
    file, role = next(
        ((s["file"], s["role"]) for s in sweeps if s["replicate"] == replicate and s["role"] != "pilot"), (None, "")
    )
    if file is None and replicate == 0 and state in ("interrupted", "lost"):
        return f"expkit run {store.layout.recipe(id12)}"
    if file is None:
        return f"expkit rerun {id12}"
    command = "confirm" if role == "confirm" else "sweep"
    return f"expkit {command} {file}{f' --retry {state}' if state in ('failed', 'diverged') else ''}"


def _replicate(store: Store, id12: str, replicate: int) -> dict[str, Any]:
    state, status = store.look(id12, replicate)
    attempts = store.attempts(id12, replicate)
    folder = store.layout.replicate(id12, replicate)
    log = store.layout.log(store.layout.attempt(id12, replicate, attempts[-1]), 0) if attempts else None
    begun = continued(store, id12, replicate)
    batch, num_batches = progress_of(store.layout, id12, replicate)
    return {
        "replicate": replicate,
        "state": state,
        "batch": batch,
        "num_batches": num_batches,
        "attempts": len(attempts),
        "folder": str(folder),
        "log": str(log) if log is not None and log.exists() else None,
        "continued": [dataclasses.asdict(one) for one in begun],
        "began": [one.sentence() for one in begun],
        "checkpoints": [str(path) for path in checkpoints(store, id12, replicate)],
        **(_of_status(status) if status else {}),
    }


def _of_status(status: Status) -> Mapping[str, Any]:
    names = ("cause", "message", "created_utc", "started_utc", "ended_utc", "setting", "setting_hash", "timing_valid",
             "timing_reasons", "effective", "code_sha", "sources", "dirty", "reference_s", "phases", "clocks",
             "final")  # fmt: skip
    return {name: getattr(status, name) for name in names}
