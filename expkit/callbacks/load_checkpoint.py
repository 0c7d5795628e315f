"""Load checkpoint: begin with what another training has saved."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from expkit.trainer.callback import Callback


@dataclass
class LoadCheckpoint(Callback):
    """Takes up a checkpoint before training begins: weights that were trained before, say, from as many as one likes.

    What the trainer loads itself, to resume, is loaded afterwards and stays.
    """

    changes_training = True

    path: Path
    """Folder of the checkpoint, or of several, of which the newest whole one is taken."""
    weights_only: bool = True
    """Whether only the weights of the model are taken, or optimizer, counters and all the rest as well."""
    strict: bool = True
    """Whether every name must be on both sides; without it, what fits is taken."""
    ignore_keys: list[str] = field(default_factory=list)
    """Globs over paths in the checkpoint, such as model/head.*; what they match is left as it is here."""

    def before_load(self, state: Any, logger: Any) -> None:
        from expkit.trainer.checkpoint.load import load

        loaded = load(state, str(self.path), weights_only=self.weights_only, strict=self.strict,
                      ignore_keys=self.ignore_keys)  # fmt: skip
        logger.log_event("load", {"address": loaded.address, "batch": loaded.manifest.timestamp.batch})
