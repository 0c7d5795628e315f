"""Spans and moments of training, with a unit: `2ep`, `500ba`, `0.1dur`, `1h30m`.

Grammar: NUMBER UNIT with UNIT one of ep (epochs) ba (batches) sp (samples) tok (tokens) iter (iterations)
dur (share of the whole training) sec (seconds), or a clock form of hours, minutes and seconds: 90m, 2h30m, 45s.
A number without a unit is refused: `5` could mean anything. Fractions make sense for ep, dur and sec only.

Arithmetic is that of decimals, as they are written: 0.1dur + 0.2dur is 0.3dur, 0.7dur of 10ba is 7ba.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
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
    """A span of training. Never negative, never NaN; whole for batches, samples, tokens and iterations.

    Spans of one unit are compared, added and divided; between units that is a ValueError, and so is a bare number. A
    moment is compared by its counter: `state.timestamp >= Time.parse("2ep")`. A text stands for the span it spells.
    """

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
        """The span under a scale-schedule ratio: counts round half up to at least 1.

        `dur` and `iter` stay: the whole, and the length of an iteration, scale.
        """
        if self.unit in (TimeUnit.DURATION, TimeUnit.ITERATION) or ratio == 1 or self.value == 0:
            return self
        value = self.value * ratio
        return Time(value if self.unit in FRACTIONAL else max(1, math.floor(value + 0.5)), self.unit)

    def __lt__(self, other: Time | Timestamp | str) -> bool:
        return self._exact() < self._alike(other, "is not comparable with")

    def __le__(self, other: Time | Timestamp | str) -> bool:
        return self._exact() <= self._alike(other, "is not comparable with")

    def __gt__(self, other: Time | Timestamp | str) -> bool:
        return self._exact() > self._alike(other, "is not comparable with")

    def __ge__(self, other: Time | Timestamp | str) -> bool:
        return self._exact() >= self._alike(other, "is not comparable with")

    def __add__(self, other: Time | str) -> Time:
        return self._with(self._exact() + self._alike(other, "cannot be added to"))

    def __sub__(self, other: Time | str) -> Time:
        """What is left; ValueError where that would be less than nothing."""
        return self._with(self._exact() - self._alike(other, "cannot be reduced by"))

    def __mod__(self, other: Time | str) -> Time:
        return self._with(self._exact() % _divisor(self._alike(other, "cannot be divided by"), self))

    def __mul__(self, factor: float | Time) -> Time:
        """So many times, or a share of it: 0.1dur * 200ba is 20ba. Counts round half up."""
        if not isinstance(factor, Time):
            return self._with(self._exact() * _fraction(factor))
        if TimeUnit.DURATION not in (self.unit, factor.unit):
            raise ValueError(f"{self} times {factor} means nothing; one of them is a number or a share in dur")
        whole, share = (factor, self) if self.unit is TimeUnit.DURATION else (self, factor)
        return whole._with(whole._exact() * share._exact())

    __rmul__ = __mul__

    def __truediv__(self, other: float | Time | str) -> Time:
        """By a span of its unit: which share of it, in dur. By a number: that part, counts round half up."""
        if isinstance(other, Time | str):
            divisor = _divisor(self._alike(other, "cannot be divided by"), self)
            return Time(float(self._exact() / divisor), TimeUnit.DURATION)
        return self._with(self._exact() / _divisor(_fraction(other), self))

    def _exact(self) -> Fraction:
        return Fraction(repr(float(self.value)))  # 0.1 means a tenth, not the float next to it

    def _alike(self, other: object, relation: str) -> Fraction:
        """The value of another span, or of a moment's counter, in this unit."""
        if isinstance(other, Timestamp):
            return Fraction(repr(float(other.get(self.unit))))
        span = _time_of(other)
        if span.unit is not self.unit:
            raise ValueError(f"{self} {relation} {span}: {self.unit} and {span.unit} are different units")
        return span._exact()

    def _with(self, value: Fraction) -> Time:
        return Time(float(value) if self.unit in FRACTIONAL else math.floor(value + Fraction(1, 2)), self.unit)

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


def _fraction(number: float) -> Fraction:
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"a duration is multiplied and divided by finite numbers, but got {number!r}")
    return Fraction(repr(float(number)))


def _divisor(value: Fraction, dividend: Time) -> Fraction:
    if value == 0:
        raise ZeroDivisionError(f"{dividend} cannot be divided by nothing")
    return value


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
    batch_in_iteration: int = 0
    train_s: float = 0.0
    """Seconds on the train clock, which pauses for evaluation, checkpoints, callbacks and loggers."""

    def to_next_batch(self, samples: int, tokens: int, train_s: float) -> Timestamp:
        """After one more batch of so many samples and tokens, with the train clock at `train_s`."""
        iteration, epoch, batch, sample, token, batch_in_epoch, sample_in_epoch, token_in_epoch, in_iteration, _ = self
        moment = (iteration, epoch, batch + 1, sample + samples, token + tokens, batch_in_epoch + 1,
                  sample_in_epoch + samples, token_in_epoch + tokens, in_iteration + 1, train_s)  # fmt: skip
        return tuple.__new__(Timestamp, moment)  # at every step: what Timestamp(...) does, in a third of the time

    def to_next_epoch(self) -> Timestamp:
        """At the start of the epoch that follows."""
        return self._replace(epoch=self.epoch + 1, batch_in_epoch=0, sample_in_epoch=0, token_in_epoch=0)

    def to_next_iteration(self) -> Timestamp:
        """After one more iteration; an epoch may be under way, its counters stay."""
        return self._replace(iteration=self.iteration + 1, batch_in_iteration=0)

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
