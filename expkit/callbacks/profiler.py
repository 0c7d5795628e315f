"""Profiler: where the time of a few batches goes, as Chrome traces; chrome://tracing and ui.perfetto.dev show them.

A batch that is profiled takes longer, one of a small model twice as long; any other costs a microsecond or two.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from expkit.errors import EnvironmentFault
from expkit.trainer.callback import Callback

Count = Annotated[int, Field(ge=0)]


@dataclass
class Profiler(Callback):
    """Writes a trace of `active` batches after `wait` and `warmup` batches, `repeat` times, one file a rank and cycle.

    Besides operators a trace shows the parts of a batch: data, batch, forward, loss, backward, optimizer, evaluation.
    Goes together with `auto` microbatches: a batch that is tried again shows each try, `forward, again`.
    """

    folder: str = "{run_name}/profile"
    """Where traces are written, with placeholders as for checkpoints: `rank0-ba2-5.trace.json` of batches 2 to 5.

    Loggers that keep files get a copy; that of a trial puts it into its attempt's folder.
    """
    wait: Count = 0
    """Batches at the start of a cycle that are left alone."""
    warmup: Count = 1
    """Batches after them that are profiled and thrown away, since starting to profile disturbs."""
    active: Annotated[int, Field(ge=1)] = 4
    """Batches after them that are kept."""
    repeat: Count = 1
    """Number of cycles in the whole training, over all epochs; 0 goes on to its end."""
    skip_first: Count = 0
    """Batches before the first cycle."""
    num_traces_to_keep: Annotated[int, Field(ge=1)] | None = None
    """How many files of this run stay, the newest; null keeps all."""
    compress: bool = False
    """Whether files are written as .json.gz, a tenth of the size."""
    record_shapes: bool = False
    """Whether the shapes of operators' inputs are recorded."""
    profile_memory: bool = False
    """Whether allocations are recorded, in bytes."""
    with_stack: bool = False
    """Whether source lines are recorded, which is slow."""
    with_flops: bool = False
    """Whether floating-point operations of matrix products and convolutions are estimated."""
    _session: Any = field(default=None, init=False, repr=False, compare=False)
    _said: Any = field(default=False, init=False, repr=False, compare=False)
    _written: Any = field(default_factory=list, init=False, repr=False, compare=False)

    def fit_start(self, state: Any, logger: Any) -> None:
        from expkit.trainer.checkpoint.names import folder_of

        folder = Path(folder_of(self.folder, state)).absolute()
        there = next(path for path in (folder, *folder.parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):  # better known now than after a cycle
            raise EnvironmentFault(
                f"the profiler cannot write to {folder}: {there} is no folder that may be written to"
            )

    def before_dataloader(self, state: Any, logger: Any) -> None:
        place = self._place(state.timestamp.batch)
        if place < self.wait:
            return
        if self._session is None:
            self._begin(state)
        if self._session and place >= self.wait + self.warmup:
            self._session.next_batch(state.timestamp.batch)
            self._session.mark("data")

    def batch_start(self, state: Any, logger: Any) -> None:
        self._mark("batch")

    def before_forward(self, state: Any, logger: Any) -> None:
        self._mark("forward", first=state.microbatch == 0)

    def before_loss(self, state: Any, logger: Any) -> None:
        self._mark("loss")

    def before_backward(self, state: Any, logger: Any) -> None:
        self._mark("backward")

    def after_train_batch(self, state: Any, logger: Any) -> None:
        self._mark("optimizer")

    def batch_end(self, state: Any, logger: Any) -> None:
        self._mark(None)

    def eval_before_all(self, state: Any, logger: Any) -> None:
        self._mark("evaluation")

    def eval_after_all(self, state: Any, logger: Any) -> None:
        self._mark(None)

    def batch_checkpoint(self, state: Any, logger: Any) -> None:
        if self._session and self._place(state.timestamp.batch - 1) == self._cycle - 1:
            self._finish(state, logger)

    def fit_end(self, state: Any, logger: Any) -> None:
        self._finish(state, logger)

    def fit_error(self, state: Any, logger: Any) -> None:
        self._finish(state, logger)

    @property
    def _cycle(self) -> int:
        return self.wait + self.warmup + self.active

    def _place(self, batch: int) -> int:
        """Where in a cycle a batch is, by its number in the whole training from 0; -1 outside of all cycles."""
        cycle, place = divmod(batch - self.skip_first, self._cycle)
        return place if cycle >= 0 and (not self.repeat or cycle < self.repeat) else -1

    def _mark(self, name: str | None, *, first: bool = False) -> None:
        if self._session:
            self._session.mark(name, first=first)

    def _begin(self, state: Any) -> None:
        if not _Session.possible():
            if not self._said:
                logging.getLogger(__name__).warning(
                    "the profiler waits: a process has one at a time, and one is at work"
                )
            self._said = True
            return
        self._session = _Session(self._profile(state))

    def _profile(self, state: Any) -> Any:
        from torch.profiler import ProfilerActivity, profile

        cuda = [ProfilerActivity.CUDA] if state.device.type == "cuda" else []
        return profile(activities=[ProfilerActivity.CPU, *cuda], record_shapes=self.record_shapes,
                       profile_memory=self.profile_memory, with_stack=self.with_stack,
                       with_flops=self.with_flops)  # fmt: skip

    def _finish(self, state: Any, logger: Any) -> None:
        """End what is under way and write it, where a batch of it was to be kept; a cycle may have been cut short."""
        session, self._session = self._session, None
        if session is None or not session.stop():
            return
        last = max(session.first, state.timestamp.batch)
        name = f"rank{state.rank}-ba{session.first}-{last}.trace.json{'.gz' if self.compress else ''}"
        from expkit.trainer.checkpoint.names import folder_of

        folder = Path(folder_of(self.folder, state))
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f".{os.getpid()}-{name}"
        session.profile.export_chrome_trace(str(aside))
        logger.upload_file(f"profile/{name}", aside)
        aside.replace(folder / name)
        logger.log_event("profile", {"file": str(folder / name)})
        self._written.append(name)
        while self.num_traces_to_keep and len(self._written) > self.num_traces_to_keep:
            (folder / self._written.pop(0)).unlink(missing_ok=True)


class _Session:
    """One cycle of torch's profiler, with at most one part marked at a time: no mark is without its end."""

    _at_work: ClassVar[bool] = False

    @staticmethod
    def possible() -> bool:
        """Whether nobody profiles in this process; torch crashes where two do."""
        import torch

        return not _Session._at_work and not torch.autograd._profiler_enabled()  # type: ignore[attr-defined]

    def __init__(self, profile: Any) -> None:
        """Begins to warm up."""
        self.profile = profile
        self.first = 0
        """The first batch that is kept, from 1; 0 while none is."""
        self._marked: list[Any] = []
        self._seen_forward = False
        profile.prepare_trace()
        _Session._at_work = True

    def next_batch(self, done: int) -> None:
        """A batch that is kept comes; `done` of the training came before."""
        if not self.first:
            self.first = done + 1
            self.profile.start_trace()
        self._seen_forward = False

    def mark(self, name: str | None, *, first: bool = False) -> None:
        """End the part that is marked and begin another; a `first` part that comes twice in a batch is told apart."""
        from torch.profiler import record_function

        if not self.first:
            return
        if self._marked:
            self._marked.pop().__exit__(None, None, None)
        again = ", again" if first and self._seen_forward else ""
        self._seen_forward |= first
        if name is not None:
            self._marked.append(record_function(f"expkit/{name}{again}"))
            self._marked[0].__enter__()

    def stop(self) -> bool:
        """Whether there is something to write."""
        self.mark(None)
        if not self.first:
            self.profile.start_trace()  # torch's profiler cannot be stopped while it warms up
        self.profile.stop_trace()
        _Session._at_work = False
        return self.first > 0
