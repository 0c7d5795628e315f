"""Spans and moments of training, with a unit: `2ep`, `500ba`, `0.1dur`, `1h30m`.

Grammar: NUMBER UNIT with UNIT one of ep (epochs) ba (batches) sp (samples) tok (tokens) iter (iterations)
dur (share of the whole training) sec (seconds), or a clock form of hours, minutes and seconds: 90m, 2h30m, 45s.
A number without a unit is refused: `5` could mean anything. Fractions make sense for ep, dur and sec only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Self


class TimeUnit(StrEnum):
    """What a span is counted in; the value is how it is written."""

    EPOCH = "ep"
    BATCH = "ba"
    SAMPLE = "sp"
    TOKEN = "tok"  # noqa: S105
    ITERATION = "iter"
    DURATION = "dur"
    SECOND = "sec"


FRACTIONAL = frozenset({TimeUnit.EPOCH, TimeUnit.DURATION, TimeUnit.SECOND})
_NUMBER = re.compile(r"(?P<value>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?P<unit>ep|ba|sp|tok|iter|dur|sec)")
_CLOCK = re.compile(r"(?:(?P<h>[0-9]+)h)?(?:(?P<m>[0-9]+)m)?(?:(?P<s>[0-9]+)s)?")
_HELP = "a duration is a number and a unit, such as 2ep, 500ba, 1000sp, 0.1dur, 90m or 1h30m"


@dataclass(frozen=True)
class Time:
    """A span of training. Never negative, never NaN; whole for batches, samples, tokens and iterations."""

    value: float
    unit: TimeUnit

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or self.value < 0:
            raise ValueError(f"a duration is finite and not negative, but got {self.value}{self.unit}; {_HELP}")
        if self.unit not in FRACTIONAL and self.value != int(self.value):
            raise ValueError(f"{self.unit} are counted in whole numbers, but got {self.value}{self.unit}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """`"2ep"` -> Time(2, EPOCH); ValueError with the allowed forms for anything else."""
        if match := _NUMBER.fullmatch(text):
            return cls(float(match["value"]), TimeUnit(match["unit"]))
        match = _CLOCK.fullmatch(text)
        if match is None or not any(match.groups()):
            raise ValueError(f"{text!r} is not a duration; {_HELP}")
        hours, minutes, seconds = (int(match[part] or 0) for part in "hms")
        return cls(float(3600 * hours + 60 * minutes + seconds), TimeUnit.SECOND)

    def __str__(self) -> str:
        """The one canonical form: 1h30m and 90m are both 5400sec, 0.10dur is 0.1dur."""
        whole = self.value == int(self.value)
        return f"{int(self.value) if whole else repr(float(self.value))}{self.unit}"

    def scaled(self, ratio: float) -> Time:
        """The span under a scale-schedule ratio: `dur` stays (the whole scales), counts round half up to at least 1."""
        if self.unit is TimeUnit.DURATION or ratio == 1 or self.value == 0:
            return self
        value = self.value * ratio
        return Time(value if self.unit in FRACTIONAL else max(1, math.floor(value + 0.5)), self.unit)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema  # pydantic loads only when a settings class is built

        return core_schema.no_info_plain_validator_function(
            _time_of, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": "string", "examples": ["2ep", "500ba", "0.1dur", "90m"], "description": _HELP}


def _time_of(value: object) -> Time:
    if isinstance(value, Time):
        return value
    if isinstance(value, str):
        return Time.parse(str(value))
    raise ValueError(f"{value!r} is not a duration; {_HELP}")


class Timestamp(NamedTuple):
    """How far training has come: everything counted from zero, samples and tokens summed over ranks."""

    iteration: int = 0
    epoch: int = 0
    batch: int = 0
    sample: int = 0
    token: int = 0
    batch_in_epoch: int = 0
    sample_in_epoch: int = 0
    token_in_epoch: int = 0
    train_s: float = 0.0
    """Seconds on the train clock, which pauses for evaluation, checkpoints, callbacks and loggers."""

    def to_next_batch(self, samples: int, tokens: int, train_s: float) -> Timestamp:
        """After one more batch of so many samples and tokens, with the train clock at `train_s`."""
        return Timestamp(  # called at every step: a tuple is made in a tenth of the time of a frozen dataclass
            self.iteration,
            self.epoch,
            self.batch + 1,
            self.sample + samples,
            self.token + tokens,
            self.batch_in_epoch + 1,
            self.sample_in_epoch + samples,
            self.token_in_epoch + tokens,
            train_s,
        )

    def to_next_epoch(self) -> Timestamp:
        """At the start of the epoch that follows."""
        return self._replace(epoch=self.epoch + 1, batch_in_epoch=0, sample_in_epoch=0, token_in_epoch=0)

    def to_next_iteration(self) -> Timestamp:
        """After one more iteration; an epoch may be under way, its counters stay."""
        return self._replace(iteration=self.iteration + 1)

    def get(self, unit: TimeUnit) -> float:
        """The counter in `unit`, ValueError for `dur`, which needs to know the whole."""
        if unit is TimeUnit.DURATION:
            raise ValueError("a moment has no share of the whole by itself; ask the state for its progress")
        counters = {
            TimeUnit.EPOCH: self.epoch,
            TimeUnit.BATCH: self.batch,
            TimeUnit.SAMPLE: self.sample,
            TimeUnit.TOKEN: self.token,
            TimeUnit.ITERATION: self.iteration,
            TimeUnit.SECOND: self.train_s,
        }
        return counters[unit]
