"""Diagnosis: what an error in a step or an evaluation means, and where it happened. Costs nothing until there is one.

torch says what it could not do; what was wrong with the loss, the targets or the model's outputs is said here, where
nothing of the user's own stands between the trainer and torch. An error of the user's own code stays what it is, with a
note of epoch, batch and shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from expkit.errors import ExpkitError, Interruption, UsageError
from expkit.trainer.calling import parameters, takes
from expkit.trainer.losses import compares_classes, logits_of
from expkit.trainer.state import State

_NOTE = "in epoch "
_LOADING = {"_next_batch", "_on_device"}
_WITH_OUTPUTS = {"loss", "loss_of_batch", "update_metrics", "fitting", "backward"}
"""Functions that work on the outputs of this batch; elsewhere those of the one before may be there still."""
_LONGEST = 300
"""Letters for the shapes of a batch."""
Where = tuple[str, str]
"""A module and a function in it."""
_AT_A_BATCH: set[Where] = {("expkit.trainer.loop", "_batch"), ("expkit.trainer.evaluation", "_run"),
                           ("expkit.trainer.standalone", "predict")}  # fmt: skip
"""What has one batch in hand after another."""


def explain(error: BaseException, state: State) -> None:
    """Note where it happened; UsageError from the error, with the place in it, where it is known what was meant."""
    if not isinstance(error, Exception) or isinstance(error, Interruption) or _is_noted(error):
        return
    way = list(_way(error))
    if not _AT_A_BATCH & set(way):
        return
    note = _note(state, way)
    if not isinstance(error, ExpkitError) and (sentence := _sentence(error, state, way)):
        raise UsageError(f"{sentence} ({note})") from error
    error.add_note(note)


def shapes(batch: Any) -> str:
    """What a batch is made of, in a line: `(float32 [6, 8], int64 [6])`."""
    if isinstance(batch, Tensor):
        return f"{_dtype(batch)} {list(batch.shape)}"
    if isinstance(batch, Mapping):
        return "{" + ", ".join(f"{key}: {shapes(part)}" for key, part in batch.items()) + "}"
    if isinstance(batch, (list, tuple)) and any(isinstance(part, (Tensor, Mapping, list, tuple)) for part in batch):
        return "(" + ", ".join(shapes(part) for part in batch) + ")"
    return type(batch).__name__


def _is_noted(error: BaseException) -> bool:
    return f"({_NOTE}" in str(error) or any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ()))


def _note(state: State, way: list[Where]) -> str:
    now, functions = state.timestamp, {name for _, name in way}
    where = f"{_NOTE}{now.epoch}, after {now.batch_in_epoch} batches of it"
    where += f", evaluator {state.eval_name}" if state.eval_name else ""
    if functions & _LOADING:
        return f"{where}, while its data were loaded"
    if state.batch is None:
        return where
    text = f"batch {shapes(state.batch)}" + (f", outputs {shapes(state.outputs)}" if functions & _WITH_OUTPUTS else "")
    return f"{where}, {text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'}{_other_type(state)}"


def _other_type(state: State) -> str:
    """Inputs of another floating type than the weights fit in no layer."""
    inputs = state.data.layout.inputs_if_any(state.batch)
    own = next((p for p in state.model.parameters() if p.is_floating_point()), None)
    if own is None or not isinstance(inputs, Tensor) or not inputs.is_floating_point() or inputs.dtype == own.dtype:
        return ""
    return f"; inputs are {_dtype(inputs)} and weights {_dtype(own)}: inputs.to(torch.{_dtype(own)}) fits"


def _way(error: BaseException) -> Iterator[Where]:
    """Functions from the outermost to the one that raised."""
    at = error.__traceback__
    while at is not None:
        yield str(at.tb_frame.f_globals.get("__name__", "")), at.tb_frame.f_code.co_name
        at = at.tb_next


def _sentence(error: Exception, state: State, way: list[Where]) -> str | None:
    ours = [i for i, (module, _) in enumerate(way) if module.split(".")[0] == "expkit"]
    if not ours or any(module.split(".")[0] != "torch" for module, _ in way[ours[-1] + 1 :]):
        return None  # something of the user's own raised it
    module, function = way[ours[-1]]
    try:
        if module == "expkit.trainer.step" and function == "_accumulated" and isinstance(error, RuntimeError):
            return _of_loss(state)
        if module == "expkit.trainer.calling" and isinstance(error, TypeError):
            return _of_call(state)
        if module in ("expkit.trainer.losses", "expkit.functional.losses") and compares_classes(state.loss_fn):
            return _of_classes(logits_of(state.outputs), state.targets, state.loss_fn)
    except Exception:  # an accelerator that has failed says nothing any more
        return None
    return None


def _of_loss(state: State) -> str | None:
    """Why nothing goes backward from this loss."""
    loss: Any = state.loss
    if loss.numel() != 1:
        return f"the loss must be a scalar, the mean over samples, but its shape is {list(loss.shape)}; use .mean()"
    if not loss.is_floating_point():
        return f"the loss must be a real number with a fraction, but it is {_dtype(loss)}"
    if loss.requires_grad:
        return None
    if not torch.is_grad_enabled():
        return "gradients are off, so nothing can be trained: something has entered torch.no_grad() and not left it"
    if not any(p.requires_grad for group in state.optimizer.param_groups for p in group["params"]):
        return (
            "all parameters of the optimizer are frozen, so there is nothing to train; requires_grad_(True) thaws them"
        )
    outputs = logits_of(state.outputs)
    where = "the loss" if isinstance(outputs, Tensor) and outputs.requires_grad else "the model's outputs"
    return (f"the loss does not depend on the weights: {where} came without a gradient, as after detach(), item(), "
            f"argmax() or inside torch.no_grad()")  # fmt: skip


def _of_call(state: State) -> str | None:
    """Why the model does not take what it is called with."""
    if takes(state.model, 1):
        return None
    wants = ", ".join(parameters(state.model)) or "nothing"
    return (f"forward of {type(state.model).__name__} is called with the inputs of a batch alone, but takes {wants}; "
            f"let it take one argument, or let batches be mappings, whose keys are given by these names")  # fmt: skip


def _of_classes(outputs: Any, targets: Any, loss_fn: Any) -> str | None:
    """Why classes cannot be compared: outputs (N, C, ...) with ids (N, ...) or probabilities (N, C, ...)."""
    if not isinstance(outputs, Tensor):
        return f"the model must give a tensor of logits, or a mapping or tuple with one, but gave {_type(outputs)}"
    if not isinstance(targets, Tensor):
        return f"targets must be a tensor of class ids, but they are {_type(targets)}"
    if not outputs.is_floating_point():
        return f"logits must be floating point, but the model gave {shapes(outputs)}"
    ids = outputs.shape[:1] + outputs.shape[2:] if outputs.ndim > 1 else torch.Size()
    if targets.shape != outputs.shape and targets.shape != ids:
        return (f"targets must be class ids of shape {list(ids)} or probabilities of shape {list(outputs.shape)}, for "
                f"the model gave {shapes(outputs)}, but they are {shapes(targets)}")  # fmt: skip
    if targets.shape == outputs.shape and targets.is_floating_point():
        return None
    if targets.dtype not in (torch.int64, torch.uint8):
        return (f"class ids must be int64, but targets are {shapes(targets)}; write targets.long(), or give a loss_fn "
                f"for numbers, such as torch.nn.MSELoss()")  # fmt: skip
    return _of_ids(targets, outputs.shape[min(1, outputs.ndim - 1)], loss_fn)


def _of_ids(targets: Tensor, num_classes: int, loss_fn: Any) -> str | None:
    ignored = getattr(getattr(loss_fn, "__wrapped__", loss_fn), "__self__", None)
    counted = targets[targets != getattr(ignored, "ignore_index", -100)]
    low, high = (int(counted.min()), int(counted.max())) if counted.numel() else (0, 0)
    if low >= 0 and high < num_classes:
        return None
    return (f"class ids must be from 0 to {num_classes - 1}, for the model gives {num_classes} classes, but targets "
            f"are from {low} to {high}")  # fmt: skip


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _type(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
