"""Activation monitor: what flows into and out of each module, looked at now and then.

Hooks are in the model during the batches that are looked at and at no other time, so that no other batch costs more
than 2 microseconds. One that is looked at costs 30 microseconds a module on a CPU, and passes over what is large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from expkit.duration import Time, TimeUnit
from expkit.errors import UsageError
from expkit.trainer.callback import Callback


@dataclass
class ActivationMonitor(Callback):
    """Records statistics of the inputs and outputs of every module, by its name in the model; `model` is the whole.

    Each is taken over the features of a position, which are the last dimension, and of images (N, C, H, W) the
    channels; then averaged over positions and samples of the first microbatch:
    activations/l2_norm/{module}_{input or output}.{i}: the Euclidean norm of the features.
    activations/average/{module}_{input or output}.{i}: their mean.
    activations/kurtosis/{module}_{input or output}.{i}: their kurtosis, 3 where they are normally distributed; where
    all are equal there is none.
    activations/max/{module}_{input or output}.{i}: the largest.
    """

    interval: Time = field(default=Time(25, TimeUnit.BATCH))
    """How often to look, in ba or ep; the first batch is looked at."""
    ignore_module_types: tuple[str, ...] = ()
    """Modules whose class has one of these words in its name are left out, such as Dropout; case does not matter."""
    _hooks: Any = field(default_factory=list, init=False, repr=False, compare=False)
    _found: Any = field(default_factory=dict, init=False, repr=False, compare=False)
    _every: Any = field(default=1, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interval.unit not in (TimeUnit.BATCH, TimeUnit.EPOCH) or self.interval.value == 0:
            raise ValueError(f"interval is positive, in ba or ep, but got {self.interval}")

    def fit_start(self, state: Any, logger: Any) -> None:
        self._every = max(1, round(state.steps.of(self.interval)))

    def batch_start(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch % self._every == 0 and state.rank == 0:
            _refuse_compiled(state.model)
            self._found = {}
            self._hooks = [
                module.register_forward_hook(self._hook(name or "model", state))
                for name, module in state.model.named_modules()
                if not self._ignores(module)
            ]

    def after_train_batch(self, state: Any, logger: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def batch_end(self, state: Any, logger: Any) -> None:
        if self._found:
            import torch

            values = torch.stack(list(self._found.values())).tolist()  # waits for the accelerator, once
            logger.log_metrics(_without_undefined(dict(zip(self._found, values, strict=True))))
            self._found = {}

    def fit_error(self, state: Any, logger: Any) -> None:
        self.after_train_batch(state, logger)

    def _ignores(self, module: Any) -> bool:
        kind = type(module).__name__.lower()
        return any(word.lower() in kind for word in self.ignore_module_types)

    def _hook(self, name: str, state: Any) -> Any:
        def look(module: Any, inputs: Any, outputs: Any) -> None:
            if state.microbatch == 0:
                for place, tensor in (*_numbered("input", inputs), *_numbered("output", outputs)):
                    self._found.update(_statistics(f"{name}_{place}", tensor))

        return look


def _refuse_compiled(model: Any) -> None:
    """UsageError: with hooks another program would be compiled, whose sums may be rounded otherwise."""
    if any(module._compiled_call_impl is not None for module in model.modules()):
        raise UsageError("activation_monitor would have a compiled model compiled once more, to other bits, for the "
                         "batches that it looks at; leave compilation out, or activation_monitor")  # fmt: skip


def _without_undefined(values: dict[str, float]) -> dict[str, float]:
    """NaN is news anywhere else; a kurtosis is NaN where all features are equal, or there is but one."""
    return {name: v for name, v in values.items() if v == v or not name.startswith("activations/kurtosis/")}


def _numbered(side: str, values: Any) -> Iterator[tuple[str, Any]]:
    """`input.0`, `input.1`, ... for the tensors of real numbers, however nested; keys stand for numbers in mappings."""
    parts = values if isinstance(values, (tuple, list)) else [values]
    items = values.items() if isinstance(values, Mapping) else enumerate(parts)
    for key, value in items:
        if isinstance(value, (tuple, list, Mapping)):
            yield from _numbered(f"{side}.{key}", value)
        elif hasattr(value, "is_floating_point") and value.is_floating_point() and value.numel():
            yield f"{side}.{key}", value


def _statistics(place: str, tensor: Any) -> dict[str, Any]:
    import torch

    with torch.no_grad():
        features = tensor.detach().float()
        features = features.movedim(1, -1) if features.dim() == 4 else features.reshape(features.shape or 1)
        mean = features.mean(-1, keepdim=True)
        centred = features - mean
        variance = centred.square().mean(-1)
        return {
            f"activations/l2_norm/{place}": torch.linalg.vector_norm(features, dim=-1).mean(),
            f"activations/average/{place}": mean.mean(),
            f"activations/kurtosis/{place}": (centred.pow(4).mean(-1) / variance.square()).nanmean(),
            f"activations/max/{place}": features.amax(-1).mean(),
        }
