"""Engine: who is called at each event, in which order; settled before the first step. Names no plug-in."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping

from expkit.errors import PluginError
from expkit.plugins import Plugin
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.clock import Clocks
from expkit.trainer.event import REVERSED, Event
from expkit.trainer.logger import Logger, LoggerDestination
from expkit.trainer.order import check_conflicts, ordered
from expkit.trainer.state import State

Method = Callable[[State, Logger], object]
Match = Callable[[Event, State], bool]
_CLOSE_NAME = 0.85


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
        check_conflicts(state.algorithms, allow)
        algorithms = ordered(state.algorithms)
        self._listeners = {
            event: (_acting(algorithms, event), _watching(list(state.callbacks.values()), logger, event))
            for event in Event
        }
        self.heard = frozenset(event for event, listeners in self._listeners.items() if any(listeners))
        self.fire = _firing(self.heard, self._run)
        """`fire(event)` calls everybody who listens to it; a tenth of a microsecond where nobody does."""
        self._open: list[Callback] = callbacks
        self.closed = False

    def close(self) -> None:
        """Close callbacks and loggers, each exactly once, even where one of them raises; the first error is raised."""
        self.closed = True
        errors: list[Exception] = []
        while self._open:
            try:
                self._open.pop(0).close()
            except Exception as e:
                errors.append(e)
        if errors:
            raise errors[0]

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

    def _act(self, acting: list[tuple[Match | None, Method]], event: Event) -> None:
        if acting:
            self.clocks.switch("algorithms_s")
            matched = [apply for match, apply in acting if match is None or match(event, self.state)]
            for apply in matched:
                apply(self.state, self.logger)

    def _watch(self, watching: list[Method]) -> None:
        if watching:
            self.clocks.switch("callbacks_s")
            for method in watching:
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


def _acting(algorithms: list[Algorithm], event: Event) -> list[tuple[Match | None, Method]]:
    """(match or None, apply) of each algorithm that may act; those of event-method form without a question asked."""
    acting: list[tuple[Match | None, Method]] = []
    for algorithm in reversed(algorithms) if event in REVERSED else algorithms:
        if not _hears(algorithm, event):
            continue
        own_match = _matches_itself(algorithm)
        own_apply = own_match or type(algorithm).apply is not Algorithm.apply
        acting.append((algorithm.match if own_match else None,
                       _applying(algorithm, event) if own_apply else getattr(algorithm, event.value)))  # fmt: skip
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


def _watching(callbacks: list[Callback], logger: Logger, event: Event) -> list[Method]:
    """Callbacks, then loggers; between them a batch's held record is handed on. Loggers first at INIT."""
    watching, logging = _methods(callbacks, event), _methods(logger.destinations, event)
    if event is Event.INIT:
        return [*logging, *watching]
    if event in (Event.BATCH_END, Event.FIT_ERROR) and logger.destinations:
        return [*watching, lambda state, logger: logger.release(), *logging]
    return [*watching, *logging]


def _methods(callbacks: Iterable[Callback], event: Event) -> list[Method]:
    return [getattr(callback, event.value) for callback in callbacks if hasattr(callback, event.value)]
