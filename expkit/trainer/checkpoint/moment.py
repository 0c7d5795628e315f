"""Moment: where training stands, and the default generators as they stand there; the rest of what a resume needs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from expkit.duration import Timestamp
from expkit.trainer.checkpoint import checks
from expkit.trainer.checkpoint.stateful import Differences
from expkit.trainer.schedule import OPEN_ENDED

if TYPE_CHECKING:
    from expkit.trainer.state import State


class TrainingState:
    """Counters, newest metrics, and what is under way."""

    def __init__(self, state: State, *, searches: bool) -> None:
        """`searches`: whether the size of microbatches is looked for; a size that was given stays as given."""
        self._state, self._searches = state, searches

    def state_dict(self) -> dict[str, Any]:
        state = self._state
        return {
            "timestamp": state.timestamp._asdict(),
            "previous_timestamp": state.previous_timestamp._asdict(),
            "train_s": state.train_s,
            "cpu_s": state.cpu_s,
            "wall_s": state.wall_s,
            "epoch_began_s": state.epoch_began_s,
            "metrics": dict(state.metrics),
            "evaluated_at": dict(state.evaluated_at),
            "train_loss": state.train_loss,
            "stop_reason": state.stop_reason,
            "microbatch_size": state.microbatch_size,
            "effective": {label: bool(algorithm.effective) for label, algorithm in state.algorithms.items()},
            "fit_open": state.fit_open,
            "fit_starts": [start._asdict() for start in state.fit_starts],
            "batches_per_epoch": state.steps.per_epoch,
            "total_steps": state.steps.total,
            "tokens_per_batch": state.steps.tokens_per_batch,
        }

    def differences(self, saved: dict[str, Any]) -> Differences:
        """The methods, by label; and it must not stand in the middle of an epoch of another length."""
        moment, own = _read(saved), self._state.algorithms.keys()
        found = Differences(
            *(
                [f"method {label}" for label in sorted(labels)]
                for labels in (own - moment["effective"].keys(), moment["effective"].keys() - own)
            )
        )
        here, there = self._state.steps.per_epoch, moment["batches_per_epoch"]
        if moment["timestamp"].batch_in_epoch and here != there:
            found.wrong.append(f"it stands in the middle of an epoch of {there} batches, and an epoch here has {here}")
        return found

    def load_state_dict(self, state: dict[str, Any]) -> None:
        moment, own = _read(state), self._state
        for name in _DIRECT:
            setattr(own, name, moment[name])
        own.batches, own.resuming = None, True
        if self._searches:
            own.microbatch_size = moment["microbatch_size"]
        if own.max_duration.unit in OPEN_ENDED:  # nobody but training itself can know it
            own.steps = replace(own.steps, total=moment["total_steps"], tokens_per_batch=moment["tokens_per_batch"])
        for label, did in moment["effective"].items():
            if label in own.algorithms and own.algorithms[label].effective != did:
                own.algorithms[label].effective = did


class Generators:
    """Default generators of torch, numpy and `random`, which the trainer seeds by purpose but does not own.

    They are taken up when training goes on, for what is done until then may draw from them.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pending: list[tuple[Any, Any]] = []

    def state_dict(self) -> dict[str, Any]:
        import numpy as np

        _, python, gauss = random.getstate()
        own = np.random.get_state(legacy=False)
        kept: dict[str, Any] = {
            "torch": torch.get_rng_state(),
            "python": {"words": torch.tensor(python), "gauss": gauss},
            "numpy": {"kind": str(own["bit_generator"])},
        }
        if own["bit_generator"] == "MT19937":
            words = torch.from_numpy(own["state"]["key"].astype("int64"))
            kept["numpy"] |= {"words": words, "place": own["state"]["pos"], "has_gauss": own["has_gauss"],
                              "gauss": own["gauss"]}  # fmt: skip
        if self._device.type == "cuda":
            kept["cuda"] = torch.cuda.get_rng_state(self._device)
        return kept

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Tries them, puts everything back, and holds them until `take_up`."""
        before = self.state_dict()
        self._pending = self._setters(state)
        try:
            self._set(self._pending)
        except (RuntimeError, TypeError, ValueError, OverflowError) as e:
            self._pending = []
            raise ValueError(f"it is no state of a generator: {str(e).splitlines()[0]}") from None
        finally:
            self._set(self._setters(before))

    def take_up(self) -> None:
        """Training goes on now."""
        self._set(self._pending)
        self._pending = []

    def _setters(self, state: dict[str, Any]) -> list[tuple[Any, Any]]:
        import numpy as np

        python, other = checks.mapping(state.get("python"), "python"), checks.mapping(state.get("numpy"), "numpy")
        words = tuple(_words(python.get("words"), 625))
        pending: list[tuple[Any, Any]] = [
            (torch.set_rng_state, _octets(state.get("torch"))),
            (
                random.setstate,
                (3, words, None if python.get("gauss") is None else checks.number(python["gauss"], "gauss")),
            ),
        ]
        if other.get("kind") == "MT19937":
            gauss = checks.integer(other.get("has_gauss"), "has_gauss"), checks.number(other.get("gauss"), "gauss")
            place = min(
                624, checks.integer(other.get("place"), "place")
            )  # beyond that, numpy would read past its words
            key = np.array(_words(other.get("words"), 624), dtype=np.uint32)
            pending.append((np.random.set_state, ("MT19937", key, place, *gauss)))
        if self._device.type == "cuda" and "cuda" in state:
            device = self._device
            pending.append((lambda own: torch.cuda.set_rng_state(own, device), _octets(state["cuda"])))
        return pending

    def _set(self, setters: list[tuple[Any, Any]]) -> None:
        for setter, value in setters:
            setter(value)


_DIRECT = ("timestamp", "previous_timestamp", "train_s", "cpu_s", "wall_s", "epoch_began_s", "metrics", "evaluated_at",
           "train_loss", "stop_reason", "fit_open", "fit_starts")  # fmt: skip


def _read(saved: dict[str, Any]) -> dict[str, Any]:
    """Everything by name with the type that it must have."""
    reason, size = saved.get("stop_reason"), saved.get("microbatch_size")
    starts, metrics = (
        checks.sequence(saved.get("fit_starts"), "fit_starts"),
        checks.mapping(saved.get("metrics"), "metrics"),
    )
    effective = checks.mapping(saved.get("effective"), "effective")
    evaluated = checks.mapping(saved.get("evaluated_at"), "evaluated_at")
    moments: dict[str, Timestamp] = {
        name: checks.timestamp(saved.get(name), name) for name in ("timestamp", "previous_timestamp")
    }
    return {
        **moments,
        **{name: checks.seconds(saved.get(name), name) for name in ("train_s", "cpu_s", "wall_s", "epoch_began_s")},
        "fit_open": checks.boolean(saved.get("fit_open"), "fit_open"),
        **{name: checks.integer(saved.get(name), name) for name in ("batches_per_epoch", "total_steps")},
        "tokens_per_batch": checks.seconds(saved.get("tokens_per_batch"), "tokens_per_batch"),
        "evaluated_at": {label: checks.integer(batch, f"evaluated_at {label}") for label, batch in evaluated.items()},
        "train_loss": checks.number(saved.get("train_loss"), "train_loss"),
        "metrics": {name: checks.number(value, f"metric {name}") for name, value in metrics.items()},
        "stop_reason": None if reason is None else checks.text(reason, "stop_reason"),
        "microbatch_size": None if size is None else checks.integer(size, "microbatch_size", least=1),
        "effective": {label: checks.boolean(did, f"effective {label}") for label, did in effective.items()},
        "fit_starts": [checks.timestamp(start, "a start of a fit") for start in starts],
    }


def _words(value: Any, count: int) -> list[int]:
    whole = isinstance(value, torch.Tensor) and value.dtype == torch.int64 and value.shape == (count,)
    if not whole or not bool(((value >= 0) & (value < 2**32)).all()):
        raise ValueError(f"a generator has {count} words of 32 bits")
    return value.tolist()  # type: ignore[no-any-return]


def _octets(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and value.dim() == 1:
        return value
    raise ValueError("a generator of torch is a row of bytes")
