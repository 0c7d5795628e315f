"""Experiment: a runs folder, or one sweep of it, from Python and notebooks. Reads only; torch is never loaded.

ex = expkit.load("runs", "ablate")
ex.trials.df()
ex.curve("eval/accuracy").pl()
ex["3f2a"].config
ex.sql("SELECT arm, avg(speedup) FROM speedups('ablate', 'eval/accuracy', 0.8) GROUP BY arm").df()
"""

# ruff: noqa: S608  # no value of a user's enters these texts

from __future__ import annotations

import os
from pathlib import Path

from expkit.errors import UsageError, unknown
from expkit.experiment.answer import Answer
from expkit.experiment.trial import Trial
from expkit.store.find import find, find_sweep
from expkit.store.listing import replicates_of
from expkit.store.place import ZIP, opened
from expkit.store.query import Params, connect
from expkit.store.store import Store
from expkit.uri import without_userinfo

OF_SWEEP = "(id, replicate) IN (SELECT (id, replicate) FROM sweep_trials WHERE sweep = $sweep)"


def load(where: str | os.PathLike[str] | None = None, sweep: str | None = None) -> Experiment:
    """The experiment in a runs folder (default: EXPKIT_RUNS, or `runs`), all of it or one sweep.

    `where` may also be a URL that fsspec knows, `s3://bucket/runs`, or a bundle, `ablate.zip`, which is of one sweep.
    The store is shown as it is now; load it again to see what came since, also while trials are running.
    UsageError where there is no such folder or sweep.
    """
    asked = where or os.environ.get("EXPKIT_RUNS") or "runs"
    root = opened(asked)
    if not root.is_dir():
        raise UsageError(f"there is no runs folder {without_userinfo(os.fspath(asked))}; expkit sweep FILE makes one")
    if sweep is None and os.fspath(asked).endswith(ZIP):
        sweep = next(iter(Store(root).sweeps()), None)
    return Experiment(root, sweep)


class Experiment:
    """What `load` gives. Close it to let go of its files, or use it in a `with`."""

    def __init__(self, root: Path, sweep: str | None = None) -> None:
        self._connection = connect(root)
        self._store = self._connection.store
        self.root = root
        self.sweep = find_sweep(self._store, sweep) if sweep is not None else None
        """What `trials`, `metrics` and `curve` are confined to; None for the whole folder."""

    def sql(self, query: str, params: Params = ()) -> Answer:
        """The answer to one SELECT on the views of `expkit query --schema`, over the whole folder."""
        return Answer(self._connection.table(query, params))

    @property
    def trials(self) -> Answer:
        """A row a replicate; of a sweep also arm, role, block, position, and what was not started yet, as pending."""
        return self.sql(*replicates_of(self.sweep))

    def metrics(self, *names: str) -> Answer:
        """All rows of these metrics, of all where none is named; UsageError for a name that nobody has recorded."""
        named = {f"name{i}": name for i, name in enumerate(names)}
        conditions = [f"name IN ({', '.join(f'${key}' for key in named)})"] if named else []
        sql = " AND ".join([f"SELECT * FROM metrics WHERE {self._whose()}", *conditions])
        answer = self.sql(f"{sql} ORDER BY name, id, replicate, rank, batch", {**self._sweep(), **named})
        if not len(answer):
            self._check(names)
        return answer

    def curve(self, name: str | None = None) -> Answer:
        """All points of a metric in order, with label and seed; of the primary metric where none is named."""
        asked = self._primary() if name is None else name
        sql = f"SELECT * FROM curve($name) WHERE {self._whose()} ORDER BY id, replicate, batch"
        answer = self.sql(sql, {**self._sweep(), "name": asked})
        if not len(answer):
            self._check([asked])
        return answer

    def __getitem__(self, written: str) -> Trial:
        """A trial by the first digits of its id, `3f2a/r1`, `last` or `last~1`; UsageError where there is none.

        Of a sweep the last ones are its own; any trial of the folder is found by its id.
        """
        return Trial(self._connection, find(self._store, written, sweep=self.sweep))

    @property
    def set_aside(self) -> list[str]:
        """Files that could not be read so far, each with the reason; answers are without them."""
        return [str(unreadable) for unreadable in self._connection.set_aside]

    def close(self) -> None:
        """Let go of all files."""
        self._connection.close()

    def __enter__(self) -> Experiment:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = self._counts()
        states = ", ".join(f"{row['replicates']} {row['status']}" for row in counts) or "no replicates yet"
        return f"<expkit experiment in {self.root}{f', sweep {self.sweep}' if self.sweep else ''}: {states}>"

    def _repr_html_(self) -> str:
        return self._counts()._repr_html_()

    def _counts(self) -> Answer:
        sql, params = replicates_of(self.sweep)
        return self.sql(f"SELECT status, count(*) AS replicates FROM ({sql}) GROUP BY ALL ORDER BY ALL", params)

    def _sweep(self) -> dict[str, str]:
        return {} if self.sweep is None else {"sweep": self.sweep}

    def _whose(self) -> str:
        return "true" if self.sweep is None else OF_SWEEP

    def _primary(self) -> str:
        sweeps = self._store.sweeps() if self.sweep is None else [self.sweep]
        found = sorted({str(self._store.sweep_settings(name).get("metric") or "") for name in sweeps} - {""})
        if len(found) != 1:
            raise UsageError(f"which metric? there is {' and '.join(found) or 'no sweep that names one'}; "
                             "write it as in curve('eval/accuracy')")  # fmt: skip
        return found[0]

    def _check(self, names: tuple[str, ...] | list[str]) -> None:
        """UsageError for a metric that nobody has recorded, unless nothing is recorded yet."""
        known = [row["name"] for row in self.sql("SELECT DISTINCT name FROM metrics")]
        for name in names:
            if known and name not in known:
                raise UsageError(unknown("metric", name, known))
