"""Who is called when: algorithms by what they declare, then callbacks, then loggers; close exactly once."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from expkit.errors import PluginError, UsageError
from expkit.trainer.algorithm import Algorithm, name_of
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from expkit.trainer.order import ordered
from tests.trainer.doubles import Memory, recorder, trainer

CALLED: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CALLED.clear()


class Noted:
    def batch_start(self, state: Any, logger: Any) -> None:
        CALLED.append(f"{type(self).__name__} batch_start")

    def after_dataloader(self, state: Any, logger: Any) -> None:
        CALLED.append(f"{type(self).__name__} after_dataloader")

    def after_loss(self, state: Any, logger: Any) -> None:
        CALLED.append(f"{type(self).__name__} after_loss")


@dataclass
class Apple(Noted, Algorithm):
    pass


@dataclass
class Pear(Noted, Algorithm):
    before = frozenset({"apple"})


@dataclass
class Quince(Noted, Algorithm):
    after = frozenset({"apple", "not_here"})


@dataclass
class Watcher(Noted, Callback):
    pass


@dataclass
class Sink(Noted, Memory):
    pass


def called(event: str) -> list[str]:
    return [line.split()[0] for line in CALLED if line.endswith(f" {event}")]


@pytest.mark.parametrize("given", list(itertools.permutations([Apple, Pear, Quince])))
def test_order_is_declared_and_does_not_depend_on_the_list(given: tuple[type[Algorithm], ...]) -> None:
    trainer(algorithms=[cls() for cls in given], callbacks=[Sink(), Watcher()], max_duration="1ba").fit()
    assert called("batch_start") == ["Pear", "Apple", "Quince", "Watcher", "Sink"]
    assert called("after_dataloader") == ["Pear", "Apple", "Quince", "Watcher", "Sink"]  # batches are changed forwards
    assert called("after_loss") == ["Quince", "Apple", "Pear", "Watcher", "Sink"]  # the way out of before_loss


def test_without_declarations_names_decide() -> None:
    pair = {"z": Apple(), "a": Quince()}
    assert [name_of(a) for a in ordered(pair).values()] == ["apple", "quince"]


def test_a_circle_is_an_error_that_names_it() -> None:
    @dataclass
    class First(Algorithm):
        before = frozenset({"second"})

    @dataclass
    class Second(Algorithm):
        before = frozenset({"first"})

    with pytest.raises(PluginError, match="first, second each want to come before"):
        trainer(algorithms=[First(), Second()])


def test_a_conflict_is_refused_unless_allowed() -> None:
    @dataclass
    class Rival(Algorithm):
        conflicts = frozenset({"apple"})

    with pytest.raises(PluginError, match="rival and apple do not go together"):
        trainer(algorithms=[Apple(), Rival()])
    trainer(algorithms=[Apple(), Rival()], allow=[("apple", "rival")])


@pytest.mark.parametrize("base", [Callback, Algorithm])
def test_a_method_whose_name_is_close_to_an_event_is_refused(base: type[Any]) -> None:
    typo = dataclass(type("Typo", (base,), {"befor_loss": lambda self, state, logger: None}))
    with pytest.raises(PluginError, match=r"Typo.befor_loss is no event.*'before_loss'"):
        trainer(**{"callbacks" if base is Callback else "algorithms": [typo()]})


def test_a_helper_with_an_underscore_or_another_name_is_fine() -> None:
    cls = type("Fine", (Callback,), {"_befor_loss": lambda self: None, "summary": lambda self: None})
    trainer(callbacks=[dataclass(cls)()])


def test_match_and_apply_form() -> None:
    @dataclass
    class Both(Algorithm):
        def match(self, event: Event, state: Any) -> bool:
            return event in (Event.BATCH_END, Event.EPOCH_END)

        def apply(self, event: Event, state: Any, logger: Any) -> None:
            CALLED.append(event)
            self.effective = True

    t = trainer(algorithms=[Both()], max_duration="1ep")
    assert t.effective == {"both": False}
    t.fit()
    assert CALLED == ["batch_end"] * 4 + ["epoch_end"]
    assert t.effective == {"both": True}


def test_one_algorithms_apply_does_not_change_anothers_match_in_the_same_event() -> None:
    @dataclass
    class Changer(Algorithm):
        def batch_start(self, state: Any, logger: Any) -> None:
            state.metrics["changed"] = 1.0

    @dataclass
    class Looker(Algorithm):
        after = frozenset({"changer"})

        def match(self, event: Event, state: Any) -> bool:
            return event is Event.BATCH_START and "changed" in state.metrics

        def apply(self, event: Event, state: Any, logger: Any) -> None:
            CALLED.append("late")

    trainer(algorithms=[Changer(), Looker()], max_duration="1ba").fit()
    assert CALLED == []


def test_an_exception_fires_fit_error_and_passes_through() -> None:
    @dataclass
    class Boom(Callback):
        def batch_end(self, state: Any, logger: Any) -> None:
            raise ZeroDivisionError("boom")

    listener = recorder()
    t = trainer(callbacks=[Boom(), listener])
    with pytest.raises(ZeroDivisionError, match="boom"):
        t.fit()
    assert listener.seen[-1] is Event.FIT_ERROR
    assert Event.FIT_END not in listener.seen
    assert isinstance(t.state.error, ZeroDivisionError)


def test_a_listener_to_fit_error_that_raises_does_not_hide_the_first_error() -> None:
    @dataclass
    class Boom(Callback):
        def batch_end(self, state: Any, logger: Any) -> None:
            raise ZeroDivisionError("first")

        def fit_error(self, state: Any, logger: Any) -> None:
            raise KeyError("second")

    with pytest.raises(ZeroDivisionError, match="first") as caught:
        trainer(callbacks=[Boom()]).fit()
    assert "second" in caught.value.__notes__[1]


def test_every_listener_to_fit_error_is_called_also_after_one_that_raises() -> None:
    class Boom(Callback):
        def batch_end(self, state: Any, logger: Any) -> None:
            raise ZeroDivisionError("first")

        def fit_error(self, state: Any, logger: Any) -> None:
            raise KeyError("second")

    class Breaking(Algorithm):
        def fit_error(self, state: Any, logger: Any) -> None:
            raise OSError("third")

    listener = recorder()
    with pytest.raises(ZeroDivisionError, match="first") as caught:
        trainer(algorithms=[dataclass(Breaking)()], callbacks=[dataclass(Boom)(), listener]).fit()
    assert listener.seen.count(Event.FIT_ERROR) == 1
    assert ["third" in note or "second" in note for note in caught.value.__notes__[1:]] == [True, True]


@dataclass
class Closing(Callback):
    """Notes its closing; raises what it is told to."""

    name: str = "one"
    at_close: str = ""
    at_post_close: str = ""

    def close(self) -> None:
        CALLED.append(f"{self.name} close")
        if self.at_close:
            raise OSError(self.at_close)

    def post_close(self) -> None:
        CALLED.append(f"{self.name} post_close")
        if self.at_post_close:
            raise OSError(self.at_post_close)


def test_close_and_post_close_happen_exactly_once_and_loggers_close_last() -> None:
    memory = Memory()
    t = trainer(callbacks=[Closing(), Closing("two")], loggers=[memory], max_duration="1ba")
    t.fit()
    t.close()
    t.close()
    assert CALLED == ["one close", "two close", "one post_close", "two post_close"]
    assert memory.closed == 1
    for call in (t.fit, t.eval, lambda: t.predict([])):
        with pytest.raises(UsageError, match="closed"):
            call()


def test_one_that_raises_keeps_no_other_from_being_closed_and_the_first_error_wins() -> None:
    memory = Memory()
    t = trainer(callbacks=[Closing("one", "first", "third"), Closing("two", "second", "fourth")], loggers=[memory])
    with pytest.raises(OSError, match="first") as caught:
        t.close()
    t.close()
    assert CALLED == ["one close", "two close", "one post_close", "two post_close"]
    assert memory.closed == 1
    assert str(caught.value) == "first"
    assert caught.value.__notes__ == [f"then raised OSError: {word}" for word in ("second", "third", "fourth")]


def test_ctrl_c_while_closing_leaves_nothing_open() -> None:
    class Stuck(Callback):
        def close(self) -> None:
            raise KeyboardInterrupt

    memory = Memory()
    with pytest.raises(KeyboardInterrupt):
        trainer(callbacks=[dataclass(Stuck)()], loggers=[memory]).close()
    assert memory.closed == 1


def test_closing_after_an_error_does_not_hide_it() -> None:
    with pytest.raises(ZeroDivisionError) as caught, trainer(callbacks=[Closing("one", "disk full")]):
        raise ZeroDivisionError
    assert "disk full" in caught.value.__notes__[0]
    assert CALLED == ["one close", "one post_close"]


@pytest.mark.parametrize("event", ["init", "before_load", "after_load"])
def test_an_error_while_the_trainer_is_made_closes_what_is_open(event: str) -> None:
    def boom(self: Any, state: Any, logger: Any) -> None:
        raise ZeroDivisionError("boom")

    memory = Memory()
    broken = dataclass(type("Broken", (Callback,), {event: boom}))()
    with pytest.raises(ZeroDivisionError, match="boom") as caught:
        trainer(callbacks=[broken, Closing("one", "disk full")], loggers=[memory])
    assert (CALLED, memory.closed) == (["one close", "one post_close"], 1)
    assert "disk full" in caught.value.__notes__[0]


HANDLERS = """
import atexit, signal, sys, threading
before = [signal.getsignal(s) for s in signal.valid_signals()]
from expkit.trainer import event, algorithm, callback, logger, contracts
assert 'torch' not in sys.modules
import torch, torch.utils.data, torch._dynamo
count = atexit._ncallbacks()
from expkit import Trainer, algorithms, callbacks, loggers
import expkit.trainer.engine

def train():
    model = torch.nn.Linear(2, 2)
    data = [(torch.zeros(2, 2), torch.zeros(2, dtype=torch.long))]
    with Trainer(model=model, train_dataloader=data, optimizers=torch.optim.SGD(model.parameters(), lr=0.1),
                 max_duration="2ba", device="cpu", algorithms=[algorithms.EMA()], loggers=[loggers.Memory()]) as t:
        t.fit()
    done.append(t.state.timestamp.batch)

done = []
train()
thread = threading.Thread(target=train)  # where no handler could be installed, as under Ray
thread.start(); thread.join()
assert done == [2, 2]
assert before == [signal.getsignal(s) for s in signal.valid_signals()]
assert count == atexit._ncallbacks(), (count, atexit._ncallbacks())
"""


def test_neither_import_nor_training_installs_a_handler_and_contracts_load_no_torch() -> None:
    """composer#3151: handlers put in place on import crash in threads and under Ray."""
    subprocess.run([sys.executable, "-c", HANDLERS], check=True)


def test_same_name_twice_gets_numbered_labels() -> None:
    assert list(trainer(algorithms=[Apple(), Apple()]).effective) == ["apple", "apple_2"]
    assert list(trainer(algorithms={"mine": Apple()}).effective) == ["mine"]
