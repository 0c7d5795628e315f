"""Replacing modules inside a network, so that weights, optimizer and state dict stay what they were."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)
Replacement = Callable[[nn.Module], nn.Module | None]


def replace_modules(root: nn.Module, replacement: Replacement) -> list[tuple[nn.Module, nn.Module]]:
    """Put `replacement(module)` in the place of every module below `root` for which it is not None; (old, new) pairs.

    A module that stands in several places is replaced once, in all of them. What a new module contains is left alone.
    The root has no place to be replaced in: ValueError where it would have to be.
    """
    if replacement(root) is not None:
        raise ValueError(f"the model is itself a {type(root).__name__} to replace; put it inside a module of its own")
    made: dict[nn.Module, nn.Module] = {}
    _replace_below(root, replacement, made, seen={root})
    return list(made.items())


def recast(module: nn.Module, cls: type[M]) -> M:
    """The same module as an instance of `cls`: same Parameter objects, buffers, settings, hooks and flags.

    An optimizer that holds its parameters goes on training them; state-dict keys do not change; no draw is made.
    """
    new = cls.__new__(cls)
    vars(new).update({k: copy.copy(v) if isinstance(v, dict) else v for k, v in vars(module).items()})
    return new


def _replace_below(
    parent: nn.Module, replacement: Replacement, made: dict[nn.Module, nn.Module], seen: set[nn.Module]
) -> None:
    for name, child in parent._modules.items():  # named_children would show a shared child under one name only
        if child is None:
            continue
        if child not in made and child not in seen:
            seen.add(child)
            new = replacement(child)
            if new is None:
                _replace_below(child, replacement, made, seen)
            else:
                made[child] = new
        if child in made:
            parent._modules[name] = made[child]
