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
    assert [name_of(a) for a in ordered(pair)] == ["apple", "quince"]


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
    assert "second" in caught.value.__notes__[0]


def test_close_happens_exactly_once_also_where_one_raises() -> None:
    class Broken(Callback):
        def close(self) -> None:
            CALLED.append("broken")
            raise OSError("disk full")

    memory = Memory()
    t = trainer(callbacks=[dataclass(Broken)()], loggers=[memory])
    with pytest.raises(OSError, match="disk full"):
        t.close()
    t.close()
    assert (CALLED, memory.closed) == (["broken"], 1)
    with pytest.raises(UsageError, match="closed"):
        t.fit()


def test_importing_the_contracts_loads_no_torch_and_the_engine_installs_no_handler() -> None:
    code = (
        "import sys, signal, atexit\n"
        "before = [signal.getsignal(s) for s in signal.valid_signals()]\n"
        "from expkit.trainer import event, algorithm, callback, logger, contracts\n"
        "assert 'torch' not in sys.modules\n"
        "import torch; count = atexit._ncallbacks()\n"
        "import expkit.trainer.trainer\n"
        "assert before == [signal.getsignal(s) for s in signal.valid_signals()]\n"
        "assert count == atexit._ncallbacks(), (count, atexit._ncallbacks())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_same_name_twice_gets_numbered_labels() -> None:
    assert list(trainer(algorithms=[Apple(), Apple()]).effective) == ["apple", "apple_2"]
    assert list(trainer(algorithms={"mine": Apple()}).effective) == ["mine"]
