"""expkit: which combination of training-speedup methods is faster at equal quality, by how much, how sure are we.

The Python face loads lazily: `import expkit` costs a few milliseconds and no torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_FACE = {"Trainer": "expkit.trainer.trainer", "DataSpec": "expkit.trainer.data_spec",
         "Evaluator": "expkit.trainer.evaluator", "Algorithm": "expkit.trainer.algorithm",
         "Callback": "expkit.trainer.callback", "LoggerDestination": "expkit.trainer.logger",
         "Event": "expkit.trainer.event", "load": "expkit.experiment.load"}  # fmt: skip
_ROOMS = ("algorithms", "callbacks", "loggers", "models", "datasets", "optimizers", "schedulers", "metrics",
          "functional")  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _FACE:
        return getattr(importlib.import_module(_FACE[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"expkit.{name}")
    raise AttributeError(f"module 'expkit' has no attribute {name!r}{_nearest(name)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE, *_ROOMS])


def _nearest(name: str) -> str:
    if name.startswith("_"):
        return ""
    import difflib

    near = difflib.get_close_matches(name, [*_FACE, *_ROOMS], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
