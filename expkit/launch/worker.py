"""Worker: one attempt at a trial in a process of its own, from the folder on disk to its final status.

`python -P -m expkit.launch.worker runs/trials/<id12>/r0/attempts/1`. Exit code 0: complete or diverged; 1: failed;
128 + n: interrupted by signal n. Nothing is complete before its last metrics are on disk, and all ranks have trained.
A trial of several ranks has such a process for each, told by the usual variables; only rank 0 writes the status.
"""

from __future__ import annotations

import sys
import time
import traceback
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from expkit import dist, plugins, provenance
from expkit.errors import EnvironmentFault, Interruption
from expkit.launch import process
from expkit.launch.attempt import Attempt
from expkit.launch.compose import compose
from expkit.launch.failure import DISK_FULL, cause_of, message_of
from expkit.launch.neighbours import Neighbours
from expkit.launch.ranks import write_failure
from expkit.launch.reference import Reference, measure
from expkit.launch.resume import forget
from expkit.launch.setting import setting, setting_hash
from expkit.launch.sources import Versions, code_sha, versions
from expkit.launch.tally import Tally
from expkit.launch.timing import reasons
from expkit.launch.watch import Asked, Heart
from expkit.spec.files import load_recipe
from expkit.spec.recipe import Recipe
from expkit.store import fold
from expkit.store.compacted import Key
from expkit.store.layout import Layout, Parts
from expkit.store.lock import lock_dir
from expkit.store.scan import metrics_of
from expkit.store.space import unless
from expkit.trainer.devices import device_of
from expkit.trainer.logger import LoggerDestination
from expkit.trainer.trainer import Trainer


def main(argv: list[str]) -> int:
    """Run the attempt whose folder is the only argument."""
    return run_attempt(Path(argv[0]))


def run_attempt(attempt_dir: Path) -> int:
    """Train what the folder says and write how it went; the exit code of this process."""
    attempt = Attempt.open(attempt_dir)
    return _lead(attempt) if dist.rank() == 0 else _follow(attempt)


def _lead(attempt: Attempt) -> int:
    with Asked() as asked, Heart(attempt) as heart, Neighbours(lock_dir()) as neighbours, _patient(asked):
        try:
            attempt.begin()
            measured = _train(attempt, asked, heart, neighbours)
            kept = measured.recipe.trainer.checkpoint.keep != "none"
            forget(attempt.store, attempt.id12, attempt.replicate, but=attempt.record["attempt"] if kept else None)
        except BaseException as e:  # SystemExit and KeyboardInterrupt of the user's code as well
            return _failed(attempt, asked, e)
        _fold(attempt)
        batch = measured.trainer.state.timestamp.batch
        attempt.end("diverged" if measured.diverged else "complete", batch, **measured.columns())
    return 0


def _patient(asked: Asked) -> AbstractContextManager[None]:
    """Writes wait for space on a full disk, but not in the way of who wants the trial to end."""
    return unless(lambda: asked.number is not None)


def _fold(attempt: Attempt) -> None:
    """Make the metrics files of every rank one file each; all ranks have closed theirs. Without it nothing is lost."""
    number = attempt.record["attempt"]
    for rank in sorted({parts.rank for path in metrics_of(attempt.folder) if (parts := Parts.of(path))}):
        try:
            fold.fold(attempt.folder, Key(attempt.id12, attempt.replicate, number, rank))
        except (fold.Damaged, EnvironmentFault, OSError) as e:
            attempt.note("not_folded", message=str(e))


def _follow(attempt: Attempt) -> int:
    """Any rank but the first: trains, and says no more than why it could not."""
    with Asked() as asked, Heart(attempt, beats=False) as heart, _patient(asked):
        try:
            recipe = _recipe(attempt)
            _clocks_of_all(_fit(attempt, recipe, asked, heart, [], process.started_s()))
        except BaseException as e:
            return _failed(attempt, asked, e)
    return 0


def _failed(attempt: Attempt, asked: Asked, error: BaseException) -> int:
    """Write why the trial has no result; the whole traceback goes to the log."""
    traceback.print_exception(error)
    consequence = isinstance(error, Interruption | KeyboardInterrupt | dist.RankLost)  # an error of its own is none,
    stopped = asked.number is not None and consequence  # though the end of another rank may bring a TERM meanwhile
    try:
        if dist.world_size() > 1 and not stopped:
            write_failure(attempt.folder, dist.rank(), error, victim=isinstance(error, dist.RankLost))
        if dist.rank() == 0:
            _write_failed(attempt, asked.interruption() if stopped else None, error)
    except OSError:
        traceback.print_exc()
        return DISK_FULL  # the driver tries to write it in our place
    return 128 + (asked.number or 0) if stopped else 1


def _write_failed(attempt: Attempt, stopped: Interruption | None, error: BaseException) -> None:
    if stopped is not None:
        attempt.end("interrupted", message=str(stopped))
    else:
        attempt.end("failed", cause=cause_of(error), message=message_of(error))


def warm_up(attempt_dir: Path) -> None:
    """What a fork server does before its first trial: import what first uses would import, read such a recipe once.

    Saves 0.6 s a trial. Runs no torch operation and imports nothing of the user's own.
    """
    pa.array(np.zeros(1))  # looks for pandas, and imports it where it is installed
    attempt = Attempt.open(attempt_dir)
    recipe = load_recipe(attempt.recipe, trust_imports=attempt.trust)
    parts = [("models", recipe.model), ("datasets", recipe.data.train), ("optimizers", recipe.optimizer)]
    parts += [("algorithms", c) for c in recipe.algorithms.values()]
    for kind, component in [*parts, *(("callbacks", c) for c in recipe.callbacks.values())]:
        if not plugins.is_import_path(component.name):
            plugins.build(kind, component.name, component.settings)
    provenance.code_sha()


@dataclass(frozen=True)
class _Measured:
    """What the status says of a trial that trained to its end."""

    trainer: Trainer
    recipe: Recipe
    before: Reference
    after: Reference
    clocks: dict[str, float]
    """Those of the slowest rank."""
    reasons: list[str]
    sources: Versions
    phases: dict[str, int]

    @property
    def diverged(self) -> bool:
        """A loss that was nan or inf, or a primary metric that is at the end."""
        last = self.final().get(self.recipe.metrics.primary.name, 0.0)
        return self.trainer.state.stop_reason == "diverged" or last != last or abs(last) == float("inf")

    def final(self) -> dict[str, float]:
        """The last value of each metric."""
        return {"train/loss": self.trainer.state.train_loss, **self.trainer.state.metrics}

    def columns(self) -> dict[str, Any]:
        """The fields of the status."""
        state = self.trainer.state
        values = setting(self.recipe.runtime, torch.__version__, state.device.type, state.microbatch_size)
        return {
            "setting": values,
            "setting_hash": setting_hash(values),
            "clocks": self.clocks,
            "timing_valid": not self.reasons,
            "timing_reasons": self.reasons,
            "effective": self.trainer.effective,
            "reference_s": [self.before.cpu_s, self.after.cpu_s],
            "phases": self.phases,
            "code_sha": code_sha(self.sources),
            "sources": self.sources,
            "final": self.final(),
            "message": "the loss or the primary metric is not finite" if self.diverged else None,
        }


def _train(attempt: Attempt, asked: Asked, heart: Heart, neighbours: Neighbours) -> _Measured:
    recipe = _recipe(attempt)
    sources = versions(recipe, attempt.python_path)  # now: the files may be edited while we train
    before, reference_s = _timed_reference()
    started_s = process.started_s() + reference_s  # process start, were there no reference workload
    tally = Tally()
    trainer = _fit(attempt, recipe, asked, heart, [_recorder(attempt)], started_s, tally)
    clocks = _clocks_of_all(trainer)
    after, _ = _timed_reference()
    why = reasons(
        clocks,
        threads=recipe.runtime.threads,
        alone_on_cpu=trainer.state.device.type == "cpu" and dist.world_size() == 1,
        resumed=attempt.resumed,
        shared=neighbours.seen(),
        reference_s=(before.cpu_s, after.cpu_s),
    )
    return _Measured(trainer, recipe, before, after, clocks, why, sources, tally.phases())


def _recipe(attempt: Attempt) -> Recipe:
    recipe = load_recipe(attempt.recipe, trust_imports=attempt.trust)
    torch.set_num_threads(recipe.runtime.threads)
    sys.path[:0] = attempt.python_path
    return recipe


def _fit(
    attempt: Attempt,
    recipe: Recipe,
    asked: Asked,
    heart: Heart,
    loggers: list[LoggerDestination],
    started_s: float,
    tally: Tally | None = None,
) -> Trainer:
    """Train to the end; the trainer is closed, so the last metrics are on disk."""
    dist.initialize(device_of(recipe.runtime.device).type)
    trainer = compose(recipe, trust=attempt.trust, loggers=loggers, setup_started=started_s,
                      checkpoints=Layout.checkpoints(attempt.folder), begin_with=attempt.checkpoint)  # fmt: skip
    try:
        heart.watch(trainer)
        asked.watch(trainer)
        if tally and not attempt.resumed and not recipe.trainer.compile:  # a hook would compile the model again
            tally.watch(trainer)
        if not attempt.resumed or trainer.state.fit_open:  # else it ended before it could write that it had
            trainer.fit()
    finally:
        trainer.close()
    return trainer


def _clocks_of_all(trainer: Trainer) -> dict[str, float]:
    """The clocks of the slowest rank; every rank has trained to its end when this comes back."""
    clocks: dict[str, float] = max(dist.all_gather_json(trainer.clocks), key=lambda clocks: clocks["train_s"])
    dist.shutdown()
    return clocks


def _recorder(attempt: Attempt) -> LoggerDestination:
    """The logger whose files the store's views read."""
    place = {"id": attempt.id12, "replicate": attempt.replicate, "attempt": attempt.record["attempt"]}
    logger = plugins.build("loggers", "parquet", {"attempt_dir": attempt.folder, **place})
    assert isinstance(logger, LoggerDestination)
    return logger


def _timed_reference() -> tuple[Reference, float]:
    started_s = time.perf_counter()
    return measure(), time.perf_counter() - started_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
