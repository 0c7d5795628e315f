"""Checkpoint saver: what `Trainer(save_folder=...)` adds, with all its settings."""

from __future__ import annotations

from dataclasses import dataclass

from expkit.trainer.checkpoint.saver import Saver


@dataclass
class CheckpointSaver(Saver):
    """Writes checkpoints that training can be resumed from: every so often, at the end, and where it is interrupted.

    Each is written aside, read again, and renamed; which old ones go is read from those on disk. Training pauses for it
    on a clock of its own. To a URI (s3://, gs://) they are uploaded in the background.
    """
