"""What the store remembers of a trial: frozen records, strict JSON, a schema version in each."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self, cast

from expkit.store.layout import ID12
from expkit.store.owner import Owner
from expkit.store.strict import number

SCHEMA_VERSION = 1
STATES = ("pending", "claimed", "running", "complete", "failed", "diverged", "pruned", "interrupted", "lost")
WRITTEN = frozenset(STATES) - {"pending", "lost"}
"""`pending` is the absence of a record, `lost` is inferred by readers: neither is ever written."""
FINAL = frozenset({"complete", "failed", "diverged", "pruned"})
CAUSES = ("exception", "oom", "timeout", "signal", "ended-early", "disk", "config", "environment")
CLOCKS = ("setup_s", "train_s", "cpu_s", "wall_s", "data_wait_s", "forward_s", "backward_s", "optimizer_s",
          "algorithms_s", "callbacks_s", "eval_s", "checkpoint_s", "compile_s")  # fmt: skip
"""The parts of a trial's time, in the order of the trials view."""
CONTENTION_RATIO = 1.1
"""Wall over CPU time of one busy thread, beyond which somebody else had the core."""
ROLES = ("baseline", "arm", "repeat", "pilot", "tune", "confirm")


def now_utc() -> str:
    """This moment as ISO 8601 with Z, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Record:
    """Reading and writing of a frozen record; keys that a newer version added are passed over."""

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object with its schema version first."""
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"schema_version": SCHEMA_VERSION, **own}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The record behind a JSON object; ValueError where it is none."""
        version = value.get("schema_version")
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise ValueError(f"has schema version {version!r}, this expkit reads up to {SCHEMA_VERSION}")
        known = _types(cast("type", cls))
        own = {k: v for k, v in value.items() if k in known}
        for name, given in own.items():
            annotation, types = known[name]
            if type(given) not in types:  # not isinstance: true is no number
                raise ValueError(f"has {name} = {given!r}, which is no {annotation}")
        try:
            return cls(**own)
        except TypeError as e:
            raise ValueError(f"is no {cls.__name__}: {e}") from None


@functools.cache
def _types(cls: type) -> dict[str, tuple[str, frozenset[type]]]:
    """By field: its annotation, and the Python types of JSON values that fit; what stands in brackets is left out."""
    return {
        f.name: (
            str(f.type),
            frozenset(t for word in re.sub(r"\[.*\]", "", str(f.type)).split(" | ") for t in _JSON_TYPES[word]),
        )
        for f in dataclasses.fields(cls)
    }


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "float": (int, float), "bool": (bool,), "dict": (dict,), "list": (list, tuple),
    "None": (type(None),),
}  # fmt: skip


@dataclass(frozen=True)
class TrialRecord(_Record):
    """What a trial is; trial.json, written once."""

    id: str
    """All 64 hex; folders and views show the first 12."""
    label: str
    """The arm."""
    algorithms: list[dict[str, Any]]
    """`{name, label, params}` of each method that is on, sorted by label."""
    size: int
    """How many methods are on."""
    seed: int
    config: dict[str, Any]
    """The resolved recipe as JSON values."""
    identity: dict[str, Any]
    """What the id is the hash of."""

    def __post_init__(self) -> None:
        if len(self.id) != 64 or set(self.id) - set("0123456789abcdef"):
            raise ValueError(f"a trial's id is 64 hex digits, but got {self.id!r}")
        if not all(isinstance(a, dict) and "label" in a for a in self.algorithms):
            raise ValueError("each method of a trial is {name, label, params}")

    @property
    def id12(self) -> str:
        """The id as folders and views show it."""
        return self.id[:12]


@dataclass(frozen=True)
class Status(_Record):
    """How a replicate stands; status.json, replaced at every change."""

    state: str
    attempt: int
    """The latest attempt, counted from 1."""
    cause: str | None = None
    message: str | None = None
    created_utc: str | None = None
    started_utc: str | None = None
    ended_utc: str | None = None
    host: str = ""
    boot_id: str = ""
    pid: int = 0
    process_start: float = 0.0
    heartbeat_utc: str | None = None
    driver: str = ""
    """The driver run that asked for it."""
    setting: dict[str, Any] = field(default_factory=dict)
    """What changes seconds or bits but no mathematics: host, device, nproc, threads, parallel, torch, microbatch."""
    setting_hash: str = ""
    clocks: dict[str, float | None] = field(default_factory=dict)
    """Seconds by the names of CLOCKS."""
    timing_valid: bool | None = None
    timing_reasons: list[str] = field(default_factory=list)
    effective: dict[str, bool] = field(default_factory=dict)
    """By label: whether the method found anything to do."""
    reference_s: list[float] = field(default_factory=list)
    """Reference workload before and after."""
    code_sha: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    """What code_sha is made of: 12 hex of expkit and of each module of the user's own that the recipe names."""
    phases: dict[str, int] = field(default_factory=dict)
    """Steps by what they did, told by the shapes of their forward passes; empty where they were not counted."""
    dirty: bool | None = None
    final: dict[str, float] = field(default_factory=dict)
    """Last value of each metric; may be nan or inf."""

    def __post_init__(self) -> None:
        if self.state not in WRITTEN:
            raise ValueError(f"state {self.state!r} is never written; there are: {', '.join(sorted(WRITTEN))}")
        if self.cause is not None and self.cause not in CAUSES:
            raise ValueError(f"unknown cause {self.cause!r}; there are: {', '.join(CAUSES)}")
        if stray := set(self.clocks) - set(CLOCKS):
            raise ValueError(f"unknown clock {min(stray)!r}; there are: {', '.join(CLOCKS)}")
        if self.attempt < 1:
            raise ValueError(f"attempts are counted from 1, but got {self.attempt!r}")
        for name in ("clocks", "final"):
            object.__setattr__(self, name, {k: number(v) for k, v in getattr(self, name).items()})

    @property
    def owner(self) -> Owner:
        """The process that was to bring the result."""
        return Owner(self.host, self.boot_id, self.pid, self.process_start)

    def owned_by(self, owner: Owner) -> Self:
        """The same with another process as the one that is to bring the result."""
        return dataclasses.replace(
            self, host=owner.host, boot_id=owner.boot_id, pid=owner.pid, process_start=owner.process_start
        )


@dataclass(frozen=True)
class Notes(_Record):
    """What people say of a trial; notes.json, replaced at every change."""

    tags: list[str] = field(default_factory=list)
    """Sorted."""
    note: str = ""
    changed_utc: str | None = None

    def __post_init__(self) -> None:
        if not all(isinstance(name, str) for name in self.tags):
            raise ValueError("tags are texts")


@dataclass(frozen=True)
class PlanRow:
    """One replicate that a sweep uses; a row of plan.parquet."""

    id: str
    """12 hex."""
    replicate: int
    arm: str
    role: str
    block: int
    position: int
    """Place in the run order of the whole sweep."""
    target_hash: str | None = None

    def __post_init__(self) -> None:
        if not ID12.fullmatch(self.id) or self.replicate < 0:  # a plan may come from a bundle, and ids name folders
            raise ValueError(f"a replicate is 12 hex digits and a number, but got {self.id!r} r{self.replicate}")
        if self.role not in ROLES:
            raise ValueError(f"unknown role {self.role!r}; there are: {', '.join(ROLES)}")
