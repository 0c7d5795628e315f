"""Trainer: a thin face over the loop; puts the parts together and takes them apart again.

with Trainer(model=net, train_dataloader=batches, optimizers=sgd, max_duration="2ep", algorithms=[EMA()]) as t:
    t.fit()
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import torch

from expkit import dist
from expkit.duration import Time
from expkit.errors import Interruption, UsageError
from expkit.trainer import arguments
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.assembly import loop_of
from expkit.trainer.callback import Callback
from expkit.trainer.checkpoint.start import (
    begin,
    new_run_name,
    register,
    save_at,
    saved_checkpoints,
    saver_of,
)
from expkit.trainer.clock import Clocks
from expkit.trainer.compilation import Compile, compile_arguments
from expkit.trainer.contracts import Model, Optimizer, Scheduler
from expkit.trainer.devices import carry_out, device_of
from expkit.trainer.engine import Engine, effective
from expkit.trainer.evaluator import evaluations_of
from expkit.trainer.loaders import check_subset, data_of, sizes_of
from expkit.trainer.logger import Logger, LoggerDestination
from expkit.trainer.losses import LossFn, loss_function
from expkit.trainer.modules import module_of, optimizer_of
from expkit.trainer.parts import (
    duration_of,
    iteration_length_of,
    labelled,
    microbatch_size,
    parse_time,
    schedulers_of,
    seconds_of,
    steps_of,
)
from expkit.trainer.precision import check_precision
from expkit.trainer.ranks import all_sizes, refuse_blind_loader
from expkit.trainer.schedule import Factor
from expkit.trainer.standalone import evaluate_alone, predict
from expkit.trainer.state import Precision, State
from expkit.trainer.streams import seed_default, seed_python
from expkit.trainer.training import Training

Schedule = Scheduler | Callable[[int], float] | Factor | torch.optim.lr_scheduler.LRScheduler


class Trainer:
    """Trains one model on one device; every part is an instance, plug-in or plain torch."""

    def __init__(
        self,
        *,
        model: Model | torch.nn.Module,
        train_dataloader: Any,
        optimizers: Optimizer | torch.optim.Optimizer | None = None,
        max_duration: str | Time,
        eval_dataloader: Any = None,
        loss_fn: LossFn | None = None,
        schedulers: Schedule | Sequence[Schedule] = (),
        step_schedulers_every_batch: bool = False,
        algorithms: Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm] = (),
        callbacks: Callback | Sequence[Callback] | Mapping[str, Callback] = (),
        loggers: LoggerDestination | Sequence[LoggerDestination] | Mapping[str, LoggerDestination] = (),
        precision: Precision = "fp32",
        device: str | torch.device = "auto",
        device_train_microbatch_size: int | Literal["auto"] | None = None,
        compile: Compile = False,
        activation_checkpointing: bool | Sequence[str] = False,
        seed: int = 0,
        eval_interval: str | Time = "1ep",
        iteration_length: str | Time | None = None,
        train_subset_num_batches: int | None = None,
        eval_subset_num_batches: int | None = None,
        deterministic_mode: bool = False,
        profiler: Callback | None = None,
        ssr: float = 1.0,
        allow: Collection[tuple[str, str]] = (),
        run_name: str | None = None,
        save_folder: str | Path | None = None,
        save_interval: str | Time | None = "1ep",
        load_path: str | Path | None = None,
        load_weights_only: bool = False,
        load_strict: bool = True,
        load_ignore_keys: Sequence[str] = (),
        autoresume: bool = False,
        dist_timeout: float | str = dist.TIMEOUT_S,
        setup_started: float | None = None,
    ) -> None:
        """Builds everything and fires INIT, BEFORE_LOAD, AFTER_LOAD; no step is made.

        `train_dataloader`: a Dataset plug-in, a torch DataLoader, any sized iterable of batches, or a DataSpec of one.
        Batches of a list are trained on as they are: a model that writes into its inputs writes into them.
        `eval_dataloader`: likewise, or a dict of them by label, or one Evaluator or a list of them (series are called
        `<label>/<metric>`, else `eval/<metric>`).
        `loss_fn`: (outputs, targets) or (outputs, batch) -> a scalar, or a tuple or dict of scalars; without it the
        model's own `loss`, or the one that its outputs bring along, or cross entropy.
        `optimizers`: a plug-in or one of torch; without it SGD with a learning rate of 0.1, which is said in the log.
        `schedulers`: what step k multiplies the learning rate with; several are multiplied. Plug-ins, functions of k or
        of (k, steps), with steps.total as the length, or schedulers of torch, which are read and never stepped: the ssr
        scales them, and they count epochs, as in Composer, unless `step_schedulers_every_batch` is true. All others
        count batches.
        `algorithms`, `callbacks`, `loggers`: one, a list, or a dict by label; the order of algorithms never matters.
        `device_train_microbatch_size`: samples per forward pass on each rank, None for the whole batch, auto for the
        largest that fits: the whole batch, half of it after each out-of-memory.
        `iteration_length`: in ep, ba, sp or tok; None makes each fit an iteration.
        `train_subset_num_batches`: an epoch is that many batches of the loader, which then needs no length.
        `eval_subset_num_batches`: an evaluation is that many batches of its loader.
        `deterministic_mode`: only operations with the same bits every time; torch names one that cannot, and is slower.
        `compile`: whether calls of the model are compiled, a mode of torch.compile, or all its arguments by name.
        `activation_checkpointing`: parts of the model that compute their activations twice to save memory, by patterns
        of module or class names; True for its blocks.
        `profiler`: one more callback, `callbacks.Profiler(...)`.
        `ssr`: scale-schedule ratio, scales every duration given here or to a plug-in.
        `allow`: pairs of algorithms that may go together though one of them declares a conflict.
        `run_name`: what `{run_name}` stands for in paths of checkpoints; made up from the time where it is not given.
        `save_folder`: path or URI (s3://, gs://, memory://) of checkpoints, every `save_interval` and at the end; a
        CheckpointSaver among the callbacks can do more. `load_path`: a checkpoint to begin with, or a folder of them,
        whose newest is taken; with `load_strict` all names must fit, `load_ignore_keys` are globs over paths in it.
        `autoresume`: begin with the newest whole checkpoint of `save_folder`, if there is one; each fit() then ends
        where it would have ended, however often it was interrupted.
        `dist_timeout`: how long a rank waits for the others, in seconds or as `5m`, where they are not connected yet.
        `setup_started`: `perf_counter()` at process start, so that `setup_s` covers imports.
        """
        arguments.check(locals())
        seed, ssr = int(seed), float(ssr)
        clocks = Clocks(setup_started)
        seed_default(torch.device("cpu"), seed, "init")
        seed_python(seed, "init")
        compiled = compile_arguments(compile)
        module, where = module_of(model), device_of(device)
        check_precision(precision, where)
        module.to(where)
        dist.initialize(where.type, timeout_s=seconds_of("dist_timeout", dist_timeout))
        rank, world_size = dist.rank(), dist.world_size()
        data = data_of(train_dataloader, seed=seed, rank=rank, world_size=world_size, what="train_dataloader")
        own = sizes_of(data, check_subset("train_subset_num_batches", train_subset_num_batches))
        if world_size > 1:
            refuse_blind_loader(data.dataloader)
        sizes = all_sizes(own) if world_size > 1 else own
        duration = duration_of(max_duration, ssr)
        own_callbacks = [*([] if profiler is None else [profiler]), *saver_of(save_folder, save_interval)]
        watching = labelled("callbacks", Callback, callbacks, own_callbacks)
        self._state = state = State(
            model=module,
            optimizer=optimizer_of(optimizers, module, loss_fn),
            loss_fn=torch.nn.functional.cross_entropy,
            dataloader=data.dataloader,
            data=data,
            steps=steps_of(duration, sizes, ssr),
            max_duration=duration,
            seed=seed,
            device=where,
            precision=precision,
            rank=rank,
            world_size=world_size,
            microbatch_size=microbatch_size(device_train_microbatch_size),
            iteration_length=iteration_length_of(iteration_length),
            schedulers=schedulers_of(schedulers),
            algorithms=labelled("algorithms", Algorithm, algorithms),
            callbacks={k: c for k, c in watching.items() if not isinstance(c, LoggerDestination)},
            run_name=new_run_name() if run_name is None else run_name,
        )
        state.loss_fn = loss_function(loss_fn, state)
        carry_out(state.optimizer, where)
        logging = [callback for callback in watching.values() if isinstance(callback, LoggerDestination)]
        destinations = labelled("loggers", LoggerDestination, loggers, logging)
        destinations = destinations if rank == 0 else {}
        logger = Logger(destinations.values(), state)
        self._engine = Engine(state, logger, clocks, allow=allow)
        subset = check_subset("eval_subset_num_batches", eval_subset_num_batches)
        self._eval_interval = parse_time("eval_interval", eval_interval)
        evaluations = evaluations_of(eval_dataloader, state, subset, self._eval_interval)
        searches = device_train_microbatch_size == "auto"
        self._loop = loop_of(state, self._engine, evaluations, own.batches, searches=searches)
        register(state, clocks, self._loop.step.scaler, self._loop.epochs, destinations, searches=searches)
        self._training = Training(
            state, self._engine, self._loop, sizes,
            compiled=compiled, recomputed=activation_checkpointing, deterministic_mode=deterministic_mode,
        )  # fmt: skip
        self._training.begin(
            lambda: begin(state, logger, load_path, weights_only=load_weights_only, strict=load_strict,
                          ignore_keys=load_ignore_keys, autoresume=autoresume, named=run_name is not None),
            every_batch=step_schedulers_every_batch, replayed=autoresume,
        )  # fmt: skip

    def fit(self, duration: str | Time | None = None, *, until: str | Time | None = None) -> None:
        """Train until `max_duration`, for `duration` more, or up to `until`; a fit that was stopped goes on.

        `until` is counted from the start of training and becomes its max_duration: where it is reached already, also
        by a run that was resumed, nothing is trained. Ctrl-C ends a fit after the step under way, with all of its state
        whole and saved where checkpoints are, as KeyboardInterrupt; another fit goes on from there.
        """
        self._training.fit(duration, until)

    def eval(self, eval_dataloader: Any = None, *, subset_num_batches: int | None = None) -> dict[str, float]:
        """Evaluate now, log the metrics at the batch that training has come to, and give them by their series' names.

        `eval_dataloader`: as for the trainer, by default what it was given. `subset_num_batches`: only so many batches.
        """
        self._training.refuse_if_closed("evaluate")
        subset = check_subset("subset_num_batches", subset_num_batches)
        evaluations = self._loop.evaluations
        if eval_dataloader is not None:
            evaluations = evaluations_of(eval_dataloader, self._state, None, self._eval_interval)
        if not evaluations:
            raise UsageError("there is nothing to evaluate on; give an eval_dataloader")
        if subset is not None:
            evaluations = [replace(evaluation, subset_num_batches=subset) for evaluation in evaluations]
        with self._training.at_work():
            return evaluate_alone(self._state, self._engine, evaluations)

    def predict(
        self, dataloader: Any, *, subset_num_batches: int | None = None, return_outputs: bool = True
    ) -> list[Any]:
        """The model's outputs for each batch, on the CPU; several ranks each have those of their own batches.

        `dataloader`: as for the trainer; batches need no targets. Without `return_outputs` nothing is kept, the list is
        empty: listeners to PREDICT_BATCH_END find them in `state.outputs`.
        """
        self._training.refuse_if_closed("predict")
        arguments.check({"return_outputs": return_outputs})
        state, subset = self._state, check_subset("subset_num_batches", subset_num_batches)
        data = data_of(dataloader, seed=state.seed, rank=state.rank, world_size=state.world_size)
        with self._training.at_work():
            return predict(state, self._engine, data, subset, return_outputs=return_outputs)

    def save_checkpoint(self, path: str | Path, *, weights_only: bool = False) -> str:
        """Write a checkpoint there, a path or URI that may have placeholders; between fits or at the end of a batch.

        Gives its address. A checkpoint of that name is replaced.
        """
        arguments.check({"path": path, "weights_only": weights_only})
        self._training.turns.refuse_other_threads("save_checkpoint")
        return save_at(self._state, str(path), weights_only=weights_only)

    @property
    def saved_checkpoints(self) -> list[str]:
        """Paths or URIs of the checkpoints of this run's folders, oldest first, as they lie there now."""
        return saved_checkpoints(self._state)

    def request_stop(self, reason: str, exit_code: int = 143) -> None:
        """Leave `fit` after the step under way with Interruption; may be called by a signal handler."""
        self._loop.step.interruption = Interruption(f"training was stopped: {reason}", exit_code)

    def lr_at(self, step: int) -> float:
        """The learning rate of the first parameter group at a step, also of steps to come."""
        arguments.check({"step": step})
        group = self._state.optimizer.param_groups[0]
        return float(group.get("initial_lr", group["lr"]) * self._loop.rates.of_group(0, step, self._state.steps))

    def close(self) -> None:
        """Close callbacks, loggers and the loader's workers, each exactly once; the first error is raised.

        Calling it again does nothing.
        """
        self._training.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is None:
            self.close()
        else:
            self._training.close_after(error)

    @property
    def state(self) -> State:
        """The record of this training."""
        return self._state

    @property
    def engine(self) -> Engine:
        """Who fires the events; `engine.order(event)` shows who is called at one."""
        return self._engine

    @property
    def logger(self) -> Logger:
        """The facade to all logger destinations."""
        return self._engine.logger

    @property
    def clocks(self) -> dict[str, float]:
        """Seconds by column of the `trials` view: setup_s, train_s, cpu_s, wall_s and the parts."""
        return self._engine.clocks.columns()

    @property
    def microbatch_size_found(self) -> int | None:
        """Samples of a forward pass as they are now, None for the whole batch; `auto` makes it smaller as it must."""
        return self._state.microbatch_size

    @property
    def skipped_steps(self) -> int:
        """Steps that amp_fp16 left out so far, because a gradient was inf or nan."""
        scaler = self._loop.step.scaler
        return scaler.skipped if scaler else 0

    @property
    def effective(self) -> dict[str, bool]:
        """Whether each algorithm has really done something, by label."""
        return effective(self._state.algorithms)

    @property
    def diverged(self) -> bool:
        """Whether training ended because its loss was nan or inf."""
        return self._state.stop_reason == "diverged"
