"""Logger: the facade that algorithms and callbacks write to, and the contract of the destinations behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from expkit.trainer.callback import Callback

if TYPE_CHECKING:
    from expkit.trainer.state import State


class LoggerDestination(Callback):
    """A place that records go to; override what it can keep.

    The moment of a record stands in the state: `state.timestamp` (batches done, epoch, samples, tokens) and
    `state.train_s`, `state.cpu_s`, `state.wall_s` as read at the last batch end or evaluation.
    """

    def log_metrics(self, metrics: Mapping[str, float], state: State) -> None:
        """Numbers of this moment by series name, `train/loss`, `eval/accuracy`; NaN and inf are values too."""

    def log_hyperparameters(self, values: Mapping[str, Any], state: State) -> None:
        """Facts that hold for the whole run."""

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], state: State) -> None:
        """A small table."""

    def log_images(self, name: str, images: Any, state: State) -> None:
        """Images of shape (N, C, H, W) or (C, H, W), values 0 to 1."""

    def log_histogram(self, name: str, values: Any, bins: int, state: State) -> None:
        """How values are distributed; a tensor or array of any shape."""

    def log_text(self, name: str, text: str, state: State) -> None:
        """A text of any length."""

    def log_traces(self, traces: Mapping[str, Mapping[str, int]], state: State) -> None:
        """How often each algorithm acted at each event, `{label: {event: times}}`; once at the end of a fit."""

    def log_event(self, kind: str, payload: Mapping[str, Any], state: State) -> None:
        """Something that happened once, such as a microbatch made smaller; JSON values."""

    def upload_file(self, name: str, path: Path, state: State) -> None:
        """Keep a copy of a file under this name."""


class Logger:
    """Hands each record to all destinations, in their order.

    Numbers of a batch end are held back until all callbacks have logged theirs, and handed on as one record: a record
    costs more than a number. Where a name comes twice there, the later value stays.
    """

    def __init__(self, destinations: Iterable[LoggerDestination], state: State) -> None:
        self.destinations = tuple(destinations)
        self._state = state
        self._held: dict[str, float] | None = None

    def log_metrics(self, metrics: Mapping[str, float]) -> None:
        """Numbers of this moment by series name; floats, not tensors."""
        if self._held is not None:
            self._held.update(metrics)
            return
        for destination in self.destinations:
            destination.log_metrics(metrics, self._state)

    def hold(self, metrics: dict[str, float]) -> None:
        """Begin a record with these numbers; what is logged until `release` joins it."""
        self._held = metrics

    def release(self) -> None:
        """Hand on what was held, if anything was."""
        if self._held is not None:
            metrics, self._held = self._held, None
            self.log_metrics(metrics)

    def draft(self) -> Draft:
        """From now on what is logged is kept back, until the draft is released or discarded."""
        return Draft(self)

    def log_hyperparameters(self, values: Mapping[str, Any]) -> None:
        """Facts that hold for the whole run."""
        for destination in self.destinations:
            destination.log_hyperparameters(values, self._state)

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A small table."""
        for destination in self.destinations:
            destination.log_table(name, columns, rows, self._state)

    def log_images(self, name: str, images: Any) -> None:
        """Images of shape (N, C, H, W) or (C, H, W), values 0 to 1."""
        for destination in self.destinations:
            destination.log_images(name, images, self._state)

    def log_histogram(self, name: str, values: Any, bins: int = 64) -> None:
        """How values are distributed; a tensor or array of any shape. NaN and inf are counted apart."""
        for destination in self.destinations:
            destination.log_histogram(name, values, bins, self._state)

    def log_text(self, name: str, text: str) -> None:
        """A text of any length."""
        for destination in self.destinations:
            destination.log_text(name, text, self._state)

    def log_traces(self, traces: Mapping[str, Mapping[str, int]]) -> None:
        """How often each algorithm acted at each event, `{label: {event: times}}`; once at the end of a fit."""
        for destination in self.destinations:
            destination.log_traces(traces, self._state)

    def log_event(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Something that happened once, such as a microbatch made smaller; JSON values."""
        for destination in self.destinations:
            destination.log_event(kind, payload, self._state)

    def upload_file(self, name: str, path: Path) -> None:
        """Keep a copy of a file under this name."""
        for destination in self.destinations:
            destination.upload_file(name, path, self._state)


class Draft:
    """Records of what may yet be undone; stands in for the destinations of a logger and costs it nothing otherwise."""

    def __init__(self, logger: Logger) -> None:
        self._logger, self._destinations = logger, logger.destinations
        self._calls: list[tuple[str, tuple[Any, ...]]] = []
        if self._destinations:
            logger.destinations = (cast(LoggerDestination, self),)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *record: self._calls.append((name, record))

    def release(self) -> None:
        """Hand on everything, in order."""
        self.discard()
        for name, record in self._calls:
            for destination in self._destinations:
                getattr(destination, name)(*record)

    def discard(self) -> None:
        """Nothing of it was logged."""
        self._logger.destinations = self._destinations
