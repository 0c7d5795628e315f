"""The summary as strict JSON: null where there is no number, every odd character escaped, keys in the model's order."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from expkit.analysis.model import Summary


def to_json(summary: Summary) -> str:
    """One document with `schema_version`; equal summaries give equal text."""
    return json.dumps(_plain(dataclasses.asdict(summary)), indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
