"""Threshold stopper: training ends when it is good enough; a step costs 4 microseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from expkit.trainer.callback import Callback
from expkit.trainer.monitored import Monitored


@dataclass
class ThresholdStopper(Callback):
    """Ends training as soon as a series is at least as good as a threshold; records nothing.

    A series of an evaluator is looked at after each of its runs, `train/loss` after each epoch, as the mean over its
    samples. nan is never good enough. All ranks stop after the same batch.
    """

    changes_training: ClassVar[bool] = True

    monitor: str
    """Series to watch, as recorded: eval/accuracy, train/loss; a part of one that has several by its dotted path,
    eval/f1.macro."""
    threshold: float
    """Value that is good enough."""
    comp: Literal["less", "greater"] | None = None
    """Whether less or greater is better; null goes by the name: less for loss, error, perplexity or entropy, greater
    for accuracy, f1, auroc and the like."""
    stop_on_batch: bool = False
    """Whether train/loss is looked at after each batch, as it is, instead of its mean after each epoch."""
    _series: Any = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._series = Monitored(self.monitor, self.comp, each_batch=self.stop_on_batch)

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
        """The sums of the epoch under way."""
        return self._series.state_dict()  # type: ignore[no-any-return]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._series.load_state_dict(state)

    def _look(self, value: float | None, state: Any) -> None:
        if value is not None and self._series.gain(value, self.threshold) >= 0:
            state.stop(f"{self.monitor} is {value:g}, and {self.threshold:g} is good enough")
