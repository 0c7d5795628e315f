"""Numbers that JSON does not have: NaN and inf travel as texts and come back as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_TEXTS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def strict(value: Any) -> Any:
    """JSON values only: non-finite floats become "nan", "inf", "-inf"; mappings and sequences are walked."""
    if isinstance(value, float):
        return value if math.isfinite(value) else _text(value)
    if isinstance(value, Mapping):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [strict(v) for v in value]
    return value


def number(value: Any) -> float | None:
    """The float behind a number or one of the three texts; None for anything else."""
    if isinstance(value, str):
        return _TEXTS.get(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None


def _text(value: float) -> str:
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
