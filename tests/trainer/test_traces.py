"""Traces: which algorithm acted at which event how often; handed to the logger once at the end of each fit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from expkit.loggers.memory import Memory
from expkit.loggers.parquet import Parquet
from expkit.store.events import EventLog
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from tests.trainer.doubles import trainer


@dataclass
class Surgery(Algorithm):
    before = frozenset({"loss_bender"})

    def init(self, state: Any, logger: Any) -> None:
        pass

    def before_loss(self, state: Any, logger: Any) -> None:
        pass

    def after_loss(self, state: Any, logger: Any) -> None:
        pass


@dataclass
class LossBender(Algorithm):
    def before_loss(self, state: Any, logger: Any) -> None:
        pass

    def after_loss(self, state: Any, logger: Any) -> None:
        pass


@dataclass
class EveryOther(Algorithm):
    """Of the form that is asked first."""

    def match(self, event: Event, state: Any) -> bool:
        return event is Event.BATCH_END and state.timestamp.batch % 2 == 0

    def apply(self, event: Event, state: Any, logger: Any) -> None:
        pass


@dataclass
class Idle(Algorithm):
    def fit_error(self, state: Any, logger: Any) -> None:
        pass


@dataclass
class Boom(Callback):
    at: int = 3

    def batch_end(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch == self.at:
            raise ZeroDivisionError("boom")


def test_each_algorithm_each_event_and_how_often() -> None:
    memory = Memory()
    t = trainer(algorithms=[LossBender(), Surgery(), EveryOther(), Idle()], loggers=[memory], max_duration="5ba",
                device_train_microbatch_size=3)  # fmt: skip
    assert memory.traces == []
    t.fit()
    loss = {"before_loss": 10, "after_loss": 10}
    expected = {"loss_bender": loss, "surgery": {"init": 1, **loss}, "every_other": {"batch_end": 2}, "idle": {}}
    assert memory.traces == [expected]
    t.fit("2ba")  # once a fit, what acted in that fit
    loss = {"before_loss": 4, "after_loss": 4}
    assert memory.traces[1:] == [{"loss_bender": loss, "surgery": loss, "every_other": {"batch_end": 1}, "idle": {}}]


def test_two_of_a_kind_are_told_apart() -> None:
    """Composer's traces are keyed by repr, so that two alike overwrite each other."""
    memory = Memory()
    trainer(algorithms=[EveryOther(), EveryOther()], loggers=[memory], max_duration="4ba").fit()
    assert memory.traces == [{"every_other": {"batch_end": 2}, "every_other_2": {"batch_end": 2}}]


def test_also_where_an_error_ends_the_fit() -> None:
    memory = Memory()
    t = trainer(algorithms=[LossBender(), Idle()], callbacks=[Boom()], loggers=[memory])
    with pytest.raises(ZeroDivisionError):
        t.fit()
    loss = {"before_loss": 3, "after_loss": 3}
    assert memory.traces == [{"loss_bender": loss, "idle": {"fit_error": 1}}]


def test_a_logger_that_cannot_take_them_does_not_hide_the_first_error() -> None:
    class Full(Memory):
        def log_traces(self, traces: Any, state: Any) -> None:
            raise OSError("disk full")

    t = trainer(algorithms=[LossBender()], callbacks=[Boom()], loggers=[Full()])
    with pytest.raises(ZeroDivisionError) as caught:
        t.fit()
    assert "disk full" in caught.value.__notes__[1]


def test_a_training_without_algorithms_has_none() -> None:
    memory = Memory()
    trainer(loggers=[memory], max_duration="1ba").fit()
    assert memory.traces == []


def test_parquet_writes_them_as_an_event(tmp_path: Path) -> None:
    labels = {"kind": EveryOther(), "batch": EveryOther(), "self": Idle()}  # words of the event log itself
    t = trainer(algorithms=labels, loggers=[Parquet(tmp_path, "0" * 12)], max_duration="4ba")
    with t:
        t.fit()
    (line,) = (tmp_path / "events.jsonl").read_text().splitlines()
    event = json.loads(line)
    assert (event["kind"], event["batch"]) == ("traces", 4)
    assert event["payload"] == {"kind": {"batch_end": 2}, "batch": {"batch_end": 2}, "self": {}}


def test_an_event_may_carry_any_name(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.write("start", 0, kind=1, batch=2)
    log.close()
    assert json.loads((tmp_path / "events.jsonl").read_text())["payload"] == {"kind": 1, "batch": 2}


@dataclass
class OutOfMemoryOnce(Algorithm):
    left: Any = field(default=1, init=False)

    after = frozenset({"loss_bender"})

    def before_loss(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch == 1 and state.microbatch_size is None:
            raise MemoryError("too much")


def test_an_attempt_that_did_not_fit_into_memory_leaves_no_trace() -> None:
    memory = Memory()
    algorithms = [LossBender(), OutOfMemoryOnce(), EveryOther()]
    trainer(algorithms=algorithms, loggers=[memory], max_duration="2ba", device_train_microbatch_size="auto").fit()
    bender = {"before_loss": 3, "after_loss": 3}  # a whole batch, then two halves
    assert memory.traces == [
        {"loss_bender": bender, "out_of_memory_once": {"before_loss": 3}, "every_other": {"batch_end": 1}}
    ]


def test_order_shows_who_is_called_at_an_event_first_to_last() -> None:
    @dataclass
    class Watcher(Callback):
        def init(self, state: Any, logger: Any) -> None:
            pass

        def after_loss(self, state: Any, logger: Any) -> None:
            pass

    @dataclass
    class Sink(Memory):
        def init(self, state: Any, logger: Any) -> None:
            pass

        def after_loss(self, state: Any, logger: Any) -> None:
            pass

        def batch_end(self, state: Any, logger: Any) -> None:
            pass

    t = trainer(algorithms=[LossBender(), Surgery()], callbacks={"mine": Watcher()}, loggers=[Sink()])
    assert t.engine.order(Event.BEFORE_LOSS) == ["surgery", "loss_bender"]
    assert t.engine.order(Event.AFTER_LOSS) == ["loss_bender", "surgery", "mine", "sink"]
    assert t.engine.order(Event.INIT) == ["sink", "mine", "surgery"]
    assert t.engine.order(Event.BATCH_END) == ["sink"]
    assert t.engine.order(Event.EPOCH_END) == []


def test_the_order_of_after_dataloader_is_forwards() -> None:
    """D1: Composer reverses it, so that selective backprop comes last where its own tests want it first."""
    from expkit.algorithms.colout import ColOut
    from expkit.algorithms.progressive_resizing import ProgressiveResizing
    from expkit.algorithms.selective_backprop import SelectiveBackprop

    t = trainer(algorithms=[ProgressiveResizing(), ColOut(), SelectiveBackprop()])
    order = t.engine.order(Event.AFTER_DATALOADER)
    assert order[0] == "selective_backprop"
    assert set(order) == {"selective_backprop", "colout", "progressive_resizing"}
