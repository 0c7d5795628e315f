"""The views and macros that users query: a stable interface. Each with its columns, one line of meaning, one example.

The SQL stands on tables that `query` registers (`_trials`, `_params`, ...) and on the metrics files, read natively.
"""

# ruff: noqa: S608  # no value of a user's enters these texts

from __future__ import annotations

from dataclasses import dataclass

from expkit.store.macros import ALIGNED, SPEEDUPS, TIME_TO_TARGET, TIMINGS
from expkit.store.metrics import SCHEMA
from expkit.store.records import CLOCKS


@dataclass(frozen=True)
class View:
    """One view or table macro as `expkit query --schema` shows it."""

    name: str
    columns: tuple[str, ...]
    doc: str
    example: str
    sql: str
    """Body of the view or macro."""
    parameters: str = ""
    """Of a macro, in SQL; empty for a view."""
    sample: str = ""
    """Arguments that a macro may be tried with."""

    @property
    def signature(self) -> str:
        """How it is called."""
        return f"{self.name}({self.parameters})" if self.parameters else self.name

    @property
    def call(self) -> str:
        """What stands behind FROM."""
        return f"{self.name}({self.sample})" if self.parameters else self.name

    @property
    def statement(self) -> str:
        """The SQL that makes it."""
        if self.parameters:
            return f"CREATE MACRO {self.signature} AS TABLE {self.sql}"
        return f"CREATE VIEW {self.name} AS {self.sql}"


METRICS = tuple(SCHEMA.names)
_TRIALS = (
    "id", "replicate", "label", "algorithms", "size", "seed", "setting", "status", "cause", "attempts", "created_utc",
    "started_utc", "ended_utc", "host", "device", "nproc", "threads", "code_sha", "dirty", "timing_valid",
    "timing_reasons", *CLOCKS, "config",
)  # fmt: skip
_SWEEPS = (
    "sweep", "created_utc", "file", "sha256", "target_metric", "target_value", "target_rule", "target_hash",
    "target_utc",
)  # fmt: skip
VIEWS = (
    View(
        "trials",
        _TRIALS,
        "One row a replicate: what it is, how it ended, where it ran, where its seconds went.",
        "SELECT label, seed, train_s FROM trials WHERE status = 'complete' ORDER BY train_s LIMIT 10",
        f"SELECT {', '.join(_TRIALS[:-1])}, config::JSON AS config FROM _trials",
    ),
    View(
        "sweep_trials",
        ("sweep", "id", "replicate", "arm", "role", "block", "position", "target_hash"),
        "Which replicates a sweep uses; role is baseline, arm, repeat, pilot, tune or confirm.",
        "SELECT arm, count(*) AS planned, count(status) AS begun "
        "FROM sweep_trials LEFT JOIN trials USING (id, replicate) GROUP BY arm",
        "SELECT * FROM _sweep_trials",
    ),
    View(
        "params",
        ("id", "key", "value_text", "value_num"),
        "The resolved recipe of each trial, a row a key; lists are JSON.",
        "SELECT value_num, count(*) FROM params WHERE key LIKE 'optimizer%.lr' GROUP BY value_num",
        "SELECT * FROM _params",
    ),
    View(
        "metrics_all",
        (*METRICS, "superseded"),
        "Every metrics row ever stored; superseded where a later attempt took its place.",
        "SELECT attempt, count(*) FROM metrics_all WHERE superseded GROUP BY attempt",
        "SELECT * FROM _stitched",
    ),
    View(
        "metrics",
        METRICS,
        "What counts: each batch of a replicate once. batch counts finished batches; NaN and inf are kept, "
        "and DuckDB sorts NaN above all numbers: rank with isfinite(value), or from `final`.",
        "SELECT batch, value FROM metrics WHERE name = 'eval/accuracy' ORDER BY id, replicate, batch LIMIT 10",
        f"SELECT {', '.join(METRICS)} FROM metrics_all WHERE NOT superseded",
    ),
    View(
        "final",
        ("id", "replicate", "name", "first", "last", "min", "min_batch", "max", "max_batch", "n", "n_not_finite"),
        "One row a replicate and metric of rank 0; min and max among finite values, with their batch. first and last "
        "are NULL where they were NaN or inf, so that these win no ranking; n_not_finite counts them.",
        "SELECT label, avg(last) FROM final JOIN trials USING (id, replicate) "
        "WHERE name = 'eval/accuracy' GROUP BY label",
        """SELECT id, replicate, name,
  arg_min_null(CASE WHEN isfinite(value) THEN value END, batch) AS first,
  arg_max_null(CASE WHEN isfinite(value) THEN value END, batch) AS last,
  min(value) FILTER (isfinite(value)) AS min, arg_min(batch, value) FILTER (isfinite(value)) AS min_batch,
  max(value) FILTER (isfinite(value)) AS max, arg_max(batch, value) FILTER (isfinite(value)) AS max_batch,
  count(*) AS n, count(*) FILTER (NOT isfinite(value)) AS n_not_finite
  FROM metrics WHERE rank = 0 GROUP BY id, replicate, name""",
    ),
    View(
        "algorithms",
        ("id", "replicate", "name", "params", "effective"),
        "One row a replicate and method that was on; effective is false where it found nothing to do.",
        "SELECT name, count(*) FROM algorithms WHERE effective IS false GROUP BY name",
        """SELECT id, replicate, m->>'label' AS name, m->'params' AS params,
  (effective::JSON->('$."' || replace(m->>'label', '"', '\\"') || '"'))::BOOLEAN AS effective
  FROM (SELECT id, replicate, effective, unnest(from_json(methods, '["json"]')) AS m FROM _trials)""",
    ),
    View(
        "events",
        ("id", "replicate", "attempt", "rank", "batch", "utc", "kind", "payload"),
        "What happened while a trial ran.",
        "SELECT utc, kind, payload FROM events ORDER BY utc DESC LIMIT 10",
        "SELECT id, replicate, attempt, rank, batch, utc, kind, payload::JSON AS payload FROM _events",
    ),
    View(
        "artifacts",
        ("id", "replicate", "attempt", "rank", "batch", "utc", "name", "kind", "path", "facts"),
        "Images, histograms, texts, tables and files of a trial, a file each; path is seen from the runs folder.",
        "SELECT batch, path FROM artifacts WHERE kind = 'image' ORDER BY id, batch",
        """SELECT id, replicate, attempt, rank, batch, utc, payload->>'name' AS name, payload->>'kind' AS kind,
  concat('trials/', id, '/r', replicate, '/attempts/', attempt, '/', payload->>'path') AS path, payload AS facts
  FROM events WHERE events.kind = 'artifact'""",
    ),
    View(
        "notes",
        ("id", "tags", "note", "changed_utc"),
        "What people said of trials with expkit tag and expkit note; one row a trial that has any.",
        "SELECT label, seed, note FROM trials JOIN notes USING (id) WHERE list_contains(tags, 'keep')",
        "SELECT * FROM _notes",
    ),
    View(
        "sweeps",
        _SWEEPS,
        "One row a sweep, with its target.",
        "SELECT sweep, target_metric, target_value FROM sweeps",
        f"SELECT {', '.join(_SWEEPS)} FROM _sweeps",
    ),
    View(
        "time_to_target",
        ("id", "replicate", "hit", "t", "bracket_lo", "bracket_hi", "known_at", "left_censored", "horizon", "n"),
        "When each replicate reached the target, by rank 0. mode: max, min. rule: sustained (the first of two "
        "evaluations in succession), first, to_end (the first after which none misses), median3 (of the last three). "
        "clock: train_s, cpu_s, wall_s, batch, epoch, sample, token. NaN is dropped, inf misses, equality hits.",
        "SELECT label, t FROM time_to_target('eval/accuracy', 0.8) JOIN trials USING (id, replicate) ORDER BY t",
        TIME_TO_TARGET,
        "metric, target, mode := 'max', rule := 'sustained', clock := 'train_s'",
        "'eval/accuracy', 0.8",
    ),
    View(
        "timings",
        ("arm", "role", "block", "id", "replicate", "seed", "status", "setting", "driver", "readable", "t", "spoilt"),
        "Which times of a sweep may be compared, a row a replicate: whole runs on one clock (train_s, cpu_s, wall_s), "
        "within one setting and driver. What spoils a time is said and the time still shown.",
        "SELECT arm, count(*) AS compared, exp(avg(ln(t))) AS seconds FROM timings('ablate') "
        "WHERE status = 'complete' AND spoilt IS NULL GROUP BY arm",
        TIMINGS,
        "sweep, clock := 'train_s'",
        "'ablate'",
    ),
    View(
        "speedups",
        ("arm", "block", "seed", "id", "replicate", "status", "baselines", "t_baseline", "t", "speedup", "why"),
        "Baseline time over arm time to the target, a row an arm and block. Only times of one setting and (where runs "
        "were exclusive) one driver run are compared; what may not be, or missed, has its reason and is never dropped.",
        "SELECT arm, exp(avg(ln(speedup))) AS speedup, count(speedup) AS pairs, count(*) AS planned "
        "FROM speedups('ablate', 'eval/accuracy', 0.8) GROUP BY arm",
        SPEEDUPS,
        "sweep, metric, target, mode := 'max', rule := 'sustained', clock := 'train_s'",
        "'ablate', 'eval/accuracy', 0.8",
    ),
    View(
        "curve",
        ("id", "replicate", "label", "seed", "batch", "epoch", "sample", "train_s", "cpu_s", "wall_s", "value"),
        "All points of one metric in order, with the arm's label and seed.",
        "SELECT label, batch, avg(value) FROM curve('eval/accuracy') GROUP BY label, batch ORDER BY label, batch",
        """SELECT m.id, m.replicate, r.label, r.seed, m.batch, m.epoch, m.sample, m.train_s, m.cpu_s, m.wall_s, m.value
  FROM metrics m LEFT JOIN _trials r ON r.id = m.id AND r.replicate = m.replicate
  WHERE m.name = metric AND m.rank = 0 ORDER BY m.id, m.replicate, m.batch""",
        "metric",
        "'eval/accuracy'",
    ),
    View(
        "aligned",
        ("x", "id", "replicate", "label", "seed", "value"),
        "The last known value of one metric at 100 even places of an axis (train_s, cpu_s, wall_s, batch, epoch, "
        "sample, token); NULL after a trial's own end.",
        "SELECT x, label, avg(value) FROM aligned('eval/accuracy', 'train_s') GROUP BY x, label ORDER BY x, label",
        ALIGNED,
        "metric, axis",
        "'eval/accuracy', 'train_s'",
    ),
)  # fmt: skip

WHOLE = f"SELECT {', '.join(METRICS)}, false AS superseded FROM _metrics"
"""Every replicate has one attempt: all rows count, and nothing needs to be looked up."""
STITCHED = f"""WITH seam AS (
  SELECT m.id, m.replicate, m.rank, m.batch, m.name, min(m.attempt) AS attempt
  FROM _metrics m JOIN _spans s ON m.id = s.id AND m.replicate = s.replicate AND m.attempt = s.attempt
    AND m.batch = s.upto
  GROUP BY ALL)
SELECT {", ".join(f"m.{c}" for c in METRICS)},
  coalesce(m.batch < s.after OR m.batch > s.upto OR seam.attempt < m.attempt, false) AS superseded
  FROM _metrics m LEFT JOIN _spans s ON m.id = s.id AND m.replicate = s.replicate AND m.attempt = s.attempt
  LEFT JOIN seam ON m.batch = s.after AND m.id = seam.id AND m.replicate = seam.replicate AND m.rank = seam.rank
    AND m.batch = seam.batch AND m.name = seam.name"""
"""Some have several: `_spans` says which batches of which attempt count. At the batch where one goes on from another
both may have logged: what was logged at work on the next batch, or at the end of an epoch. It counts once."""
