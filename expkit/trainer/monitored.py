"""Monitored: the series that a stopper watches: when it has a new value, and which way is better. No torch here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from expkit.errors import UsageError, unknown

if TYPE_CHECKING:
    from expkit.trainer.logger import Logger
    from expkit.trainer.state import State

Better = Literal["less", "greater"]
TRAIN_LOSS = "train/loss"
_LESS = {"loss", "error", "perplexity", "entropy", "divergence", "mse", "mae", "rmse", "nll", "wer", "cer"}
_GREATER = {
    "accuracy",
    "acc",
    "auc",
    "auroc",
    "f1",
    "precision",
    "recall",
    "iou",
    "dice",
    "bleu",
    "rouge",
    "r2",
    "score",
}


class Monitored:
    """One series as a stopper sees it: asked at every moment, it has a value where there is a new one.

    `train/loss`, and `train/loss/<part>` where the loss has parts, has one at the end of an epoch, the mean over its
    samples, or after each batch; any other series when its evaluator has run.
    """

    def __init__(self, name: str, comp: Better | None, *, each_batch: bool = False) -> None:
        """`comp` says which way is better, None leaves it to the name; ValueError where that says nothing."""
        if "/" not in name:
            raise ValueError(f"a series to monitor is called eval/accuracy or train/loss, say, but got {name!r}")
        self.name = name
        self._sign = 1 if better(name, comp) == "greater" else -1
        self._seen = self._evaluating = False
        self._trains = name.startswith("train/")
        self._each_batch = each_batch
        self._sum, self._samples = 0.0, 0

    def batch_end(self, state: State) -> float | None:
        """The loss of the batch, where that is what is watched."""
        if not self._trains:
            return None
        self._seen = True
        loss = float(self._loss(state))  # waits for the accelerator
        samples = state.timestamp.sample - state.previous_timestamp.sample
        self._sum, self._samples = self._sum + loss * samples, self._samples + samples
        return loss if self._each_batch else None

    def epoch_end(self, state: State) -> float | None:
        """The mean loss of the epoch, where that is what is watched."""
        if not self._trains:
            return None
        mean = self._sum / self._samples if self._samples else math.nan
        self._sum, self._samples = 0.0, 0
        return None if self._each_batch else mean

    def evaluating(self, now: bool) -> None:
        """An evaluation of training begins or ends; what `trainer.eval()` finds is no news."""
        self._evaluating = now

    def eval_end(self, state: State) -> float | None:
        """The value that the evaluator which has just run recorded; UsageError where it should have and did not."""
        if not self._evaluating or not self.name.startswith(f"{state.eval_name}/"):
            return None
        value = value_at(state.metrics, self.name)
        if value is None:
            series = [name for name in state.metrics if name.startswith(f"{state.eval_name}/")]
            raise UsageError(unknown("series to monitor", self.name, series))
        self._seen = True
        return value

    def _loss(self, state: State) -> Any:
        if self.name == TRAIN_LOSS:
            return state.loss
        parts = {f"{TRAIN_LOSS}/{name}": part for name, part in state.losses.items()}
        if self.name not in parts:
            raise UsageError(unknown("series to monitor", self.name, [TRAIN_LOSS, *parts]))
        return parts[self.name]

    def gain(self, value: float, over: float) -> float:
        """By how much a value is better than another, negative where it is worse."""
        return self._sign * (value - over)

    def complain_if_unseen(self, logger: Logger) -> None:
        """An event where the series never had a value, so that whoever watched it has watched nothing."""
        if not self._seen:
            message = f"{self.name} was never recorded, so nothing could end training"
            logger.log_event("monitored", {"series": self.name, "message": message})

    def state_dict(self) -> dict[str, Any]:
        """The sums of the epoch under way."""
        return {"sum": self._sum, "samples": self._samples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""
        self._sum, self._samples = state["sum"], state["samples"]


def better(name: str, given: Better | None) -> Better:
    """Which way is better, by what was given or else by the words of the name; ValueError where both say nothing."""
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*(?![a-z])", name)}
    if given is None and bool(words & _LESS) is bool(words & _GREATER):
        raise ValueError(f"comp must be less or greater, because the name {name!r} does not say which way is better")
    return given or ("less" if words & _LESS else "greater")


def value_at(series: Mapping[str, Any], path: str) -> float | None:
    """The number behind a dotted path: `eval/accuracy`, or `eval/f1.macro` for a part of a series that has several."""
    if path in series:
        return None if isinstance(series[path], Mapping) else float(series[path])
    for name, value in series.items():
        if isinstance(value, Mapping) and path.startswith(f"{name}."):
            return value_at(value, path.removeprefix(f"{name}."))
    flat = path.replace(".", "/")  # where its parts are recorded as series of their own
    return value_at(series, flat) if flat in series else None
