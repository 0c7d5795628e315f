"""Config: what is being trained, as JSON, so that a run goes on from no checkpoint of another training unnoticed.

How long it trains is not in it: a run may be made longer. Neither are callbacks and loggers, which change nothing.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from expkit import plugins
from expkit.plugins import Plugin
from expkit.store.strict import strict
from expkit.trainer.algorithm import name_of
from expkit.trainer.checkpoint.manifest import sha256_of

if TYPE_CHECKING:
    from expkit.trainer.state import State

_HOW = frozenset({"params", "lr", "initial_lr", "foreach", "fused", "capturable", "differentiable"})
"""Settings of an optimizer that say how and not what, or that move during training."""


def config_of(state: State) -> dict[str, Any]:
    """The config of a training, taken once and kept: methods may move settings of the optimizer later."""
    if not state.config:
        state.config = _described(state)
    return state.config


def own_difference(state: State, saved: dict[str, Any], *, seed: bool) -> str | None:
    """The first thing in which a saved config differs from this training's; `seed`: whether that counts as well."""
    own = json.loads(json.dumps(strict(config_of(state))))  # as if it had been saved too
    return difference(own if seed else {**own, "seed": saved.get("seed")}, saved)


def difference(here: Any, there: Any, path: str = "") -> str | None:
    """The first thing in which two configs differ, as part of a sentence; None where they are equal."""
    if isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        here, there = (dict(enumerate(values)) for values in (here, there))
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(here.keys() | there.keys()):
            if found := difference(here.get(key), there.get(key), f"{path}.{key}" if path else key):
                return found
        return None
    return None if here == there else f"{path} was {_shown(there)} and is {_shown(here)}"


def _described(state: State) -> dict[str, Any]:
    return {
        "model": {"class": type(state.model).__name__, "shapes": _shapes(state)},
        "optimizer": {"class": type(state.optimizer).__name__, "groups": list(_groups(state))},
        "schedulers": [_settings(scheduler) for scheduler in state.schedulers],
        "algorithms": {label: _settings(algorithm) for label, algorithm in sorted(state.algorithms.items())},
        "data": {"batches_per_epoch": state.steps.per_epoch, "batch_size": state.steps.batch_size},
        "precision": state.precision,
        "seed": state.seed,
        "ssr": state.steps.ssr,
    }


def _shapes(state: State) -> str:
    own = [[name, list(p.shape), str(p.dtype)] for name, p in state.model.named_parameters()]
    return f"{len(own)} parameters, {sha256_of(sorted(own))[:12]}"


def _groups(state: State) -> Iterator[dict[str, Any]]:
    for group in state.optimizer.param_groups:
        rate = group.get("initial_lr", group["lr"])
        settings = {key: value for key, value in group.items() if key not in _HOW} | {"lr": rate}
        yield {key: _plain(value) for key, value in sorted(settings.items())}


def _settings(given: Any) -> dict[str, Any]:
    """Of a plug-in with settings that a file can hold; of anything else it is only known what it is called."""
    if not isinstance(given, Plugin):
        return {"name": getattr(given, "__name__", type(given).__name__)}
    own = {"name": name_of(given), "version": given.version}
    try:
        return {**own, **(plugins.dump(given) if dataclasses.is_dataclass(given) else {})}
    except (TypeError, ValueError):
        return own


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return float(value) if hasattr(value, "item") else type(value).__name__


def _shown(value: Any) -> str:
    if value is None:
        return "not there"
    return str(value) if not isinstance(value, dict) else f"there ({value.get('name', 'a map')})"
