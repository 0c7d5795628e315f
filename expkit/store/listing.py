"""Replicates as a list: those of a folder or of a sweep, chosen, sorted, with the columns that somebody asks for.

A column is one of the views' (`train_s`, `tags`), a key of the recipe (`optimizer.sgd.lr`, or an end of it that only
one key has: `lr`), or the name of a metric (`eval/accuracy`, in SQL in double quotes), of which the last value is
meant; where several could be meant, the first in this order is.
"""

# ruff: noqa: S608  # names of columns are quoted, values are parameters

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from expkit.errors import QueryError, unknown
from expkit.store.names import chains

if TYPE_CHECKING:
    import pyarrow as pa

    from expkit.store.query import Connection

_ALL = "SELECT * FROM trials ORDER BY started_utc NULLS LAST, id, replicate"
_OF_SWEEP = """SELECT s.id, s.replicate, s.arm, s.role, s.block, s.position,
  t.* EXCLUDE (id, replicate) REPLACE (coalesce(t.status, 'pending') AS status)
  FROM sweep_trials s LEFT JOIN trials t ON t.id = s.id AND t.replicate = s.replicate
  WHERE s.sweep = $sweep ORDER BY s.position"""
USUAL = ("id", "replicate", "label", "seed", "status", "train_s", "tags")
MAY_DIFFER = ("label", "seed", "status", "host", "device", "nproc", "threads", "code_sha", "dirty", "timing_valid")
"""Columns of the views that `changed` shows where they are not the same in all rows."""
_EVERY_TRIAL_HAS_ITS_OWN = ("name", "seed")


def replicates_of(sweep: str | None) -> tuple[str, dict[str, str]]:
    """SELECT and parameters: the rows of `trials`; for a sweep those it uses, with their place in it, in run order."""
    return (_ALL, {}) if sweep is None else (_OF_SWEEP, {"sweep": sweep})


@dataclass(frozen=True)
class Asked:
    """What somebody wants to see."""

    sweep: str | None = None
    where: str | None = None
    """A condition in SQL."""
    sort: Sequence[str] = ()
    """Columns, `-` before one that is to descend; the usual order where none is named."""
    columns: Sequence[str] = ()
    """USUAL and the sweep's primary metric where none is named."""
    changed: bool = False
    """Show what differs between the rows, instead of the usual columns or beside those that are named."""
    limit: int | None = None


def listing(con: Connection, asked: Asked) -> pa.Table:
    """One row a replicate; QueryError for a condition or a column that cannot be."""
    names = Names(con, asked.sweep)
    listed = _Listed(asked, names)
    wanted = list(asked.columns) or ["id", "replicate"]
    if asked.changed:
        wanted += [name for name in listed.changed() if name not in wanted]
    elif not asked.columns:
        wanted = [name for name in USUAL if name != "tags"]
    if not asked.columns:
        wanted += [*names.primary(), *([] if asked.changed else ["tags"])]
    return listed.rows(wanted)


class Names:
    """What a word may mean in the store of a connection."""

    def __init__(self, con: Connection, sweep: str | None) -> None:
        self.con, self.sweep = con, sweep
        sql, params = replicates_of(sweep)
        self.base = (
            f"SELECT base.*, coalesce(n.tags, []) AS tags, n.note FROM ({sql}) base LEFT JOIN notes n USING (id)"
        )
        self.params = params
        self.columns = frozenset(con.table(f"{self.base} LIMIT 0", params).column_names)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Keys of all recipes."""
        return frozenset(self.con.table("SELECT DISTINCT key FROM params")["key"].to_pylist())

    @cached_property
    def metrics(self) -> frozenset[str]:
        """Names of all metrics; a look at every row, so only where nothing else has the name."""
        return frozenset(self.con.table("SELECT DISTINCT name FROM metrics")["name"].to_pylist())

    def key(self, word: str) -> str | None:
        """The key of the recipe that is meant, whole or by its unique end."""
        if word in self.keys:
            return word
        ends = [key for key in self.keys if key.endswith(f".{word}")]
        return ends[0] if len(ends) == 1 else None

    def primary(self) -> list[str]:
        """The metric that the sweep is judged by, where it was recorded."""
        metric = None if self.sweep is None else self.con.store.sweep_settings(self.sweep).get("metric")
        return [metric] if isinstance(metric, str) and metric in self.metrics else []

    def none(self, word: str) -> QueryError:
        """The sentence for a word that means nothing."""
        several = sorted(key for key in self.keys if key.endswith(f".{word}"))
        if several:
            return QueryError(f"{word!r} is the end of several keys: {', '.join(several)}; write more of it")
        known = {*self.columns, *self.keys, *self.metrics}
        return QueryError(unknown("column", word, known, "expkit query --schema, expkit show ID --resolved"))


@dataclass
class _Listed:
    """The wide table of what was asked for; grows by a join for every column that the views do not have."""

    asked: Asked
    names: Names
    joins: dict[str, str] = field(default_factory=dict)
    """By word; its column is called `@0`, `@1`, ... inside, for DuckDB takes `Loss` and `loss` for one name."""
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.params |= self.names.params
        self.condition, self.strangers = self._condition(self.asked.where) if self.asked.where else ("true", [])
        usual = "started_utc NULLS LAST, id, replicate" if self.asked.sweep is None else "position"
        self.order = ", ".join([*map(self._ordered, self.asked.sort), usual])

    def rows(self, columns: Sequence[str]) -> pa.Table:
        """The replicates that fit, in order."""
        shown = ", ".join(f"{self._column(word)} AS {_quoted(word)}" for word in columns)
        limit = "" if self.asked.limit is None else f" LIMIT {int(self.asked.limit)}"
        return self._table(
            f"SELECT {shown} FROM ({self._wide()}) WHERE ({self.condition}\n) ORDER BY {self.order}{limit}"
        )

    def changed(self) -> list[str]:
        """Columns and keys that do not have the same value in all rows."""
        differ = ", ".join(f"count(DISTINCT {name}) + (count({name}) < count(*))::INT > 1" for name in MAY_DIFFER)
        chosen = f"FROM ({self._wide()}) WHERE ({self.condition}\n)"
        counted = self._table(f"SELECT {differ} {chosen}").to_pydict().values()
        columns = [name for name, (differs,) in zip(MAY_DIFFER, counted, strict=True) if differs]
        keys = self._table(f"""WITH listed AS (SELECT DISTINCT id {chosen})
          SELECT key FROM params SEMI JOIN listed USING (id) WHERE NOT list_contains($own, key) GROUP BY key
          HAVING count(DISTINCT coalesce(value_text, '')) > 1 OR count(*) < (SELECT count(*) FROM listed)
          ORDER BY key""", own=list(_EVERY_TRIAL_HAS_ITS_OWN))  # fmt: skip
        return [*columns, *keys["key"].to_pylist()]

    def _wide(self) -> str:
        columns = "".join(f', j{i}.v AS "@{i}"' for i in range(len(self.joins)))
        joins = " ".join(join.replace("@", f"j{i}") for i, join in enumerate(self.joins.values()))
        return f"SELECT base.*{columns} FROM ({self.names.base}) base {joins}"

    def _column(self, word: str) -> str:
        """The column that a word means, quoted; joins it where the views do not have it."""
        if word in self.names.columns:
            return _quoted(word)
        if word not in self.joins and not self._joined(word):
            raise self.names.none(word)
        return self._joined_column(word)

    def _joined_column(self, word: str) -> str:
        return f'"@{list(self.joins).index(word)}"'

    def _joined(self, word: str) -> bool:
        value = f"word{len(self.joins)}"
        key = self.names.key(word)
        if key is not None:
            sql = "SELECT bool_and(value_num IS NOT NULL OR value_text IS NULL) AS n FROM params WHERE key = ?"
            numbers = self.names.con.table(sql, [key])["n"][0].as_py()
            column = "value_num" if numbers else "value_text"
            self.joins[word] = f"LEFT JOIN (SELECT id, {column} AS v FROM params WHERE key = ${value}) @ USING (id)"
        elif word in self.names.metrics:
            final = f"SELECT id, replicate, last AS v FROM final WHERE name = ${value}"
            self.joins[word] = f"LEFT JOIN ({final}) @ USING (id, replicate)"
        else:
            return False
        self.params[value] = key or word
        return True

    def _ordered(self, written: str) -> str:
        down = written.startswith("-")
        return f"{self._column(written.removeprefix('-'))} {'DESC' if down else 'ASC'} NULLS LAST"

    def _condition(self, where: str) -> tuple[str, list[str]]:
        """The condition with every name of a key or metric as a quoted column, and the words that mean neither."""
        data, done, at, strangers = where.encode(), "", 0, []
        for chain in chains(where):
            if chain.name in self.names.columns or chain.is_keyword:
                continue
            if chain.name in self.joins or self._joined(chain.name):
                done += data[at : chain.start].decode() + self._joined_column(chain.name)
                at = chain.end
            else:
                strangers.append(chain.name)
        return done + data[at:].decode(), strangers

    def _table(self, sql: str, **more: Any) -> pa.Table:
        try:
            return self.names.con.table(sql, {**self.params, **more})
        except QueryError as e:
            named = next((word for word in self.strangers if f'"{word.split(".")[0]}"' in str(e)), None)
            if named is not None:
                raise self.names.none(named) from None
            raise (QueryError(f"--where {self.asked.where}: {e}") if self.asked.where else e) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
