"""Activation checkpointing: parts of a model forget what they computed and compute it again when gradients ask for it.

Less memory for more time. Same gradients and same buffers, to the bit: the second pass draws what the first one drew,
from torch, random, numpy and generators that modules hold, and leaves no second trace in batch statistics.
"""

from __future__ import annotations

import contextlib
import difflib
import random
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from expkit.errors import UsageError

_LISTS = (nn.ModuleList, nn.ModuleDict)
"""Have no forward of their own."""


def checkpoint_activations(model: nn.Module, parts: bool | Sequence[str]) -> None:
    """Where `parts` is true, the blocks of the model; else modules whose name or class matches one of the patterns.

    Of parts inside parts only the outer ones. UsageError where there are none.
    """
    if parts is False:
        return
    for part in _outermost(model, blocks_of(model) if parts is True else matching(model, parts)):
        if not isinstance(vars(part).get("forward"), _Recomputed):
            part.forward = _Recomputed(part)


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """Modules with parts of their own that stand in a list of modules or in a sequence."""
    containers = [module for module in model.modules() if isinstance(module, (*_LISTS, nn.Sequential))]
    blocks = [child for container in containers for child in container.children() if _is_block(child)]
    if not blocks:
        raise UsageError(f"activation_checkpointing finds no blocks in {type(model).__name__}: no list of modules that "
                         f"have parts of their own; name modules or classes, such as layers.* or Block")  # fmt: skip
    return blocks


def matching(model: nn.Module, patterns: Sequence[str]) -> list[nn.Module]:
    """Modules whose name or class matches one of the patterns (`layers.*`, `Block`); each must match something."""
    named = {name: module for name, module in model.named_modules() if name}
    found: list[nn.Module] = []
    for pattern in patterns:
        hits = [m for name, m in named.items() if fnmatchcase(name, pattern) or fnmatchcase(type(m).__name__, pattern)]
        if not hits:
            raise UsageError(_no_match(model, pattern, named))
        for hit in hits:
            found += hit.children() if isinstance(hit, _LISTS) else [hit]
    return found


def _is_block(module: nn.Module) -> bool:
    return not isinstance(module, (*_LISTS, nn.Sequential)) and any(True for _ in module.children())


def _no_match(model: nn.Module, pattern: str, named: dict[str, nn.Module]) -> str:
    classes = sorted({type(module).__name__ for module in named.values()})
    near = difflib.get_close_matches(pattern, [*classes, *named], n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return (
        f"activation_checkpointing: no module of {type(model).__name__} is called or matches {pattern!r}; {guess}"
        f"its classes are {', '.join(classes) or 'none'}"
    )


def _outermost(model: nn.Module, found: list[nn.Module]) -> Iterator[nn.Module]:
    chosen = {id(module) for module in found}
    inner: set[int] = set()
    for module in model.modules():
        if id(module) in chosen and id(module) not in inner:
            inner |= {id(part) for part in module.modules()}
            yield module


class _Recomputed:
    """Stands where the forward of a module stood; copies along with it."""

    def __init__(self, part: nn.Module) -> None:
        self.part = part
        self.own = vars(part).get("forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return self.once(*args, **kwargs)
        if torch.compiler.is_compiling():  # there the second pass is part of the graph, which writes buffers once
            return checkpoint(self.once, *args, use_reentrant=False, **kwargs)
        return checkpoint(self.once, *args, use_reentrant=False, context_fn=self.passes, **kwargs)

    def once(self, *args: Any, **kwargs: Any) -> Any:
        """What the module does."""
        return self.own(*args, **kwargs) if self.own else type(self.part).forward(self.part, *args, **kwargs)

    def passes(self) -> tuple[Any, Any]:
        """Contexts of the first pass and of the second."""
        traces = _Traces(self.part)
        return traces.first(), traces.second()


class _Traces:
    """What a pass starts from beside inputs and parameters; torch's own generators are checkpoint's to restore."""

    def __init__(self, part: nn.Module) -> None:
        self._modules = list(part.modules())
        self._written: dict[int, dict[str, torch.Tensor]] = {}

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        """Notes the draws to come, and of the buffers those that this pass writes.

        Batch statistics are written behind the back of torch's version counters; a pass does not depend on them.
        """
        self._draws = self._generators()
        held = [(m._buffers, key, b, b._version, b.clone())
                for m in self._modules for key, b in m._buffers.items() if b is not None]  # fmt: skip
        yield
        for buffers, key, buffer, version, before in held:
            if buffers.get(key) is not buffer or buffer._version != version:
                self._written.setdefault(id(buffers), {})[key] = before

    @contextlib.contextmanager
    def second(self) -> Iterator[None]:
        """Starts from what was noted and writes into copies; afterwards everything is as it was before."""
        now, draws = [(m._buffers, dict(m._buffers)) for m in self._modules], self._generators()
        try:
            for buffers, named in now:
                start = {**named, **self._written.get(id(buffers), {})}
                buffers.update({key: b if b is None else b.clone() for key, b in start.items()})
            self._restore(self._draws)
            yield
        finally:
            for buffers, named in now:
                buffers.clear()
                buffers.update(named)
            self._restore(draws)

    def _generators(self) -> list[Any]:
        held = [g for m in self._modules for g in vars(m).values() if isinstance(g, torch.Generator)]
        return [random.getstate(), np.random.get_state(), [(g, g.get_state()) for g in held]]

    def _restore(self, draws: list[Any]) -> None:
        random.setstate(draws[0])
        np.random.set_state(draws[1])
        for generator, state in draws[2]:
            generator.set_state(state)
