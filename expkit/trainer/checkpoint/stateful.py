"""Stateful: the parts of a training that a checkpoint holds, each under a stable name.

    state.stateful["mine"] = part      # anything with state_dict() and load_state_dict(), plain types and tensors

A part that can say beforehand whether what was saved fits it has `differences(saved) -> Differences`; so a checkpoint
that does not fit is refused before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

from expkit.trainer.checkpoint import checks

if TYPE_CHECKING:
    from expkit.trainer.precision import Scaler
    from expkit.trainer.state import State


class Stateful(Protocol):
    """What can be saved and taken up again."""

    def state_dict(self) -> dict[str, Any]:
        """Plain types and tensors."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> object:
        """Take up what `state_dict` gave."""
        ...


@dataclass
class Differences:
    """Names that one side has and the other has not, and sentences about what can never fit."""

    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class ModelState:
    """The weights of the model, whichever the state holds now."""

    def __init__(self, state: State) -> None:
        self._state = state

    def state_dict(self) -> dict[str, Any]:
        return dict(self._state.model.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up those names that both sides have."""
        self._state.model.load_state_dict(state, strict=False)

    def differences(self, saved: dict[str, Any]) -> Differences:
        """By the names of parameters and buffers."""
        own = self._state.model.state_dict()
        found = Differences(sorted(own.keys() - saved.keys()), sorted(saved.keys() - own.keys()))
        for name in sorted(own.keys() & saved.keys()):
            here, there = own[name], saved[name]
            if isinstance(here, Tensor) is not isinstance(there, Tensor):
                found.wrong.append(f"{name} is a {type(there).__name__} there and a {type(here).__name__} here")
            elif isinstance(here, Tensor) and here.shape != there.shape:
                found.wrong.append(f"{name} has shape {list(there.shape)} there and {list(here.shape)} here")
        return found


class OptimizerState:
    """The optimizer's state by the names of parameters, so that their order does not matter."""

    def __init__(self, state: State) -> None:
        self._state = state

    def state_dict(self) -> dict[str, Any]:
        names, optimizer = self._names(), self._state.optimizer
        by_name = {names[id(p)]: dict(of_p) for p, of_p in optimizer.state.items() if isinstance(p, Tensor)}
        groups = [{**group, "params": [names[id(p)] for p in group["params"]]} for group in optimizer.param_groups]
        return {"state": by_name, "groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Group by group; parameters that the saved state does not know start without one."""
        names, optimizer = self._names(), self._state.optimizer
        own = [p for group in optimizer.param_groups for p in group["params"]]
        saved = checks.mapping(state.get("state", {}), "state")
        groups, number = [], 0
        for group, given in zip(optimizer.param_groups, _groups(state), strict=True):
            count = len(group["params"])
            groups.append({**given, "params": list(range(number, number + count))})
            number += count
        numbered = {i: saved[names[id(p)]] for i, p in enumerate(own) if names[id(p)] in saved}
        optimizer.load_state_dict({"state": numbered, "param_groups": groups})
        for i, of_p in numbered.items():
            _keep_types(optimizer.state[own[i]], of_p)

    def differences(self, saved: dict[str, Any]) -> Differences:
        """By the names of parameters, and by the number of groups."""
        names = self._names()
        groups, state = _groups(saved), checks.mapping(saved.get("state", {}), "state")
        own = [[names[id(p)] for p in group["params"]] for group in self._state.optimizer.param_groups]
        there = [
            [checks.text(name, "a parameter") for name in checks.sequence(g.get("params"), "params")] for g in groups
        ]
        found = Differences(_without(own, there), _without(there, own))
        if len(own) != len(there):
            found.wrong.append(f"it has {len(there)} parameter groups there and {len(own)} here")
        elif (
            not found.missing
            and not found.unexpected
            and any(set(a) != set(b) for a, b in zip(own, there, strict=True))
        ):
            found.wrong.append("its parameters are grouped differently there and here")
        for name, of_p in state.items():
            checks.mapping(of_p, f"state of {name}")
        found.wrong += self._wrong_shapes(names, state)
        return found

    def _wrong_shapes(self, names: dict[int, str], state: dict[str, Any]) -> list[str]:
        """A tensor that has as many dimensions as its parameter goes with it number by number."""
        own = {names[id(p)]: p.shape for group in self._state.optimizer.param_groups for p in group["params"]}
        return [
            f"{key} of {name} has shape {list(value.shape)} there, and the parameter {list(own[name])} here"
            for name, of_p in state.items()
            for key, value in of_p.items()
            if name in own and isinstance(value, Tensor) and value.dim() == len(own[name]) and value.shape != own[name]
        ]

    def _names(self) -> dict[int, str]:
        """By the parameter's id; those that are in no module by their place in the groups."""
        groups = self._state.optimizer.param_groups
        names = {id(p): f"#{g}.{i}" for g, group in enumerate(groups) for i, p in enumerate(group["params"])}
        return names | {id(p): name for name, p in self._state.model.named_parameters()}


class ScalerState:
    """The gradient scaler, where there is one."""

    def __init__(self, scaler: Scaler | None) -> None:
        self._scaler = scaler

    def state_dict(self) -> dict[str, Any]:
        return {} if self._scaler is None else self._scaler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing, where it was saved in another precision or is trained in another now."""
        if state and self._scaler is not None:
            self._scaler.load_state_dict(state)


def _groups(saved: dict[str, Any]) -> list[dict[str, Any]]:
    return [checks.mapping(group, "a parameter group") for group in checks.sequence(saved.get("groups"), "groups")]


def _without(some: Iterable[list[str]], others: Iterable[list[str]]) -> list[str]:
    known = {name for names in others for name in names}
    return [name for names in some for name in names if name not in known]


def _keep_types(loaded: dict[str, Any], saved: dict[str, Any]) -> None:
    """torch makes a parameter's type of what it loads; an optimizer may have kept more bits than that."""
    for key, value in saved.items():
        own = loaded[key]
        if isinstance(value, Tensor) and isinstance(own, Tensor) and own.dtype != value.dtype:
            loaded[key] = value.to(own.device)
