"""Where everything lies below the runs folder; the one class that knows a file's name.

sweeps/<name>/   sweep.yaml  sweep.json  plan.parquet  settings.json  target.json  confirm.json  study.journal  report/
trials/<id12>/   trial.json  recipe.yaml  notes.json
   r<k>/         status.json  provenance.json  heartbeat  claim-<n>.json
      attempts/<k>/  attempt.json  recipe.yaml  events.jsonl  rank<r>.log  rank<r>.failure.json
                     metrics-000000.parquet ...  metrics-000000-000041.parquet (what 42 of them became)
                     artifacts/  checkpoints/  profile/
metrics/<hex>.parquet     rows of many finished attempts;  <hex>.json  which, and that the file counts
        index.json        what need not be listed and read again of complete trials;  index-<hex>.parquet
        gathered-<hex>.parquet    copies of small metrics files;  gathered-<hex>.json  of which
provenance/<hash>.json  <hash>.patch    what many replicates share
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from expkit.errors import UsageError

_NAME = re.compile(r"[^\W_][\w.+@ -]*")
ID12 = re.compile(r"[0-9a-f]{12}")
"""Names of trials' folders."""
_LOG = re.compile(r"rank(\d+)\.log")
METRICS = re.compile(r"metrics-(?:r(?P<rank>\d+)-)?(?P<part>\d{6,})(?:-(?P<last>\d{6,}))?\.parquet")
"""Names of closed metrics files: a part, or a range of parts that were folded into one. Rank 0 is not spelled out.
Files being written never match."""
COMPACTED = re.compile(r"[0-9a-f]{32}\.json")
"""Names of the manifests of compacted files."""
INDEX_TABLE = re.compile(r"index-[0-9a-f]{32}\.parquet")
"""Names of the tables of the index."""
GATHERED = re.compile(r"gathered-[0-9a-f]{32}\.json")
"""Names of what says of which files a copy was made."""


class Parts(NamedTuple):
    """What a metrics file holds: parts `first` to `last` of a rank; one of them unless it was folded."""

    rank: int
    first: int
    last: int

    @classmethod
    def of(cls, path: str) -> Parts | None:
        """From a file's name, with or without its folder; None for any other file."""
        return _parts(path.rpartition("/")[2])


@lru_cache(maxsize=4096)  # attempts call their files alike
def _parts(name: str) -> Parts | None:
    match = METRICS.fullmatch(name)
    return None if match is None else Parts(int(match["rank"] or 0), int(match[2]), int(match["last"] or match[2]))


@dataclass(frozen=True)
class Layout:
    """Paths below one runs folder. Makes no folder and opens no file."""

    PLAN: ClassVar[str] = "plan.parquet"
    root: Path

    @property
    def sweeps(self) -> Path:
        """Folder of all sweeps."""
        return self.root / "sweeps"

    @cached_property  # asked for 10,000 times when a store is opened
    def trials(self) -> Path:
        """Folder of all trials; a trial may belong to many sweeps."""
        return self.root / "trials"

    def sweep(self, name: str) -> Path:
        """Folder of one sweep; UsageError for a name that could lead out of it."""
        if not self.may_be_sweep(name):
            raise UsageError(f"a sweep's name is letters, digits, '-', '_', '.' and spaces, but got {name!r}")
        return self.sweeps / name

    @staticmethod
    def may_be_sweep(name: str) -> bool:
        """Whether a sweep can be called that."""
        return _NAME.fullmatch(name) is not None

    def sweep_yaml(self, name: str) -> Path:
        """The sweep file as given."""
        return self.sweep(name) / "sweep.yaml"

    def sweep_record(self, name: str) -> Path:
        """When the sweep was first written, from which file."""
        return self.sweep(name) / "sweep.json"

    def plan(self, name: str) -> Path:
        """Which replicates the sweep uses, one row each."""
        return self.sweep(name) / self.PLAN

    def settings(self, name: str) -> Path:
        """What the sweep's report needs to know of its file."""
        return self.sweep(name) / "settings.json"

    def target(self, name: str) -> Path:
        """Copy of the sweep's target."""
        return self.sweep(name) / "target.json"

    def confirmation(self, name: str) -> Path:
        """Which arms of the sweep are confirmed, how they were chosen, and when test data was opened."""
        return self.sweep(name) / "confirm.json"

    def reference(self, name: str) -> Path:
        """What steps of the sweep's arms take on the machine that it is told in the time of."""
        return self.sweep(name) / "reference.json"

    def study(self, name: str) -> Path:
        """Optuna's journal of a search."""
        return self.sweep(name) / "study.journal"

    def report(self, name: str) -> Path:
        """Folder of the sweep's report."""
        return self.sweep(name) / "report"

    def trial(self, id12: str) -> Path:
        """Folder of one trial."""
        return self.trials / id12

    def trial_record(self, id12: str) -> Path:
        """Full id, arm, methods, resolved configuration."""
        return self.trial(id12) / "trial.json"

    def recipe(self, id12: str) -> Path:
        """The resolved recipe: the only door between planning and running."""
        return self.trial(id12) / "recipe.yaml"

    def notes(self, id12: str) -> Path:
        """Tags and note of a trial."""
        return self.trial(id12) / "notes.json"

    def replicate(self, id12: str, replicate: int) -> Path:
        """Folder of one replicate, r0, r1, ..."""
        return self.trial(id12) / f"r{replicate}"

    def status(self, id12: str, replicate: int) -> Path:
        """State of a replicate, replaced as a whole."""
        return self.replicate(id12, replicate) / "status.json"

    def provenance(self, id12: str, replicate: int) -> Path:
        """What was run where; names a shared document by its hash."""
        return self.replicate(id12, replicate) / "provenance.json"

    def shared_provenance(self, digest: str) -> Path:
        """The part of the provenance that many replicates have in common, stored once."""
        return self.root / "provenance" / f"{digest}.json"

    def shared_patch(self, digest: str) -> Path:
        """What was not committed of the code that many replicates ran, for `git apply`."""
        return self.root / "provenance" / f"{digest}.patch"

    def heartbeat(self, id12: str, replicate: int) -> Path:
        """File whose time of change says that the worker was alive then."""
        return self.replicate(id12, replicate) / "heartbeat"

    def claim(self, id12: str, replicate: int, number: int) -> Path:
        """The n-th claim on a replicate; the highest number counts."""
        return self.replicate(id12, replicate) / f"claim-{number:06d}.json"

    def attempts(self, id12: str, replicate: int) -> Path:
        """Folder of a replicate's attempts."""
        return self.replicate(id12, replicate) / "attempts"

    def attempt(self, id12: str, replicate: int, attempt: int) -> Path:
        """Folder of one attempt, counted from 1."""
        return self.attempts(id12, replicate) / str(attempt)

    @staticmethod
    def attempt_record(attempt_dir: Path) -> Path:
        """How the attempt was started, and which one it continues."""
        return attempt_dir / "attempt.json"

    @staticmethod
    def own_recipe(attempt_dir: Path) -> Path:
        """The resolved recipe of this attempt, where it is not the trial's in all that no id depends on."""
        return attempt_dir / "recipe.yaml"

    @staticmethod
    def events(attempt_dir: Path) -> Path:
        """What happened, a JSON document a line."""
        return attempt_dir / "events.jsonl"

    @staticmethod
    def log(attempt_dir: Path, rank: int) -> Path:
        """What a rank printed."""
        return attempt_dir / f"rank{rank}.log"

    @staticmethod
    def ranks(attempt_dir: Path) -> list[int]:
        """Which ranks have a log."""
        return sorted(int(match[1]) for p in attempt_dir.glob("rank*.log") if (match := _LOG.fullmatch(p.name)))

    @staticmethod
    def rank_failure(attempt_dir: Path, rank: int) -> Path:
        """Why a rank of a trial of several ended without a result, written by itself."""
        return attempt_dir / f"rank{rank}.failure.json"

    @property
    def compacted(self) -> Path:
        """Folder of the files that hold the metrics of many attempts."""
        return self.root / "metrics"

    @property
    def index(self) -> Path:
        """What need not be listed and read again of complete trials."""
        return self.compacted / "index.json"

    def manifest(self, name: str) -> Path:
        """Which attempts a compacted file holds; without it the file does not count."""
        return self.compacted / f"{name}.json"

    def compacted_metrics(self, name: str) -> Path:
        """The compacted file itself."""
        return self.compacted / f"{name}.parquet"

    @staticmethod
    def metrics(attempt_dir: Path, rank: int, part: int, last: int | None = None) -> Path:
        """The n-th closed metrics file of a rank, or the one that parts n to `last` became; matches METRICS."""
        name = "metrics-" if rank == 0 else f"metrics-r{rank}-"
        return attempt_dir / (name + (f"{part:06d}" if last is None else f"{part:06d}-{last:06d}") + ".parquet")

    @staticmethod
    def replicate_of(metrics: Path) -> tuple[str, int] | None:
        """(id, replicate) behind a metrics file of rank 0; None for any other file."""
        match = METRICS.fullmatch(metrics.name)
        if match is None or match["rank"] is not None or len(metrics.parts) < 5:
            return None
        id12, replicate = metrics.parts[-5:-3]
        return id12, int(replicate[1:])

    @staticmethod
    def artifacts(attempt_dir: Path) -> Path:
        """Folder of an attempt's images, histograms, texts and tables."""
        return attempt_dir / "artifacts"

    @staticmethod
    def checkpoints(attempt_dir: Path) -> Path:
        """Folder of an attempt's checkpoints."""
        return attempt_dir / "checkpoints"
