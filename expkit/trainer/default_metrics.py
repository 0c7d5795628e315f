"""Default metrics: those of an evaluator where neither it nor the model names any, settled by its first batch.

    ids (B,) for logits (B, C), or (B, ...) for (B, C, ...)      accuracy and cross_entropy
    outputs that bring their loss, as Hugging Face's do          loss; and accuracy for ids (B,) and logits (B, C)
    all else: values instead of ids, logits (B, L, C)            loss, by the trainer's loss function

Logits (B, L, C) get no accuracy by themselves: a causal model compares place t with label t + 1, another one with label
t, and shapes do not say which. `Evaluator(..., metrics=["loss", Accuracy(class_axis=-1, shift=1)])` does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from expkit import dist, plugins
from expkit.errors import ExpkitError, TrialFailure, UsageError
from expkit.functional.metrics import precise
from expkit.trainer.calling import updates_metrics
from expkit.trainer.losses import brings_loss, compares_classes, cross_entropy, logits_of, loss_of_batch
from expkit.trainer.out_of_memory import is_out_of_memory
from expkit.trainer.precision import autocast

if TYPE_CHECKING:
    from expkit.trainer.state import State


def usual() -> dict[str, Any]:
    """Those of a classifier, fresh."""
    return {name: _made(name) for name in ("accuracy", "cross_entropy")}


def fitting(state: State, whose: str) -> dict[str, Any]:
    """Metrics by name for outputs and targets such as the state has; says so where accuracy would be a guess."""
    logits, targets = _logits(state.outputs), state.targets
    names = _names(state, logits, targets)
    if names == ("loss",) and _are_places(logits, targets) and state.rank == 0:
        logging.getLogger(__name__).warning(
            "%s reports its loss alone: which label the logits %s at a place are for, that place's or the next one's, "
            "is not known; Evaluator(metrics=['loss', Accuracy(class_axis=-1, shift=1)]) is for the next one's",
            whose, list(logits.shape),
        )  # fmt: skip
    return {name: _made(name) for name in names}


def agree(metrics: dict[str, Any]) -> None:
    """The same metrics on all ranks, of which some may have had no batch to settle theirs by; once an evaluator."""
    said = [names for names in dist.all_gather_json(sorted(metrics)) if names]
    if any(names != said[0] for names in said):
        raise TrialFailure(f"ranks must have the same metrics, but by their batches some would have {said[0]} and some "
                           f"{next(names for names in said if names != said[0])}", "config")  # fmt: skip
    agreed = {name: metrics[name] if name in metrics else _made(name) for name in (said[0] if said else ())}
    metrics.clear()
    metrics.update(agreed)


class Loss:
    """The trainer's loss, or the one that outputs bring along: a mean over what it is a mean over in each batch.

    That is what the DataSpec's `weight_in_batch` counts; without it the ids of a sequence that are not -100, or else
    samples. A causal language model leaves out the first label of each sequence: where sequences differ in length,
    `weight_in_batch=lambda batch: (batch["labels"][:, 1:] != -100).sum()` is exact.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything seen."""
        self._total: Any = 0.0
        self._count: Any = 0.0

    def update(self, outputs: Any, targets: Any) -> None:
        """Not enough to know a loss by; see `update_from`."""
        raise ExpkitError("the metric loss needs the whole batch and can only be computed by the trainer")

    def update_from(self, state: State) -> None:
        """Take in the state's batch and outputs."""
        try:
            with torch.no_grad(), autocast(state.device, state.precision):
                loss = precise(loss_of_batch(state).detach())
        except (ExpkitError, TypeError, ValueError, LookupError, AttributeError, RuntimeError) as e:
            if is_out_of_memory(e):
                raise
            raise UsageError(_nothing_fits(state, e)) from e
        count = precise(_count(state)).to(loss.device)
        self._total = self._total + torch.where(count > 0, loss * count, 0.0)  # of nothing the mean is nan
        self._count = self._count + count

    def compute(self) -> float:
        """The mean over everything since `reset`; NaN where that is nothing."""
        count = float(self._count)
        return float(self._total) / count if count else float("nan")

    def totals(self) -> list[float]:
        """The sum, and what it is over; those of several ranks add up."""
        return [float(self._total), float(self._count)]

    def set_totals(self, totals: list[float]) -> None:
        """Go on from here."""
        self._total, self._count = totals


def _made(name: str) -> Any:
    return Loss() if name == "loss" else plugins.build("metrics", name, {})


def _names(state: State, logits: Any, targets: Any) -> tuple[str, ...]:
    if updates_metrics(state):
        return ("accuracy", "cross_entropy")
    if brings_loss(state.outputs) and state.loss_fn is cross_entropy:
        one_each = _are_ids(targets) and isinstance(logits, Tensor) and targets.shape == logits.shape[:1]
        return ("loss", "accuracy") if one_each and logits.ndim == 2 else ("loss",)
    return ("accuracy", "cross_entropy") if _are_classes(state, logits, targets) else ("loss",)


def _are_classes(state: State, logits: Any, targets: Any) -> bool:
    """Whether targets are classes on axis 1 of logits, beyond doubt."""
    if not isinstance(logits, Tensor) or not isinstance(targets, Tensor) or logits.ndim < 2:
        return False
    known = compares_classes(state.loss_fn)
    if not _are_ids(targets):
        return known and targets.is_floating_point() and targets.shape == logits.shape
    fits = targets.shape == logits.shape[:1] + logits.shape[2:] and (known or logits.shape[1] > 1)
    return fits and (known or logits.ndim == 2 or targets.shape != logits.shape[:-1])


def _are_places(logits: Any, targets: Any) -> bool:
    """Whether these may be logits (B, L, C) for ids (B, L)."""
    return isinstance(logits, Tensor) and logits.ndim == 3 and _are_ids(targets) and targets.shape == logits.shape[:-1]


def _are_ids(targets: Any) -> bool:
    return isinstance(targets, Tensor) and not targets.is_floating_point() and not targets.is_complex()


def _logits(outputs: Any) -> Any:
    try:
        return logits_of(outputs)
    except (ExpkitError, LookupError):  # a mapping without logits, an empty tuple
        return None


def _count(state: State) -> Tensor:
    """What the loss of the batch is a mean over, see Loss."""
    targets = state.targets
    if state.data.weight_in_batch is not None:
        return torch.as_tensor(state.data.weight_in_batch(state.batch))
    if _are_ids(targets) and targets.ndim > 1 and targets.dtype is not torch.bool:
        return (targets != -100).sum()  # type: ignore[no-any-return]
    return torch.as_tensor(state.num_samples)


def _nothing_fits(state: State, error: Exception) -> str:
    what = f"evaluator {state.eval_name}" if state.eval_name else "the batch"
    return (
        f"no metric fits {what}, whose outputs are {_shown(state.outputs)} and whose targets are "
        f"{_shown(state.targets)}: the loss says {str(error).splitlines()[0] if str(error) else type(error).__name__}; "
        f"give Evaluator(label, data, metrics=...), or the model a metrics()"
    )


def _shown(value: Any) -> str:
    """A tensor by type and shape, anything else by its type."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    has = getattr(value, "keys", None)
    keys = f" of {', '.join(map(str, has()))}" if has else ""
    return "none" if value is None else f"a {type(value).__name__}{keys}"
