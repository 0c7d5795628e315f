"""Store: the writing side of a runs folder; every write is whole or absent, a complete replicate is never changed.

Questions over many trials go to `query.connect`, not here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from expkit.errors import EnvironmentFault
from expkit.store import claims, compacted, shared, sweeps, tidy
from expkit.store.atomic import Unreadable, read_json, sync_folder, write_json, write_text
from expkit.store.claims import Claim
from expkit.store.layout import Layout
from expkit.store.owner import Owner
from expkit.store.pulse import PULSE
from expkit.store.records import FINAL, SCHEMA_VERSION, PlanRow, Status, TrialRecord, now_utc
from expkit.store.space import when_there_is_space

R = TypeVar("R", TrialRecord, Status)
CLAIMABLE = frozenset({"pending", "claimed", "interrupted", "lost", "failed", "diverged"})
"""States from which a replicate may be run again; which of them are wanted is the driver's choice."""


class Store:
    """One runs folder. Files that could not be read are on `set_aside`, never fatal."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(Path(root))
        self.set_aside: list[Unreadable] = []

    def add_trial(self, record: TrialRecord, recipe_yaml: str) -> None:
        """Make the trial's folder with its record and resolved recipe; a folder of another full id is exit 3."""
        known = self.read_trial(record.id12)
        if known is not None and known.id != record.id:
            raise EnvironmentFault(
                f"{self.layout.trial(record.id12)} belongs to trial {known.id}, not to {record.id}; "
                "two trials share their first 12 digits: use another --runs-dir"
            )
        if known is None or not self.layout.recipe(record.id12).exists():
            when_there_is_space(lambda: self._write_trial(record, recipe_yaml), self.layout.root)

    def read_trial(self, id12: str) -> TrialRecord | None:
        """The record of a trial, None where there is none that can be read."""
        return self._record(TrialRecord, self.layout.trial_record(id12))

    def claim(self, id12: str, replicate: int, driver: str, *, only: Collection[str] = CLAIMABLE) -> Claim | None:
        """The right to run a replicate, None where somebody else has it or its state is not one of `only`.

        The state is looked at after the claim is won, so what another driver finished meanwhile is not run again.
        """
        claim = when_there_is_space(lambda: claims.take(self.layout, id12, replicate, driver), self.layout.root)
        if claim is not None and self._settled(id12, replicate) not in only:
            claim.release()
            return None
        return claim

    def new_attempt(
        self,
        id12: str,
        replicate: int,
        driver: str,
        *,
        continues: tuple[int, int] | None = None,
        **record: Any,
    ) -> Path:
        """Make the folder of the next attempt with its attempt.json; the replicate is `claimed` from then on.

        `continues` is (attempt, batch) of the checkpoint that it goes on from. Other keywords stand in attempt.json.
        """
        self._not_complete(id12, replicate)
        tidy.replicate(self.layout, id12, replicate)
        attempt, folder = when_there_is_space(lambda: self._next_attempt(id12, replicate), self.layout.root)
        origin = None if continues is None else {"attempt": continues[0], "batch": continues[1]}
        own = {"attempt": attempt, "replicate": replicate, "driver": driver, "from": origin}
        document = {"schema_version": SCHEMA_VERSION, **record, **own}
        path = self.layout.attempt_record(folder)
        when_there_is_space(lambda: write_json(path, document, durable=origin is not None), folder)
        before = self.read_status(id12, replicate)
        created = before.created_utc if before is not None and before.created_utc else now_utc()
        status = Status(state="claimed", attempt=attempt, created_utc=created, driver=driver)
        self.write_status(id12, replicate, status.owned_by(Owner.this_process()))
        return folder

    def read_attempt(self, attempt_dir: Path) -> dict[str, Any] | None:
        """attempt.json: attempt, replicate, driver, from, and what the driver added."""
        return read_json(self.layout.attempt_record(attempt_dir), self.set_aside)

    def write_status(self, id12: str, replicate: int, status: Status) -> None:
        """Replace the status of a replicate; EnvironmentFault where it is complete already."""
        self._not_complete(id12, replicate)
        result = status.state in FINAL  # stays, also after a power cut; all else is lost with its process anyway
        path = self.layout.status(id12, replicate)
        when_there_is_space(lambda: write_json(path, status.to_json(), durable=result), path.parent)
        if result:
            sync_folder(self.layout.replicate(id12, replicate))

    def read_status(self, id12: str, replicate: int) -> Status | None:
        """The status as it was last written, None where there is none that can be read."""
        return self._record(Status, self.layout.status(id12, replicate))

    def torn(self) -> set[tuple[str, int]]:
        """(id, replicate) of which a metrics file of rank 0, the one that evaluates, is on `set_aside`."""
        torn: set[tuple[str, int]] = set()
        for bad in self.set_aside:
            if bad.path.parent == self.layout.compacted:
                torn |= compacted.lacking(self.layout, bad.path.stem)
            elif (own := Layout.replicate_of(bad.path)) is not None:
                torn.add(own)
        return torn

    def write_provenance(self, id12: str, replicate: int, document: Mapping[str, Any], **own: Any) -> None:
        """Keep what was run where: `document` is stored once under its hash, `own` is this replicate's alone."""

        def write() -> None:
            digest = shared.write(self.layout, document)
            record = {"schema_version": SCHEMA_VERSION, "shared": digest, **own}
            write_json(self.layout.provenance(id12, replicate), record)
            shared.write(self.layout, document)  # garbage until now, and it may have been collected as such

        when_there_is_space(write, self.layout.root)

    def read_provenance(self, id12: str, replicate: int) -> dict[str, Any]:
        """The shared document with this replicate's own entries over it; empty where nothing was written."""
        own = read_json(self.layout.provenance(id12, replicate), self.set_aside) or {}
        return {**shared.read(self.layout, own.pop("shared", None), self.set_aside), **own}

    def heartbeat(self, id12: str, replicate: int) -> None:
        """Say that this replicate's worker is alive, for readers on other hosts; call it every second."""
        beat = self.layout.heartbeat(id12, replicate)
        beat.touch()

    def state_of(self, id12: str, replicate: int) -> str:
        """One of STATES. `lost` where claimed or running was written and nobody is left who could end it."""
        return self.look(id12, replicate)[0]

    def look(self, id12: str, replicate: int) -> tuple[str, Status | None]:
        """The state as `state_of` says it, and the status as it was written.

        A status that cannot be read makes the replicate `lost`, and the file is on `set_aside`.
        """
        damaged = len(self.set_aside)
        status = self.read_status(id12, replicate)
        if status is None:
            held = claims.newest(self.layout, id12, replicate, sure=False)[1]
            return "claimed" if held else "lost" if len(self.set_aside) > damaged else "pending", None
        if status.state not in ("claimed", "running") or self._is_alive(id12, replicate, status):
            return status.state, status
        return status.state if claims.newest(self.layout, id12, replicate, sure=False)[1] else "lost", status

    def replicates(self, id12: str) -> list[int]:
        """Numbers of a trial's replicates, in order."""
        try:
            names = os.listdir(self.layout.trial(id12))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):  # a stray file beside the trials is none
            return []
        return sorted(int(n[1:]) for n in names if n[0] == "r" and n[1:].isdigit())

    def attempts(self, id12: str, replicate: int) -> list[int]:
        """Numbers of a replicate's attempts, in order."""
        try:
            names = os.listdir(self.layout.attempts(id12, replicate))  # noqa: PTH208
        except FileNotFoundError:
            return []
        return sorted(int(n) for n in names if n.isdigit())

    def write_plan(self, sweep: str, sweep_yaml: str, rows: Iterable[PlanRow], *, file: str = "") -> None:
        """Write which replicates a sweep uses, its file as given, and where that file lies."""
        tidy.shared(self.layout, sweep)
        plan = list(rows)
        when_there_is_space(lambda: sweeps.write_plan(self.layout, sweep, sweep_yaml, plan, file), self.layout.root)

    def read_plan(self, sweep: str) -> list[PlanRow]:
        """The rows of a sweep's plan in run order; empty where there is none."""
        return sweeps.read_plan(self.layout, sweep, self.set_aside)

    def sweeps(self) -> list[str]:
        """Names of all sweeps, sorted."""
        return sweeps.names(self.layout)

    def sweep_record(self, sweep: str) -> dict[str, Any]:
        """created_utc, file and sha256 of a sweep; empty where there is none."""
        return read_json(self.layout.sweep_record(sweep), self.set_aside) or {}

    def write_settings(self, sweep: str, settings: Mapping[str, Any]) -> None:
        """Write what the report of a sweep needs to know of its file: clock, ci, metric, mode, baseline_arm, ..."""
        self._write(self.layout.settings(sweep), settings)

    def sweep_settings(self, sweep: str) -> dict[str, Any]:
        """What `write_settings` wrote; empty where nothing is."""
        return read_json(self.layout.settings(sweep), self.set_aside) or {}

    def write_target(self, sweep: str, target: Mapping[str, Any]) -> None:
        """Copy a target: {metric, mode, value, rule, seeds, finals, ladder, utc, hash}."""
        self._write(self.layout.target(sweep), target)

    def targets(self, sweep: str) -> dict[str, Any]:
        """The copy of a sweep's target; empty where there is none."""
        return read_json(self.layout.target(sweep), self.set_aside) or {}

    def write_confirmation(self, sweep: str, confirmation: Mapping[str, Any]) -> None:
        """Write what `expkit confirm` has settled: {utc, rule, arms, seeds, metric, test, opened_utc, earlier, ...}."""
        self._write(self.layout.confirmation(sweep), confirmation)

    def confirmation(self, sweep: str) -> dict[str, Any]:
        """What `write_confirmation` wrote; empty where nothing is."""
        return read_json(self.layout.confirmation(sweep), self.set_aside) or {}

    def write_reference(self, sweep: str, reference: Mapping[str, Any]) -> None:
        """Write what `expkit calibrate` found: {host, utc, phases: [{arm, phase, steps, median_s, mad_s}], ...}."""
        write_json(self.layout.reference(sweep), reference)

    def reference(self, sweep: str) -> dict[str, Any]:
        """What `write_reference` wrote; empty where nothing is."""
        return read_json(self.layout.reference(sweep), self.set_aside) or {}

    def _settled(self, id12: str, replicate: int) -> str:
        """The state as who holds the claim sees it: a running one without its process is lost."""
        status = self.read_status(id12, replicate)
        if status is None:
            return "pending"
        if status.state == "running":
            return "running" if self._is_alive(id12, replicate, status) else "lost"
        return status.state

    def _is_alive(self, id12: str, replicate: int, status: Status) -> bool:
        alive = status.owner.alive()
        return self._beats(id12, replicate) if alive is None else alive

    def _beats(self, id12: str, replicate: int) -> bool:
        files = (self.layout.heartbeat(id12, replicate), self.layout.status(id12, replicate))
        return any(PULSE.beats(path, sure=False) for path in files)

    def _not_complete(self, id12: str, replicate: int) -> None:
        status = self.read_status(id12, replicate)
        if status is not None and status.state == "complete":
            raise EnvironmentFault(
                f"trial {id12} r{replicate} is complete, and a complete replicate is never changed; "
                f"run it again as r{max(self.replicates(id12)) + 1}"
            )

    def _write_trial(self, record: TrialRecord, recipe_yaml: str) -> None:
        tidy.folder(self.layout.trial(record.id12))
        write_text(self.layout.recipe(record.id12), recipe_yaml)
        write_json(self.layout.trial_record(record.id12), record.to_json())

    def _next_attempt(self, id12: str, replicate: int) -> tuple[int, Path]:
        self.layout.attempts(id12, replicate).mkdir(parents=True, exist_ok=True)
        attempt = max(self.attempts(id12, replicate), default=0)
        if attempt == 0:  # one that was removed may still have rows somewhere; they must not pass for ours
            attempt = compacted.last_attempt(self.layout, id12, replicate)
        while True:
            attempt += 1
            folder = self.layout.attempt(id12, replicate, attempt)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return attempt, folder

    def _write(self, path: Path, value: Mapping[str, Any]) -> None:
        when_there_is_space(lambda: write_json(path, value), self.layout.root)

    def _record(self, kind: type[R], path: Path) -> R | None:
        value = read_json(path, self.set_aside)
        if value is None:
            return None
        try:
            return kind.from_json(value)
        except ValueError as e:
            self.set_aside.append(Unreadable(path, str(e)))
            return None
