"""Saver: decides when a checkpoint is written, and where. The trainer makes one for `save_folder`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.errors import Interruption, UsageError
from expkit.trainer.callback import Callback


@dataclass
class Saver(Callback):
    """Writes checkpoints: every so often, at the end, and where training is interrupted; no batch is saved twice."""

    alone_in = "folder"

    folder: str = "{run_name}/checkpoints"
    """Path or URI; may use {run_name} and the placeholders of ranks."""
    name: str = "ep{epoch}-ba{batch}"
    """Of each checkpoint; may use counters of the moment as well, such as {sample} or {total_wct}."""
    save_interval: Time | None = field(default=Time(1, TimeUnit.EPOCH))
    """Distance between two checkpoints; null saves at the end only."""
    keep_last: Annotated[int, Field(ge=1)] | None = None
    """How many of the newest stay on disk; all where it is not given."""
    keep_best: Annotated[int, Field(ge=0)] = 0
    """How many of the best stay beside the last, of those evaluated at the batch they were saved at."""
    best_metric: str = ""
    """What the best are best in, such as eval/accuracy."""
    best_mode: Literal["max", "min"] = "max"
    """Whether more or less of it is better."""
    weights_only: bool = False
    """Whether the weights of the model are all that is saved; nothing can be resumed from them."""
    overwrite: bool = False
    """Whether training may begin in a folder that has checkpoints from later than where it begins."""
    _files: Any = field(default=None, init=False, repr=False, compare=False)
    _every: Any = field(default=None, init=False, repr=False, compare=False)
    _saved_at: Any = field(default=-1, init=False, repr=False, compare=False)
    _waiting: Any = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep_best and not self.best_metric:
            raise ValueError("keep_best needs best_metric, such as eval/accuracy")
        if self.keep_best and self.keep_last is None:
            raise ValueError("keep_best needs keep_last, for without it all checkpoints stay")

    def init(self, state: Any, logger: Any) -> None:
        self._files, self._saved_at = None, -1  # it may have been part of another training

    def place(self, state: Any) -> Any:
        """The folder of checkpoints of this run."""
        from expkit.trainer.checkpoint.folders import open_folder
        from expkit.trainer.checkpoint.names import folder_of

        if self._files is None:
            self._files = open_folder(folder_of(self.folder, state))
        return self._files

    def fit_start(self, state: Any, logger: Any) -> None:
        from expkit.trainer.checkpoint.config import config_of
        from expkit.trainer.checkpoint.find import decided
        from expkit.trainer.checkpoint.names import name_of
        from expkit.trainer.interval import Every

        name_of(self.name, state)  # a placeholder that there is not is better known now
        config_of(state)
        self._every = None if self.save_interval is None else Every(self.save_interval, state)
        self._waiting = False
        files = self.place(state)
        decided(files.claim)
        decided(lambda: self._refuse_later_ones(state))

    def eval_after_all(self, state: Any, logger: Any) -> None:
        evaluated = any(self.best_metric.startswith(f"{label}/") for label in state.evaluated_at)
        if self.keep_best and evaluated and self.best_metric not in state.metrics:
            raise UsageError(self._no_metric(state))

    def batch_checkpoint(self, state: Any, logger: Any) -> None:
        self._files.raise_errors()
        if self._every is None or not self._every.due(state) or state.progress >= 1:
            return  # what ends training saves at its very end
        if state.timestamp.batch_in_epoch == state.steps_per_epoch:
            self._waiting = True  # for the epoch to be over
        else:
            self._save(state, logger)

    def epoch_checkpoint(self, state: Any, logger: Any) -> None:
        if self._waiting:
            self._waiting = False
            self._save(state, logger)

    def fit_end(self, state: Any, logger: Any) -> None:
        self._save(state, logger)
        self._files.release()
        if self.keep_best and self.best_metric not in state.metrics:
            warnings.warn(self._no_metric(state), stacklevel=2)

    def fit_error(self, state: Any, logger: Any) -> None:
        try:
            if isinstance(state.error, Interruption):  # comes at the end of a batch, so the state is whole
                self._save(state, logger)
        finally:
            if self._files is not None:
                self._files.release()

    def close(self) -> None:
        if self._files is not None:
            self._files.release()
            self._files.close()

    def _save(self, state: Any, logger: Any) -> None:
        from expkit.trainer.checkpoint.keep import Keep
        from expkit.trainer.checkpoint.names import name_of
        from expkit.trainer.checkpoint.save import save

        if self._saved_at == state.timestamp.batch or state.stop_reason == "diverged":
            return  # nobody goes on from nan, and what was good stays
        keep = Keep(self.keep_last, self.keep_best, self.best_metric, self.best_mode)
        address = save(state, self.place(state), name_of(self.name, state), keep, weights_only=self.weights_only)
        self._saved_at = state.timestamp.batch
        logger.log_event("checkpoint", {"address": address})

    def _no_metric(self, state: Any) -> str:
        return f"best_metric is {self.best_metric!r}, but the evaluators gave {', '.join(state.metrics) or 'nothing'}"

    def _refuse_later_ones(self, state: Any) -> None:
        from expkit.trainer.checkpoint.find import refuse_newer

        if self.overwrite or state.resumed_from is not None:
            return
        found, wrong = self._files.found()
        refuse_newer(wrong)
        later = [one for one in found if one.manifest.timestamp.batch > state.timestamp.batch]
        if later:
            last = self._files.address(later[-1].name)
            raise UsageError(f"training begins at batch {state.timestamp.batch}, but there is {last} already; resume "
                             f"from it, choose another folder or run_name, or allow overwrite")  # fmt: skip
