"""The SQL of the larger table macros: times to target, timings, speedups, series. Formulas as in `expkit.analysis`.

In a macro a bare name that is one of its parameters means the parameter, so columns of that name are qualified.
"""

# ruff: noqa: S608  # no value of a user's enters these texts

from __future__ import annotations

from expkit.store.records import CONTENTION_RATIO

AXES = ("train_s", "cpu_s", "wall_s", "batch", "epoch", "sample", "token")
"""What a series may be plotted over; the first three are clocks."""
MODES = ("max", "min")
RULES = ("sustained", "first", "to_end", "median3")


def _shown(parameter: str) -> str:
    """A macro's argument in a sentence; a NULL would make the whole sentence NULL, and no error of it."""
    return f"coalesce({parameter}::VARCHAR, 'NULL')"


def _axis(parameter: str) -> str:
    """The column that a macro's parameter names, as DOUBLE; an error for any other word."""
    cases = " ".join(f"WHEN '{axis}' THEN {axis}::DOUBLE" for axis in AXES)
    return f"""CASE {parameter} {cases}
      ELSE error('unknown {parameter} ' || {_shown(parameter)} || '; there are: {", ".join(AXES)}') END"""


_HEIGHT = f"""CASE WHEN (mode IN ('max', 'min')) IS NOT true
        THEN error('mode must be max or min, but got ' || {_shown("mode")})
      WHEN isnan(value) THEN NULL WHEN isinf(value) THEN '-inf'::DOUBLE WHEN mode = 'min' THEN -value ELSE value END"""
_GOAL = f"""CASE WHEN isfinite(target::DOUBLE) THEN CASE mode WHEN 'min' THEN -(target::DOUBLE) ELSE target::DOUBLE END
      ELSE error('a target must be a finite number, but got ' || {_shown("target")}) END"""
_MEDIAN = """CASE j WHEN 1 THEN p.z WHEN 2 THEN (steps[1].z + steps[2].z) / 2 ELSE greatest(
        least(p.z, steps[j - 1].z), least(greatest(p.z, steps[j - 1].z), steps[j - 2].z)) END"""
_START = f"""CASE rule WHEN 'sustained' THEN position('11' IN there || '1')
      WHEN 'first' THEN position('1' IN there) WHEN 'median3' THEN position('1' IN there)
      WHEN 'to_end' THEN CASE WHEN there LIKE '%1' THEN length(rtrim(there, '1')) + 1 ELSE 0 END
      ELSE error('unknown rule ' || {_shown("rule")} || '; there are: {", ".join(RULES)}') END"""
_KNOWN = "CASE rule WHEN 'sustained' THEN least(j + 1, n) WHEN 'to_end' THEN n ELSE j END"

TIME_TO_TARGET = f"""
  WITH points AS (
    SELECT id, replicate, batch, {_axis("clock")} AS u, {_HEIGHT} AS z
    FROM metrics WHERE name = metric AND rank = 0
  ), series AS (
    SELECT id, replicate,
      coalesce(list({{'u': u, 'z': z}} ORDER BY u, batch) FILTER (WHERE z IS NOT NULL AND isfinite(u)), []) AS steps
    FROM points GROUP BY id, replicate
  ), smooth AS (
    SELECT id, replicate, CASE rule WHEN 'median3'
      THEN list_transform(steps, lambda p, j: {{'u': p.u, 'z': {_MEDIAN}}}) ELSE steps END AS steps
    FROM series
  ), goals AS (
    SELECT id, replicate, steps, len(steps) AS n, {_GOAL} AS goal FROM smooth
  ), judged AS (
    SELECT *, array_to_string(list_transform(steps, lambda p: CASE WHEN p.z >= goal THEN '1' ELSE '0' END), '') AS there
    FROM goals
  ), starts AS (
    SELECT id, replicate, steps, n, goal, {_START} AS j FROM judged
  ), found AS (
    SELECT id, replicate, n, goal, j, steps[n].u AS horizon, CASE WHEN j > 0 THEN steps[j] END AS here,
      CASE WHEN j > 1 THEN steps[j - 1] END AS prior, CASE WHEN j > 0 THEN steps[{_KNOWN}].u END AS known_at
    FROM starts
  )
  SELECT id, replicate, j > 0 AS hit,
    CASE WHEN j = 1 OR isinf(prior.z) THEN here.u
      ELSE least(prior.u + (goal - prior.z) / (here.z - prior.z) * (here.u - prior.u), here.u) END AS t,
    CASE WHEN j = 1 THEN 0.0 ELSE prior.u END AS bracket_lo, here.u AS bracket_hi, known_at,
    CASE WHEN j > 0 THEN j = 1 END AS left_censored, horizon, n
  FROM found"""
"""A series becomes one ordered list, and the list a text of ones and zeros in which a rule is a place: 10 M evaluations
take 2 s of CPU time, a fourth of what windows over them take."""

_SECONDS = "('train_s', 'cpu_s', 'wall_s')"
_CONTENDED = f"""list_contains(x.timing_reasons, 'contention') OR (
        coalesce(nullif(x.nproc, 0), 1) = 1 AND coalesce(nullif(x.threads, 0), 1) = 1 AND starts_with(x.device, 'cpu')
        AND isfinite(x.train_s) AND isfinite(x.cpu_s) AND x.cpu_s <> 0 AND x.train_s / x.cpu_s > {CONTENTION_RATIO})"""


def _geometric_mean(times: str) -> str:
    """Of a list of positive times; the logs are summed in order, as in `analysis.pairs`, for the last digit's sake."""
    logs = f"list_reduce(list_transform({times}, lambda one: ln(one)), lambda a, b: a + b)"
    return f"CASE len({times}) WHEN 0 THEN NULL WHEN 1 THEN {times}[1] ELSE exp({logs} / len({times})) END"


TIMINGS = f"""
  WITH timed AS (
    SELECT p.arm, p.role, p.block, p.id, p.replicate, x.seed, x.status, coalesce(x.setting, '') AS setting,
      CASE WHEN s.exclusive THEN coalesce(x.driver, '') ELSE '' END AS driver,
      torn.id IS NULL OR x.status IS DISTINCT FROM 'complete' AS readable,
      CASE WHEN (clock IN {AXES}) IS NOT true
        THEN error('unknown clock ' || {_shown("clock")} || '; there are: {", ".join(AXES)}')
        WHEN clock = 'train_s' THEN x.train_s WHEN clock = 'cpu_s' THEN x.cpu_s
        WHEN clock = 'wall_s' THEN x.wall_s END AS seconds,
      list_has_any(x.timing_reasons, ['resumed', 'shared']) AND clock IN {_SECONDS} AS not_own_work,
      coalesce({_CONTENDED}, false) AND clock IN ('train_s', 'wall_s') AS contended, x.timing_reasons AS reasons
    FROM _sweep_trials p LEFT JOIN _sweeps s ON s.sweep = p.sweep LEFT JOIN _trials x USING (id, replicate)
      LEFT JOIN _torn torn USING (id, replicate)
    WHERE p.sweep = sweep
  )
  SELECT arm, role, block, id, replicate, seed, status, setting, driver, readable,
    CASE WHEN isfinite(seconds) AND seconds > 0 THEN seconds END AS t,
    CASE WHEN NOT readable THEN 'with a metrics file that cannot be read'
      WHEN not_own_work THEN CASE WHEN list_contains(reasons, 'resumed') THEN 'resumed' ELSE 'shared' END
      WHEN contended THEN 'contention' END AS spoilt
  FROM timed"""
"""Reasons are those of `analysis.replicate`'s `why_not`, sessions (setting, driver) those of its `session`."""

SPEEDUPS = f"""
  WITH times AS (
    SELECT * FROM time_to_target(metric, target, mode := mode, rule := rule, clock := clock)
  ), replicates AS (
    SELECT r.* EXCLUDE (t, readable, spoilt), CASE WHEN r.status = 'complete' THEN nullif(m.t, 0) END AS t,
      CASE WHEN r.status IS DISTINCT FROM 'complete' THEN coalesce(r.status, 'pending') ELSE r.spoilt END AS why
    FROM timings(sweep, clock := clock) r LEFT JOIN times m USING (id, replicate)
  ), baselines AS (
    SELECT block, setting, driver, list(t ORDER BY id, replicate) AS ts
    FROM replicates WHERE role IN ('baseline', 'repeat') AND why IS NULL GROUP BY ALL
  ), pairs AS (
    SELECT r.* EXCLUDE (why), len(b.ts)::INTEGER AS baselines,
      CASE WHEN len(list_filter(b.ts, lambda one: one IS NULL)) = 0 THEN {_geometric_mean("b.ts")} END AS t_baseline,
      CASE WHEN r.why IS NOT NULL THEN r.why WHEN r.t IS NULL THEN 'without a time'
        WHEN b.ts IS NULL THEN 'without a baseline of the same setting and driver run'
        WHEN t_baseline IS NULL THEN 'with a baseline without a time' END AS why
    FROM replicates r LEFT JOIN baselines b USING (block, setting, driver) WHERE r.role = 'arm'
  ), cells AS (
    SELECT arm, block, first(pairs ORDER BY why IS NOT NULL, status IS DISTINCT FROM 'complete', replicate) AS best,
      list(t ORDER BY replicate) FILTER (WHERE why IS NULL) AS ts,
      list(t_baseline ORDER BY replicate) FILTER (WHERE why IS NULL) AS bases
    FROM pairs GROUP BY arm, block
  )
  SELECT arm, block, best.seed AS seed, best.id AS id, best.replicate AS replicate, best.status AS status,
    best.baselines AS baselines, coalesce({_geometric_mean("bases")}, best.t_baseline) AS t_baseline,
    coalesce({_geometric_mean("ts")}, best.t) AS t,
    {_geometric_mean("bases")} / {_geometric_mean("ts")} AS speedup, best.why AS why
  FROM cells ORDER BY arm, block"""
"""Pairs and reasons are those of `analysis.pairs.time_pairs`."""

ALIGNED = f"""
  WITH points AS (
    SELECT id, replicate, {_axis("axis")} AS place, arg_max(value, batch) AS value
    FROM metrics WHERE name = metric AND rank = 0 GROUP BY ALL
  ), ends AS (
    SELECT id, replicate, max(place) AS ends FROM points GROUP BY ALL
  ), grid AS (
    SELECT id, replicate, ends, step * (SELECT max(place) FROM points) / 100 AS place FROM ends, range(1, 101) g(step)
  )
  SELECT g.place AS x, g.id, g.replicate, r.label, r.seed, CASE WHEN g.place <= g.ends THEN p.value END AS value
  FROM grid g ASOF LEFT JOIN points p ON g.id = p.id AND g.replicate = p.replicate AND g.place >= p.place
  LEFT JOIN _trials r ON r.id = g.id AND r.replicate = g.replicate
  ORDER BY g.id, g.replicate, g.place"""
