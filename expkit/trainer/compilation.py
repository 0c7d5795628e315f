"""Compilation: torch.compile for a model, in place, and its seconds on a clock of their own.

The module stays the one that it was, with its names; only calls of it are compiled. A part that a method replaces
later, a hook that somebody adds, another shape: it compiles again where it must, and that is no training time either.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

import torch

from expkit.errors import UsageError, unknown
from expkit.spec.recipe import COMPILE_MODES
from expkit.trainer.clock import Clocks

Compile = bool | str | Mapping[str, Any]
"""Whether to, in which mode, or all the arguments of torch.compile."""


def compile_arguments(given: Compile) -> dict[str, Any] | None:
    """What torch.compile is given, None where nothing is compiled; UsageError for a mode that does not exist."""
    if isinstance(given, Mapping):
        known = [name for name in inspect.signature(torch.compile).parameters if name != "model"]
        if stray := [str(name) for name in given if name not in known]:
            raise UsageError(f"compile: {unknown('argument of torch.compile', stray[0], known)}")
        return dict(given)
    if isinstance(given, bool):
        return {"mode": "default"} if given else None
    if not isinstance(given, str) or given not in COMPILE_MODES:
        near = difflib.get_close_matches(str(given), COMPILE_MODES, n=1)
        raise UsageError(f"compile is true, false, {', '.join(COMPILE_MODES[:-1])} or {COMPILE_MODES[-1]}, but got "
                         f"{given!r}" + (f"; did you mean {near[0]!r}?" if near else ""))  # fmt: skip
    return {"mode": given}


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The model itself where `torch.compile(model)` was given; it stays compiled the same way, under its own names."""
    if not isinstance(model, torch._dynamo.OptimizedModule):
        return model
    inner = model._orig_mod
    inner._compiled_call_impl = model.dynamo_ctx(_call_of(inner))
    return inner


def compile_calls(model: torch.nn.Module, arguments: dict[str, Any] | None) -> None:
    """From now on calls of the model are compiled, at the first of each kind; not where they are already."""
    if arguments is None or model._compiled_call_impl is not None:
        return
    try:
        model._compiled_call_impl = torch.compile(_call_of(model), **arguments)
    except Exception as e:
        raise UsageError(f"compile: torch.compile does not take {arguments}: {str(e).splitlines()[0]}") from e


def _call_of(model: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:  # torch compiles no frame of its own, such as Sequential's: `compile`
        return model._call_impl(*args, **kwargs)  # of a module whose forward is torch's would do nothing, silently

    call.__code__ = call.__code__.replace()  # or all models would share one limit of recompilations
    return call


@contextlib.contextmanager
def compile_time(clocks: Clocks) -> Iterator[None]:
    """While inside, seconds that torch compiles in, whoever asked for it, go to `compile_s` and nowhere else."""
    from torch._dynamo.callback import callback_handler as handler  # an optimizer has imported it long ago

    began: list[tuple[str, float]] = []

    def begin(_: Any) -> None:
        if (part := clocks.switch("compile_s")) != "compile_s":  # it is where one stands inside another
            began.append((part, perf_counter()))

    def end(_: Any) -> None:
        if began:
            part, began_s = began.pop()
            clocks.switch(part)
            clocks.compiled_before_training(perf_counter() - began_s)

    handler.register_start_callback(begin)
    handler.register_end_callback(end)
    try:
        with torch._dynamo.config.patch(skip_nnmodule_hook_guards=False):  # a hook that comes later would never fire
            yield
    finally:
        handler.remove_start_callback(begin)
        handler.remove_end_callback(end)
