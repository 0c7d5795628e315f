"""Engine: who is called at each event, in which order; settled before the first step. Names no plug-in."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from expkit.errors import PluginError
from expkit.plugins import Plugin
from expkit.trainer.algorithm import Algorithm, name_of
from expkit.trainer.callback import Callback
from expkit.trainer.clock import Clocks
from expkit.trainer.event import REVERSED, Event
from expkit.trainer.logger import Logger, LoggerDestination
from expkit.trainer.order import check_conflicts, ordered
from expkit.trainer.state import State

Method = Callable[[State, Logger], object]
Match = Callable[[Event, State], bool]
_CLOSE_NAME = 0.85


@dataclass(slots=True)
class Turn:
    """One algorithm's place at one event."""

    label: str
    match: Match | None
    """None where its having the method is the answer."""
    apply: Method
    times: int = 0
    """How often it has acted there."""


class Engine:
    """Fires events: algorithms first, in their declared order, then callbacks, then loggers.

    At INIT it is the other way round, so that an algorithm's first record finds an open logger. What algorithms do is
    billed to training, whatever the event; what callbacks and loggers do is not.
    """

    def __init__(self, state: State, logger: Logger, clocks: Clocks, *, allow: Iterable[tuple[str, str]] = ()) -> None:
        """Listeners are those of the state and the destinations of the logger; `allow` lifts declared conflicts."""
        self.state = state
        self.logger = logger
        self.clocks = clocks
        callbacks = [*state.callbacks.values(), *logger.destinations]
        for plugin in (*state.algorithms.values(), *callbacks):
            refuse_misspelt_events(plugin)
        for algorithm in state.algorithms.values():
            vars(algorithm).pop("effective", None)  # of another training
        check_conflicts(state.algorithms, allow)
        algorithms = ordered(state.algorithms)
        self._listeners = {event: (_acting(algorithms, event), _watching(state, logger, event)) for event in Event}
        self.heard = frozenset(event for event, listeners in self._listeners.items() if any(listeners))
        self.fire = _firing(self.heard, self._run)
        """`fire(event)` calls everybody who listens to it; a tenth of a microsecond where nobody does."""
        self._open: list[Callback] = callbacks
        self.closed = False

    def close(self) -> None:
        """Close callbacks and loggers, then call what they do after that, each exactly once, even where one raises.

        The first error is raised when all have had their turn; the others are its notes.
        """
        self.closed = True
        plugins, self._open = self._open, []
        first: BaseException | None = None
        for last_call in [*(plugin.close for plugin in plugins), *(plugin.post_close for plugin in plugins)]:
            try:
                last_call()
            except BaseException as e:  # whoever presses Ctrl-C does not want files left open
                first = e if first is None else _noted(first, e, "then")
        if first is not None:
            raise first

    def fail(self, error: BaseException) -> None:
        """FIT_ERROR, to every listener even where another raises, then the traces; what is raised becomes its notes."""
        acting, watching = self._listeners[Event.FIT_ERROR]
        for turn in acting:
            _noting(error, self._act, [turn], Event.FIT_ERROR)
        self.clocks.switch("callbacks_s")
        for _, method in watching:
            _noting(error, method, self.state, self.logger)
        _noting(error, self.log_traces)
        self.clocks.stop()

    def order(self, event: Event) -> list[str]:
        """Labels of all who are called at an event, first to last."""
        acting, watching = self._listeners[event]
        algorithms, others = [turn.label for turn in acting], [label for label, _ in watching if label]
        return [*others, *algorithms] if event is Event.INIT else [*algorithms, *others]

    def log_traces(self) -> None:
        """Hand on how often each algorithm acted at each event since the last time, `{label: {event: times}}`."""
        traces: dict[str, dict[str, int]] = {label: {} for label in self.state.algorithms}
        for event, (acting, _) in self._listeners.items():
            for turn in acting:
                if turn.times:
                    traces[turn.label][event.value] = turn.times
                    turn.times = 0
        if traces:
            self.logger.log_traces(traces)

    def turns_at(self, events: Iterable[Event]) -> list[Turn]:
        """The places of all algorithms at these events."""
        return [turn for event in events for turn in self._listeners[event][0]]

    def listeners_to(self, events: Iterable[Event]) -> list[Algorithm | Callback]:
        """Algorithms and callbacks that may act at one of these events."""
        events = list(events)
        plugins: list[Algorithm | Callback] = [*self.state.algorithms.values(), *self.state.callbacks.values()]
        return [plugin for plugin in plugins if any(_hears(plugin, event) for event in events)]

    def _run(self, event: Event) -> None:
        acting, watching = self._listeners[event]
        before = self.clocks.part
        if event is Event.INIT:
            self._watch(watching)
            self._act(acting, event)
        else:
            self._act(acting, event)
            self._watch(watching)
        self.clocks.switch(before)

    def _act(self, acting: list[Turn], event: Event) -> None:
        if acting:
            self.clocks.switch("algorithms_s")
            matched = [turn for turn in acting if turn.match is None or turn.match(event, self.state)]
            for turn in matched:
                turn.apply(self.state, self.logger)
                turn.times += 1

    def _watch(self, watching: list[tuple[str, Method]]) -> None:
        if watching:
            self.clocks.switch("callbacks_s")
            for _, method in watching:
                method(self.state, self.logger)


def refuse_misspelt_events(plugin: Plugin) -> None:
    """PluginError for a public method of its own whose name is close to an event's: it would never be called."""
    events = [event.value for event in Event]
    contract = {name for base in (Algorithm, Callback, LoggerDestination) for name in dir(base)}
    for name, _ in inspect.getmembers(type(plugin), inspect.isfunction):
        if name.startswith("_") or name in contract or name in events:
            continue
        if near := difflib.get_close_matches(name, events, n=1, cutoff=_CLOSE_NAME):
            raise PluginError(
                f"{type(plugin).__name__}.{name} is no event, it would never be called; did you mean {near[0]!r}? "
                f"(a helper of your own starts with an underscore)"
            )


def effective(algorithms: Mapping[str, Algorithm]) -> dict[str, bool]:
    """Whether each algorithm has really done something, by label."""
    return {label: bool(algorithm.effective) for label, algorithm in algorithms.items()}


def _acting(algorithms: Mapping[str, Algorithm], event: Event) -> list[Turn]:
    """Places of the algorithms that may act; those of event-method form act without a question asked."""
    acting: list[Turn] = []
    for label, algorithm in reversed([*algorithms.items()]) if event in REVERSED else algorithms.items():
        if not _hears(algorithm, event):
            continue
        own_match = _matches_itself(algorithm)
        own_apply = own_match or type(algorithm).apply is not Algorithm.apply
        apply = _applying(algorithm, event) if own_apply else getattr(algorithm, event.value)
        acting.append(Turn(label, algorithm.match if own_match else None, apply))
    return acting


def _hears(plugin: Algorithm | Callback, event: Event) -> bool:
    return hasattr(plugin, event.value) or _matches_itself(plugin)


def _matches_itself(plugin: Algorithm | Callback) -> bool:
    return isinstance(plugin, Algorithm) and type(plugin).match is not Algorithm.match


def _firing(heard: frozenset[Event], run: Callable[[Event], None]) -> Callable[[Event], None]:
    def fire(event: Event) -> None:
        if event in heard:
            run(event)

    return fire


def _applying(algorithm: Algorithm, event: Event) -> Method:
    def apply(state: State, logger: Logger) -> None:
        algorithm.apply(event, state, logger)

    return apply


def _watching(state: State, logger: Logger, event: Event) -> list[tuple[str, Method]]:
    """Callbacks, then loggers; between them a batch's held record is handed on. Loggers first at INIT."""
    watching = _methods(state.callbacks.items(), event)
    logging = _methods(((name_of(destination), destination) for destination in logger.destinations), event)
    if event is Event.INIT:
        return [*logging, *watching]
    if event in (Event.BATCH_END, Event.FIT_ERROR) and logger.destinations:
        return [*watching, ("", lambda state, logger: logger.release()), *logging]
    return [*watching, *logging]


def _methods(callbacks: Iterable[tuple[str, Callback]], event: Event) -> list[tuple[str, Method]]:
    return [(name, getattr(callback, event.value)) for name, callback in callbacks if hasattr(callback, event.value)]


def _noting(error: BaseException, call: Callable[..., object], *arguments: Any) -> None:
    try:
        call(*arguments)
    except Exception as e:
        _noted(error, e, "and a listener to fit_error")


def _noted(first: BaseException, later: BaseException, who: str) -> BaseException:
    first.add_note(f"{who} raised {type(later).__name__}: {later}")
    return first
