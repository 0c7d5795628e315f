"""Losses: the model's, the user's or cross entropy, as one function of outputs and targets; and their named parts.

A loss is a scalar, a tuple of scalars, or a dict of them: of a dict `total` alone is optimised where it is there, else
the sum. A module may define `loss(outputs, targets)` or, by the parameter's name, `loss(outputs, batch)`. Without any,
outputs that are a mapping and bring a `loss` along are taken at their word, as Hugging Face's models want.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from expkit.errors import ExpkitError, UsageError
from expkit.functional.losses import soft_cross_entropy
from expkit.trainer.arguments import instead, refuse
from expkit.trainer.calling import takes, takes_batch

if TYPE_CHECKING:
    from expkit.trainer.state import State

LossFn = Callable[..., Any]


def loss(state: State) -> Any:
    """The scalar to go backward from; where the loss has named parts, they go to `state.losses`."""
    given = state.loss_fn(state.outputs, state.data.layout.targets(state.batch))
    if isinstance(given, Tensor):
        if state.losses:
            state.losses = {}
        return given
    parts = _parts(given, state.device)
    state.losses = {name: part.detach() for name, part in parts.items() if name != "total"}
    return _total(parts)


def loss_of_batch(state: State) -> Tensor:
    """The same scalar for an evaluation, which leaves the state's `losses` alone."""
    given = state.loss_fn(state.outputs, state.targets)
    return given if isinstance(given, Tensor) else torch.as_tensor(_total(_parts(given, state.device)))


def loss_function(given: LossFn | None, state: State) -> LossFn:
    """What was given, else the model's own, else the default: as a function of (outputs, targets).

    UsageError for what cannot be called like that.
    """
    own: Any = getattr(state.model, "loss", None) if given is None else given
    if given is None and not callable(own):  # some modules keep the last value under that name
        return cross_entropy
    what = f"loss of {type(state.model).__name__}" if given is None else "loss_fn"
    if isinstance(own, type) or not callable(own):
        refuse(what, "a function of (outputs, targets) or of (outputs, batch)", own, instead(own))
    if not takes(own, 2):
        refuse(what, "a function of two arguments, (outputs, targets) or (outputs, batch)", own)
    if takes_batch(own):
        return _with_batch(own, state)
    return _with_logits(own) if _knows_tensors_only(own) else own


def logits_of(outputs: Any) -> Any:
    """The part of outputs that metrics and torch's losses look at: `logits` of a mapping, the first of a tuple."""
    if isinstance(outputs, Tensor):
        return outputs
    if not isinstance(outputs, Mapping):
        return outputs[0] if isinstance(outputs, (list, tuple)) else outputs
    if "logits" not in outputs:
        has = ", ".join(map(str, outputs))
        raise ExpkitError(f"outputs that are a mapping need logits, but the model gave {has}; or else it "
                          f"needs a loss(outputs, batch) and an update_metric(batch, outputs, metric)")  # fmt: skip
    return outputs["logits"]


def brings_loss(outputs: Any) -> bool:
    """Whether the model has computed its loss already."""
    return isinstance(outputs, Mapping) and outputs.get("loss") is not None


def refuse_late_targets(outputs: Any, label: str) -> None:
    """UsageError where the model has computed its loss before the method `label` could change the targets."""
    if brings_loss(outputs):
        raise UsageError(f"{label} changes targets after the forward pass, but the model computes its loss inside it; "
                         f"give Trainer(loss_fn=...)")  # fmt: skip


@functools.wraps(torch.nn.functional.cross_entropy)
def cross_entropy(outputs: Any, targets: Any, **settings: Any) -> Any:
    """The default: the loss that outputs bring along, else cross entropy."""
    if not isinstance(outputs, Tensor):
        if brings_loss(outputs):
            return outputs["loss"]
        outputs = logits_of(outputs)
    if targets is None:
        raise UsageError("the batch has no targets for cross entropy: give the model a loss(outputs, batch), or say "
                         "DataSpec(dataloader, targets=...)")  # fmt: skip
    return torch.nn.functional.cross_entropy(outputs, targets, **settings)


def _with_batch(own: LossFn, state: State) -> LossFn:
    """Methods hand changed targets over as targets; the loss finds them in its batch."""

    @functools.wraps(getattr(own, "forward", own))
    def of_batch(outputs: Any, targets: Any, **settings: Any) -> Any:
        batch = state.batch
        if targets is not state.targets:
            batch = state.data.layout.with_targets(batch, targets)
        return own(outputs, batch, **settings)

    return of_batch


def _with_logits(own: LossFn) -> LossFn:
    @functools.wraps(getattr(own, "forward", own))
    def of_logits(outputs: Any, targets: Any, **settings: Any) -> Any:
        return own(logits_of(outputs), targets, **settings)

    return of_logits


def _knows_tensors_only(own: Any) -> bool:
    """True of functions and modules of torch, and of ours; a user's own gets the outputs as they are."""
    own = own.func if isinstance(own, functools.partial) else own
    home = str(getattr(own, "__module__", ""))
    return home.startswith(("torch.nn.", "expkit.functional.")) and not inspect.ismethod(own)


def compares_classes(loss_fn: LossFn) -> bool:
    """Whether a loss is known to want class ids or probabilities with the classes of outputs on axis 1."""
    own = getattr(loss_fn, "__wrapped__", loss_fn)
    own = own.func if isinstance(own, functools.partial) else own
    known = (torch.nn.functional.cross_entropy, soft_cross_entropy)
    return own in known or isinstance(getattr(own, "__self__", None), torch.nn.CrossEntropyLoss)


def _total(parts: Mapping[str, Tensor]) -> Any:
    return parts["total"] if "total" in parts else sum(parts.values())


def _parts(given: Any, device: torch.device) -> dict[str, Tensor]:
    """Losses by name, those of a tuple by number; ExpkitError for what is none."""
    if not isinstance(given, (Mapping, tuple, list)) or not given:
        raise ExpkitError(f"a loss is a scalar tensor, or a tuple or dict of them, but got {type(given).__name__}")
    named = given.items() if isinstance(given, Mapping) else enumerate(given)
    try:
        parts = {str(name): torch.as_tensor(part, device=device) for name, part in named}
    except (TypeError, ValueError):
        raise ExpkitError(f"the parts of a loss are scalar tensors or numbers, but got {given!r:.200}") from None
    for name, part in parts.items():
        if part.ndim:
            raise ExpkitError(f"loss {name!r} must be a scalar, the mean over samples, but its shape is "
                              f"{list(part.shape)}")  # fmt: skip
    return parts
