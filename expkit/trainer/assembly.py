"""Assembly: the loop of a state, and everything in it that follows from what stands there."""

from __future__ import annotations

from collections.abc import Sequence

from expkit.trainer.engine import Engine
from expkit.trainer.epochs import Epochs, augmentation_of
from expkit.trainer.evaluator import Evaluation, intervals_of
from expkit.trainer.interval import Every
from expkit.trainer.loop import Loop
from expkit.trainer.modules import who_needs_closure
from expkit.trainer.parts import in_tokens, late_targets, search_of
from expkit.trainer.precision import scaler_of
from expkit.trainer.ranks import Ranks
from expkit.trainer.rates import Rates
from expkit.trainer.state import State
from expkit.trainer.step import Step
from expkit.trainer.streams import DefaultStream


def loop_of(
    state: State, engine: Engine, evaluations: Sequence[Evaluation], own_batches: int, *, searches: bool
) -> Loop:
    """The loop, its rates yet to be settled. `own_batches`: of an epoch on this rank.

    `searches`: whether the size of microbatches is looked for.
    """
    device, seed, rank = state.device, state.seed, state.rank
    ranks = Ranks(state, own_batches) if state.world_size > 1 else None
    logs = bool(engine.logger.destinations)
    closures = who_needs_closure(state.algorithms, state.optimizer)
    step = Step(
        state,
        engine,
        dropout=DefaultStream(device, seed, "dropout", rank),
        scaler=scaler_of(state.precision, device, closures),
        closure=bool(closures),
        reads_loss=device.type == "cpu" or ranks is not None or logs,
        late_targets=late_targets(state),
        search=search_of(state, engine) if searches else None,
        ranks=ranks,
    )
    return Loop(
        rates=Rates(),
        evaluations=evaluations,
        eval_every=intervals_of(evaluations, state),
        iterations=iterations_of(state),
        in_tokens=in_tokens(state, evaluations),
        watched=bool(state.callbacks) or logs,
        epochs=Epochs(state.dataloader, own_batches, seed=seed, device=device, rank=rank),
        step=step,
        augmentation=augmentation_of(device, seed, rank) if state.data.batch_transforms else None,
        ranks=ranks,
    )


def iterations_of(state: State) -> Every | None:
    """Where iterations end from here on; None where a fit is one."""
    if state.iteration_length is None:
        return None
    done = state.timestamp.batch_in_iteration == 0  # else the last batch may have been the one that ends it
    return Every(state.iteration_length, state, since=state.timestamp if done else state.previous_timestamp)
