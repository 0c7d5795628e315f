"""The summary as strict JSON: null where there is no number, every odd character escaped, keys in the model's order."""

from __future__ import annotations

import json

from expkit.analysis.model import Summary
from expkit.analysis.summary import summary_to_json


def to_json(summary: Summary) -> str:
    """One document with `schema_version`; equal summaries give equal text."""
    return json.dumps(summary_to_json(summary), indent=1, allow_nan=False) + "\n"
