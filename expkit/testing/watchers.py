"""Suites of callbacks and loggers: what only watches, and what may end training but not bend it."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

import torch

from expkit.loggers.memory import Memory
from expkit.testing.training import fresh, train
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from expkit.trainer.logger import Logger, LoggerDestination

_BATCHES = 7
_HANDOVER = 3
_MOMENT = 7
"""Numbers of a record of the memory logger before its value."""


def changes_no_bit_of_training(callback: Callback) -> None:
    """Weights, optimizer, metrics, generators, data, hooks in the model: all as without it.

    One that `changes_training` only stops it, or loads weights before it: what it has trained is what trains without
    it, for as many batches, from the weights that the first of them found.
    """
    loggers = [fresh(callback)] if isinstance(callback, LoggerDestination) else []
    done = train(callbacks=[] if loggers else [fresh(callback)], loggers=loggers, num_batches=_BATCHES)
    if callback.changes_training:
        assert done.losses, "not one batch was trained"
        without = train(num_batches=len(done.losses), weights=done.initial)
    else:
        without = train(num_batches=_BATCHES)
        assert len(done.losses) == _BATCHES, "it ended training and does not declare changes_training"
    for part in ("initial", "given", "losses", "weights", "optimizer", "metrics", "generators", "draws", "hooks"):
        assert _same(getattr(done, part), getattr(without, part)), f"{part} are not as they are without it"


def goes_on_where_it_was(callback: Callback) -> None:
    """One that took up the state of another, after it went to disk, records from there what the other records.

    Series that say something else when two of the same history look one after the other, such as the load of the
    machine, need only be there.
    """
    relay = _Relay(callback)
    train(callbacks=[relay], num_batches=_BATCHES)
    through, resumed, again = (_after(memory, _HANDOVER) for memory in relay.memories)
    assert through.keys() == resumed.keys(), f"it resumes with the series {sorted(resumed)}, not {sorted(through)}"
    for name, records in through.items():
        if _same(records, again[name]):
            assert _same(records, resumed[name]), f"{name} is {resumed[name]} after a resume, but {records} without"


def serves_a_second_training(callback: Callback) -> None:
    """One that was part of another training before records when a new one does: nothing of that is left in it."""
    memories = [Memory(), Memory()]
    used, new = _copy(callback, 0), _copy(callback, 1)
    train(callbacks=[used], num_batches=2, seed=2)
    if used.alone_in is not None:
        setattr(used, used.alone_in, f"{getattr(used, used.alone_in)}/again")
    for one, memory in zip((used, new), memories, strict=True):
        train(callbacks=[one], loggers=[memory], num_batches=4)
    again, once = ({name: [row[0] for row in rows] for name, rows in memory.series.items()} for memory in memories)
    assert again == once, f"it records {again} in a second training, but {once} in a first"


def names_its_series(callback: Callback) -> None:
    """Every series it records stands in its docstring; what is in braces there stands for anything."""
    memory = Memory()
    train(callbacks=[fresh(callback)], loggers=[memory], num_batches=_BATCHES)
    told = [re.sub(r"\\\{[^}]*\\\}", ".+", re.escape(word)) for word in _words(inspect.getdoc(callback) or "")]
    known = re.compile("|".join(told))
    silent = [name for name in memory.series if not _of_trainer(name) and not known.fullmatch(name)]
    assert not silent, f"no word about {silent} in the docstring of {type(callback).__name__}"


def as_from_disk(value: Any) -> Any:
    """What a checkpoint would give back of a state: plain types and tensors; AssertionError where there is more."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value), f"keys of a state are text, but got {list(value)}"
        return {key: as_from_disk(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_from_disk(item) for item in value]
    assert value is None or type(value) in (bool, int, float, str), f"{value!r} is no plain value and no tensor"
    return value


class _Relay(Callback):
    """Hands every event to three callbacks of the same settings; the second began as what the first had saved.

    It stands between the other two, so that what changes by itself from one look to the next differs between those.
    """

    def __init__(self, callback: Callback) -> None:
        self.changes_training = callback.changes_training  # type: ignore[misc]
        self.memories = [Memory(), Memory(), Memory()]
        self._callbacks: list[Callback | None] = [_copy(callback, 0), None, _copy(callback, 2)]
        self._template = callback
        for event in Event:
            setattr(self, event.value, functools.partial(self._hand_on, event))

    def close(self) -> None:
        for callback in filter(None, self._callbacks):
            callback.close()

    def _hand_on(self, event: Event, state: Any, logger: Any) -> None:
        for callback, memory in zip(self._callbacks, self.memories, strict=True):
            if callback is not None:
                _call(callback, event, state, Logger([memory], state))
        if event is Event.BATCH_CHECKPOINT and state.timestamp.batch == _HANDOVER:
            self._callbacks[1] = self._resumed(state)

    def _resumed(self, state: Any) -> Callback:
        """As a trainer that resumes would have it when its first batch comes."""
        resumed = _copy(self._template, 1)
        first = self._callbacks[0]
        assert first is not None
        saved, logger = as_from_disk(first.state_dict()), Logger([self.memories[1]], state)
        _call(resumed, Event.INIT, state, logger)
        _call(resumed, Event.BEFORE_LOAD, state, logger)
        resumed.load_state_dict(saved)
        for event in (Event.AFTER_LOAD, Event.FIT_START):
            _call(resumed, event, state, logger)
        return resumed


def _copy(callback: Callback, number: int) -> Callback:
    """One of the same settings, but for a folder that it uses alone."""
    copied: Callback = fresh(callback)
    if copied.alone_in is not None:
        setattr(copied, copied.alone_in, f"{getattr(copied, copied.alone_in)}/{number}")
    return copied


def _call(callback: Callback, event: Event, state: Any, logger: Logger) -> None:
    if hasattr(callback, event.value):
        getattr(callback, event.value)(state, logger)


def _after(memory: Memory, batch: int) -> dict[str, list[Any]]:
    """(batch, value) by series, of records made after a batch."""
    records = {name: [(row[0], row[_MOMENT]) for row in rows if row[0] > batch] for name, rows in memory.series.items()}
    return {name: rows for name, rows in records.items() if rows}


def _words(text: str) -> list[str]:
    """Words that may be names of series: all, without the full stop or comma after them."""
    found = re.findall(r"(?:[\w/.+-]|\{[^}]*\})+", text)
    return [word.rstrip(".,:") for word in found]


def _of_trainer(name: str) -> bool:
    return name.startswith(("train/", "eval/"))


def _same(a: Any, b: Any) -> bool:
    """Equal to the bit, tensors and nan included."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b or (a != a and b != b))
