"""Arguments: what plain arguments of the trainer may be, one row each, looked at before anything is built.

What has to be read to be understood (durations, devices, data, plug-ins) is checked where it is read.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any, NoReturn

from expkit.errors import UsageError
from expkit.trainer.callback import Callback

Check = Callable[[str, Any], None]
_LONGEST_NAME = 255
"""Bytes of a file's name on the file systems that we know."""
_SHOWN = 60
"""Letters of a value in a sentence."""


def check(given: Mapping[str, Any]) -> None:
    """UsageError for the first of these arguments, by name, that cannot be what it is called."""
    for name, is_right in _CHECKS.items():
        if name in given:
            is_right(name, given[name])


def refuse(name: str, wanted: str, value: Any, hint: str = "") -> NoReturn:
    """UsageError: what the argument is, what it got, and what to write."""
    raise UsageError(f"{name} must be {wanted}, but got {shown(value)}" + (f"; {hint}" if hint else ""))


def shown(value: Any) -> str:
    """A value in a sentence, with its type where that does not show."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {getattr(value, '__name__', value)}"
    text = " ".join(repr(value).split())
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return text if value is None or isinstance(value, (bool, int, float, str)) else f"{text} ({type(value).__name__})"


def instead(value: Any, call: str = "...") -> str:
    """What to write in place of a class that should have been an instance; empty for anything else."""
    return f"write {value.__name__}({call})" if isinstance(value, type) else ""


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, of numpy as well; true and false are none."""
    return not isinstance(value, bool) and isinstance(value, Integral)


def is_number(value: Any) -> bool:
    """Whether it is a real number, of numpy as well; true and false are none."""
    return not isinstance(value, bool) and isinstance(value, Real)


def is_positive(value: Any) -> bool:
    """Whether it is a finite number above zero."""
    return is_number(value) and 0 < float(value) < math.inf


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        refuse(name, "true or false", value)


def _seed(name: str, value: Any) -> None:
    if not is_whole(value):
        refuse(name, "a whole number", value)


def _step(name: str, value: Any) -> None:
    if not is_whole(value) or value < 0:
        refuse(name, "the number of a step, from 0", value)


def _positive(name: str, value: Any) -> None:
    if not is_positive(value):
        refuse(name, "positive and finite", value)


def _seconds_or_none(name: str, value: Any) -> None:
    if value is not None and not is_number(value):
        refuse(name, "None or a number of seconds", value)


def _name_or_none(name: str, value: Any) -> None:
    """A run is one folder: what leads elsewhere is none."""
    if value is None:
        return
    if not isinstance(value, str) or not value or set(value) & set("/\\\0") or value in (".", ".."):
        refuse(name, "the name of a folder, without slashes", value)
    if len(value.encode(errors="surrogatepass")) > _LONGEST_NAME:
        refuse(name, f"at most {_LONGEST_NAME} bytes long", value)


def _path(name: str, value: Any) -> None:
    if not isinstance(value, (str, os.PathLike)):
        refuse(name, "a path or a URI", value)
    if not os.fspath(value):
        refuse(name, "a path or a URI", value, "the folder that one is in is '.'")


def _path_or_none(name: str, value: Any) -> None:
    if value is not None:
        _path(name, value)


def _patterns(name: str, value: Any) -> None:
    if isinstance(value, str):
        refuse(name, "a list of patterns", value, f"write [{value!r}]")
    if not isinstance(value, Collection) or not all(isinstance(one, str) for one in value):
        refuse(name, "a list of patterns", value)


def _flag_or_patterns(name: str, value: Any) -> None:
    if isinstance(value, str) or not isinstance(value, (bool, Collection)):
        refuse(name, "true, false or a list of patterns", value, f"use [{value!r}]" if isinstance(value, str) else "")
    if not isinstance(value, bool):
        _patterns(name, value)


def _callback_or_none(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Callback):
        refuse(name, "None or a callback", value, instead(value))


def _pairs(name: str, value: Any) -> None:
    right = isinstance(value, Collection) and not isinstance(value, str) and all(map(_is_pair, value))
    if not right:
        refuse(name, "a list of pairs of names, such as [('mixup', 'cutmix')]", value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(one, str) for one in value)


_CHECKS: dict[str, Check] = dict(  # noqa: C408  # keywords: an argument may be called as a plug-in is, a text may not
    seed=_seed,
    ssr=_positive,
    step_schedulers_every_batch=_flag,
    deterministic_mode=_flag,
    activation_checkpointing=_flag_or_patterns,
    profiler=_callback_or_none,
    run_name=_name_or_none,
    save_folder=_path_or_none,
    load_path=_path_or_none,
    load_weights_only=_flag,
    load_strict=_flag,
    load_ignore_keys=_patterns,
    autoresume=_flag,
    allow=_pairs,
    setup_started=_seconds_or_none,
    path=_path,
    weights_only=_flag,
    return_outputs=_flag,
    step=_step,
)
"""In the order in which they are looked at."""
