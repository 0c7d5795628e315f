"""Replicates as a list: those of a folder or of a sweep, chosen, sorted, with the columns that somebody asks for.

A column is one of the views', a key of the recipe (`optimizer.sgd.lr`, or the end of it that is unique: `lr`), or the
name of a metric, of which the last value is meant.
"""

from __future__ import annotations

_ALL = "SELECT * FROM trials ORDER BY started_utc NULLS LAST, id, replicate"
_OF_SWEEP = """SELECT s.id, s.replicate, s.arm, s.role, s.block, s.position,
  t.* EXCLUDE (id, replicate) REPLACE (coalesce(t.status, 'pending') AS status)
  FROM sweep_trials s LEFT JOIN trials t ON t.id = s.id AND t.replicate = s.replicate
  WHERE s.sweep = $sweep ORDER BY s.position"""


def replicates_of(sweep: str | None) -> tuple[str, dict[str, str]]:
    """SELECT and parameters: the rows of `trials`; for a sweep those it uses, with their place in it, in run order."""
    return (_ALL, {}) if sweep is None else (_OF_SWEEP, {"sweep": sweep})
