"""Early stopper: training ends when it has stopped getting better. Prechelt 1998, Early Stopping - But When?

A step costs 5 microseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.trainer.callback import Callback
from expkit.trainer.monitored import Monitored

_EACH_BATCH = frozenset({TimeUnit.BATCH, TimeUnit.SAMPLE, TimeUnit.TOKEN, TimeUnit.SECOND})


@dataclass
class EarlyStopper(Callback):
    """Ends training when a series has not improved for longer than `patience`; records nothing.

    A series of an evaluator is looked at after each of its runs. `train/loss` is looked at after each epoch, as the
    mean over its samples, or after each batch where patience is in ba, sp, tok or sec. nan and inf are no improvement.
    All ranks stop after the same batch.
    """

    changes_training: ClassVar[bool] = True

    monitor: str
    """Series to watch, as recorded: eval/accuracy, train/loss; a part of one that has several by its dotted path,
    eval/f1.macro."""
    comp: Literal["less", "greater"] | None = None
    """Whether less or greater is better; null goes by the name: less for loss, error, perplexity or entropy, greater
    for accuracy, f1, auroc and the like."""
    min_delta: Annotated[float, Field(ge=0)] = 0.0
    """Improvements of no more than this do not count."""
    patience: Time = field(default=Time(1, TimeUnit.EPOCH))
    """How long it may go without improvement; training ends when more than this has passed since the best value."""
    _series: Any = field(default=None, init=False, repr=False, compare=False)
    _best: Any = field(default=None, init=False, repr=False, compare=False)
    _since: Any = field(default=None, init=False, repr=False, compare=False)
    _counter: Any = field(default=None, init=False, repr=False, compare=False)
    _patience: Any = field(default=None, init=False, repr=False, compare=False)
    _limit: Any = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience.unit is TimeUnit.ITERATION:
            raise ValueError(f"patience is in ep, ba, sp, tok, sec or dur, but got {self.patience}")
        self._series = Monitored(self.monitor, self.comp, each_batch=self.patience.unit in _EACH_BATCH)

    def fit_start(self, state: Any, logger: Any) -> None:
        from expkit.trainer.interval import resolve

        self._counter, self._patience = resolve(self.patience.scaled(state.steps.ssr), state)
        self._limit = None if self._since is None else self._last_after(self._since)

    def batch_end(self, state: Any, logger: Any) -> None:
        self._look(self._series.batch_end(state), state)

    def epoch_end(self, state: Any, logger: Any) -> None:
        self._look(self._series.epoch_end(state), state)

    def eval_before_all(self, state: Any, logger: Any) -> None:
        self._series.evaluating(True)

    def eval_after_all(self, state: Any, logger: Any) -> None:
        self._series.evaluating(False)

    def eval_end(self, state: Any, logger: Any) -> None:
        self._look(self._series.eval_end(state), state)

    def fit_end(self, state: Any, logger: Any) -> None:
        self._series.complain_if_unseen(logger)

    def state_dict(self) -> dict[str, Any]:
        """The best value, when it was, and what the series itself needs."""
        return {"best": self._best, "since": self._since, "series": self._series.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._best, self._since = state["best"], state["since"]
        self._series.load_state_dict(state["series"])

    def _look(self, value: float | None, state: Any) -> None:
        if value is None:
            return
        now = getattr(state.timestamp, self._counter)
        if self._since is None or self._improves(value):
            self._best, self._since = value if math.isfinite(value) else None, now
            self._limit = self._last_after(now)
        elif now > self._limit:
            missed = "been finite" if self._best is None else f"improved on {self._best:g}"
            state.stop(f"{self.monitor} has not {missed} for more than {self.patience}")

    def _improves(self, value: float) -> bool:
        if not math.isfinite(value) or self._best is None:
            return math.isfinite(value)
        gain: float = self._series.gain(value, self._best)
        return gain > self.min_delta

    def _last_after(self, since: float) -> float:
        """The last moment that patience covers; all counters but the clock are whole."""
        last = Fraction(since) + self._patience
        return float(last) if self._counter == "train_s" else math.floor(last)
