"""Attempt: the folder that is the only door between a driver and a worker, seen from the worker's side."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from expkit.errors import EnvironmentFault
from expkit.store.events import EventLog
from expkit.store.layout import Layout
from expkit.store.owner import Owner
from expkit.store.records import Status, now_utc
from expkit.store.store import Store


@dataclass(frozen=True)
class Attempt:
    """One try at a replicate; `record` is its attempt.json."""

    store: Store
    folder: Path
    id12: str
    replicate: int
    record: Mapping[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Self:
        """From `runs/trials/<id12>/r<k>/attempts/<n>`."""
        folder = folder.resolve()
        store = Store(folder.parents[4])
        record = store.read_attempt(folder)
        if record is None:
            raise EnvironmentFault(f"{Layout.attempt_record(folder)} is missing or cannot be read")
        return cls(store, folder, folder.parents[2].name, record["replicate"], record)

    @property
    def recipe(self) -> Path:
        """The resolved recipe: the trial's, or one of its own that saves or watches otherwise."""
        own = Layout.own_recipe(self.folder)
        return own if own.exists() else self.store.layout.recipe(self.id12)

    @property
    def trust(self) -> tuple[str, ...]:
        """Patterns of modules that may be imported for `py:` components."""
        return tuple(self.record["trust"])

    @property
    def python_path(self) -> list[str]:
        """Folders that `py:` components are found in."""
        return list(self.record["python_path"])

    @property
    def resumed(self) -> bool:
        """Whether this attempt continues another."""
        return self.record["from"] is not None

    @property
    def checkpoint(self) -> Path | None:
        """The one to begin with, where there is one."""
        return Layout.checkpoints(self.folder) / self.record["checkpoint"] if self.resumed else None

    @property
    def driver_owner(self) -> Owner:
        """The process that waits for the result."""
        return Owner(**self.record["driver_owner"])

    def begin(self) -> None:
        """Say that this process is at it."""
        claimed = self.store.read_status(self.id12, self.replicate) or Status("claimed", self.record["attempt"])
        running = dataclasses.replace(
            claimed, state="running", started_utc=now_utc(), driver=self.record["driver"], dirty=self.record["dirty"]
        )
        self._write(running.owned_by(Owner.this_process()))
        self.note("started", pid=os.getpid(), attempt=self.record["attempt"])

    def end(self, state: str, batch: int = 0, **fields: Any) -> None:
        """Say how it went; the last thing that is written."""
        if fields.get("message"):  # may quote what no file can hold, half of a surrogate pair
            fields["message"] = fields["message"].encode("utf-8", "backslashreplace").decode()
        self.note(state, batch, **{key: fields[key] for key in ("cause", "message") if fields.get(key)})
        running = self.store.read_status(self.id12, self.replicate) or Status("claimed", self.record["attempt"])
        now = now_utc()
        self._write(dataclasses.replace(running, state=state, ended_utc=now, heartbeat_utc=now, **fields))

    def note(self, kind: str, batch: int = 0, **payload: Any) -> None:
        """One line in events.jsonl."""
        log = EventLog(self.folder)
        log.write(kind, batch, **payload)
        log.close()

    def heartbeat(self, batch: int, max_steps: int) -> None:
        """Alive at this moment, so many batches done; replaced in one small write, readers bear with half of it."""
        path = self.store.layout.heartbeat(self.id12, self.replicate)
        path.write_text(json.dumps({"batch": batch, "of": max_steps}))

    def _write(self, status: Status) -> None:
        self.store.write_status(self.id12, self.replicate, status)
