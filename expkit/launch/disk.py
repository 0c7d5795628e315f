"""Disk: how much of it the checkpoints of a plan take: as a trial of it has them, else estimated from its recipe."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from expkit import plugins
from expkit.errors import CheckpointError
from expkit.launch.drive import Job
from expkit.launch.resume import checkpoints, size
from expkit.spec.recipe import Recipe
from expkit.store.store import Store

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Disk:
    """What the checkpoints take when all replicates are complete; a trial that runs has one more while it saves."""

    replicates: int
    per_replicate: int
    """How many stay of each."""
    each_bytes: int | None
    """None where nobody can say before the first is there."""
    source: str
    """How that is known."""

    @property
    def bytes(self) -> int | None:
        """Of all together."""
        return None if self.each_bytes is None else self.replicates * self.per_replicate * self.each_bytes

    def __str__(self) -> str:
        counted = f"{self.replicates:,} replicates x {self.per_replicate}"
        if self.each_bytes is None or self.bytes is None:
            return f"checkpoints of {counted}, of a size that is {self.source}"
        return f"about {in_words(self.bytes)} of checkpoints: {counted} of {in_words(self.each_bytes)}, {self.source}"


def disk_of(recipe: Recipe, replicates: int, store: Store | None, jobs: Iterable[Job]) -> Disk | None:
    """Of a plan whose baseline this recipe is; None where nothing is kept."""
    keep = recipe.trainer.checkpoint.keep
    if keep == "none":
        return None
    measured = _measured(store, jobs) if store is not None else None
    each_bytes, source = measured or _estimated(recipe)
    return Disk(replicates, 2 if keep == "best" else 1, each_bytes, source)


def in_words(num_bytes: float) -> str:
    """`27 kB`, `1.3 GB`: two or three digits."""
    value, unit = float(num_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 9.95 else f"{value:.1f} {unit}"


def _measured(store: Store, jobs: Iterable[Job]) -> tuple[int, str] | None:
    for job in jobs:
        with contextlib.suppress(CheckpointError, OSError):
            for path in checkpoints(store, job.id12, job.replicate)[-1:]:
                return size(path), f"as trial {job.id12} r{job.replicate} has it"
    return None


def _estimated(recipe: Recipe) -> tuple[int | None, str]:
    """From the baseline's model and optimizer; code of the user's own is not imported for it."""
    parts = (recipe.model, recipe.optimizer)
    if any(plugins.is_import_path(part.name) for part in parts):
        return None, "known when the first trial has saved one"
    asked = {kind: [part.name, dict(part.settings)] for kind, part in zip(("model", "optimizer"), parts, strict=True)}
    command = [sys.executable, "-P", "-m", "expkit.launch.weigh"]
    try:
        done = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
        weighed = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError):
        return None, "known when the first trial has saved one"
    source = f"estimated from {weighed['parameters']:,} parameters and {recipe.optimizer.name}"
    return weighed["bytes"], f"{source}; methods that keep copies take more"
