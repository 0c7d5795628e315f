"""Trial: one trial of an experiment, or one replicate of it: what it is, how it went, its series."""

from __future__ import annotations

from typing import Any

from expkit.errors import UsageError
from expkit.experiment.answer import Answer
from expkit.store.find import Found
from expkit.store.query import Connection
from expkit.store.records import TrialRecord


class Trial:
    """`ex["3f2a"]`: its rows of the views; `.df()`, `.pl()`, `.arrow()` give that of `trials`."""

    def __init__(self, connection: Connection, found: Found) -> None:
        self._connection = connection
        self._store = connection.store
        self.id = found.id12
        self.replicate = found.replicate
        """The one that was named, None where all are meant."""

    @property
    def label(self) -> str:
        """Its arm."""
        return self._record().label

    @property
    def seed(self) -> int:
        """Its seed."""
        return self._record().seed

    @property
    def config(self) -> dict[str, Any]:
        """Its resolved recipe, every default filled in."""
        return self._record().config

    @property
    def provenance(self) -> dict[str, Any]:
        """What the replicate (r0 where none was named) was run with: code, packages, hardware, environment, command."""
        return self._store.read_provenance(self.id, self.replicate or 0)

    @property
    def trials(self) -> Answer:
        """Its rows of the view `trials`, a replicate each."""
        return self._of("trials", order="replicate")

    def metrics(self, *names: str) -> Answer:
        """Its rows of these metrics, of all where none is named."""
        named = {f"name{i}": name for i, name in enumerate(names)}
        condition = f"name IN ({', '.join(f'${key}' for key in named)})" if named else "true"
        return self._of("metrics", condition, order="name, replicate, rank, batch", **named)

    def curve(self, name: str) -> Answer:
        """All points of a metric in order."""
        return self._of("curve($name)", order="replicate, batch", name=name)

    def events(self) -> Answer:
        """What happened while it ran."""
        return self._of("events", order="replicate, attempt, utc")

    def df(self) -> Any:
        """`trials` as a pandas DataFrame."""
        return self.trials.df()

    def pl(self) -> Any:
        """`trials` as a polars DataFrame."""
        return self.trials.pl()

    def arrow(self) -> Any:
        """`trials` as a pyarrow table."""
        return self.trials.arrow()

    def __repr__(self) -> str:
        return repr(self.trials)

    def _repr_html_(self) -> str:
        return self.trials._repr_html_()

    def _record(self) -> TrialRecord:
        record = self._store.read_trial(self.id)
        if record is None:
            raise UsageError(f"trial {self.id} has not been started, or its record cannot be read")
        return record

    def _of(self, view: str, condition: str = "true", *, order: str, **named: Any) -> Answer:
        which = {} if self.replicate is None else {"replicate": self.replicate}
        one = "replicate = $replicate" if which else "true"
        sql = f"SELECT * FROM {view} WHERE id = $id AND {one} AND {condition} ORDER BY {order}"  # noqa: S608  # ours
        return Answer(self._connection.table(sql, {"id": self.id, **which, **named}))
