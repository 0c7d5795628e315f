"""Numbers as the sentences of a report write them; never `nan`, and no digit that the interval does not carry.

A measured number without an interval has a fixed count of figures, trailing zeros kept, by `significant`; what somebody
set, such as a margin or a level, stands as it was written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from expkit.analysis.estimates import Interval

CLOCK_NAMES = {"train_s": "the train clock", "cpu_s": "CPU time", "wall_s": "the wall clock"}
TIMING_REASONS = {
    "contention": "other work held the processor: wall / CPU above 1.1",
    "drift": "the reference workload moved by more than 10 %",
    "resumed": "continued from a checkpoint",
    "shared": "ran beside other trials",
}
"""Why a trial's seconds cannot be trusted, by the word that its status has."""


def clock_name(clock: str) -> str:
    """`CPU time` for cpu_s; the column's own name where there is no better one."""
    return CLOCK_NAMES.get(clock, clock)


def on_clock(clock: str) -> str:
    """`in CPU time`, `on the train clock`."""
    return f"{'in' if clock == 'cpu_s' else 'on'} {clock_name(clock)}"


def factor(ratio: Interval) -> str:
    """`x1.22 [1.18, 1.26] (n=5)`; without ends where n = 1, `no ratio` where there is none."""
    if ratio.value is None:
        return "no ratio"
    if ratio.lo is None or ratio.hi is None:
        return f"{times(ratio.value)} (n={ratio.n}, no interval)"
    digits = _digits(ratio.hi - ratio.lo, least=2)
    ends = f"[{_plain(ratio.lo, digits)}, {_plain(ratio.hi, digits)}]"
    return f"x{_plain(ratio.value, digits)} {ends} (n={ratio.n})"


def difference(change: Interval) -> str:
    """`+0.012 [+0.004, +0.020] (n=5)` in the metric's unit."""
    if change.value is None:
        return "no difference known"
    if change.lo is None or change.hi is None:
        return f"{_signed(change.value, _digits(abs(change.value), 3))} (n={change.n}, no interval)"
    digits = _digits(change.hi - change.lo, least=3)
    ends = f"[{_signed(change.lo, digits)}, {_signed(change.hi, digits)}]"
    return f"{_signed(change.value, digits)} {ends} (n={change.n})"


def percent(log_ratio: float) -> str:
    """A size in log-time as a share: 0.0198 -> `2.0 %`."""
    return share(math.expm1(min(log_ratio, 50)))


def share(part: float) -> str:
    """Two figures, whole from ten on: 0.0198 -> `2.0 %`, 4.1 -> `410 %`; rounding of a clock is `< 0.001 %`."""
    if 0 < abs(part) < 1e-5:
        return "< 0.001 %"
    return f"{significant(100 * part, 2)} %" if abs(part) < 1e6 else f"{significant(part, 2)}-fold"


def seconds(value: float) -> str:
    """`12.3 s`, `1.90 s`."""
    return f"{significant(value)} s"


def quality(value: float) -> str:
    """A value of a metric: `0.8412`, `0.8000`."""
    return significant(value, 4)


def times(ratio: float) -> str:
    """A ratio without its interval: `x1.20`, `x0.953`."""
    return f"x{significant(ratio)}"


def significant(value: float, figures: int = 3) -> str:
    """So many figures, trailing zeros kept and no digit of a whole number dropped: `1.90`, `0.0412`, `12,345`.

    `1.90e-07` below 1e-4 and from 1e9 on, `0` for zero, `not a number` for nan and inf.
    """
    if not math.isfinite(value):
        return "not a number"
    exponent = int(f"{value:.{figures - 1}e}".partition("e")[2])  # after rounding: 9.996 is 10.0
    if value and not -4 <= exponent < 9:
        return f"{value:.{figures - 1}e}"
    return f"{value:,.{max(0, figures - 1 - exponent)}f}" if value else "0"


def count(number: int, noun: str) -> str:
    """`1 trial`, `3 trials`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(names: Sequence[str], most: int = 6) -> str:
    """`a, b and c`; of more than so many and one the first, and how many more there are."""
    shown = list(names[: most + (len(names) == most + 1)])  # the one would take no more room than `1 more`
    if len(names) > len(shown):
        return f"{', '.join(shown)} and {len(names) - len(shown):,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _digits(width: float, least: int) -> int:
    """Decimals that show two significant digits of the interval's width."""
    if not math.isfinite(width) or width <= 0:
        return least
    return min(max(least, 1 - math.floor(math.log10(width * (1 + 1e-9)))), 8)


def _plain(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if abs(value) < 1e6 else significant(value)


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}" if abs(value) < 1e6 else f"{value:+.2e}"
    return f"+{text[1:]}" if float(text) == 0 else text
