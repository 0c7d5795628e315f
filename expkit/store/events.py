"""EventLog: what happened while an attempt ran, a JSON document a line, each written at once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from expkit.store.layout import Layout
from expkit.store.records import now_utc
from expkit.store.space import when_there_is_space
from expkit.store.strict import strict


class EventLog:
    """Events of one rank of one attempt; all ranks append to one file."""

    def __init__(self, attempt_dir: Path, rank: int = 0) -> None:
        self._rank = rank
        self._dir = attempt_dir
        self._descriptor = os.open(Layout.events(attempt_dir), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)

    def write(self, kind: str, batch: int = 0, /, **payload: Any) -> None:
        """Append one event; `kind` is a word of the writer's choice, such as start, checkpoint, effective, end."""
        event = {"utc": now_utc(), "rank": self._rank, "batch": batch, "kind": kind, "payload": strict(payload)}
        line = json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n"
        rest = memoryview(line.encode())

        def write() -> None:
            nonlocal rest
            while rest:  # one call, so that lines of several ranks do not mix; more where the disk takes but a part
                rest = rest[os.write(self._descriptor, rest) :]

        when_there_is_space(write, self._dir)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)
