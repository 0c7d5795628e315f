"""The SQL of the larger table macros: time to target, speedups, aligned series. Formulas as in `expkit.analysis`.

In a macro a bare name that is one of its parameters means the parameter, so columns of that name are qualified.
"""

# ruff: noqa: S608  # no value of a user's enters these texts

from __future__ import annotations

AXES = ("train_s", "cpu_s", "wall_s", "batch", "epoch", "sample", "token")
"""What a series may be plotted over; the first three are clocks."""


def _axis(parameter: str) -> str:
    """The column that a macro's parameter names, as DOUBLE; an error for any other word."""
    cases = " ".join(f"WHEN '{axis}' THEN {axis}::DOUBLE" for axis in AXES)
    return f"""CASE {parameter} {cases}
      ELSE error('unknown {parameter} ' || {parameter} || '; there are: {", ".join(AXES)}') END"""


_RULE = """CASE rule WHEN 'sustained' THEN ok AND coalesce(next_ok, true) WHEN 'first' THEN ok
      WHEN 'to_end' THEN ok AND ok_to_end
      ELSE error('unknown rule ' || rule || '; there are: sustained, first, to_end') END"""
_KNOWN = "CASE rule WHEN 'sustained' THEN coalesce(next_u, u) WHEN 'first' THEN u ELSE last_u END"
_HEIGHT = """CASE WHEN mode NOT IN ('max', 'min') THEN error('mode must be max or min, but got ' || mode)
      WHEN isnan(value) THEN NULL WHEN isinf(value) THEN '-inf'::DOUBLE WHEN mode = 'min' THEN -value ELSE value END"""

TIME_TO_TARGET = f"""
  WITH heights AS (
    SELECT id, replicate, {_axis("clock")} AS clock_value, {_HEIGHT} AS z
    FROM metrics WHERE name = metric AND rank = 0
  ), series AS (
    SELECT id, replicate, CASE WHEN z IS NOT NULL THEN clock_value END AS u, z,
      z >= CASE mode WHEN 'min' THEN -(target::DOUBLE) ELSE target::DOUBLE END AS ok
    FROM heights
  ), steps AS (
    SELECT *, lag(u) OVER w AS before_u, lag(z) OVER w AS before_z, lead(u) OVER w AS next_u,
      lead(ok) OVER w AS next_ok, row_number() OVER w AS j, max(u) OVER (PARTITION BY id, replicate) AS last_u,
      bool_and(ok) OVER (PARTITION BY id, replicate ORDER BY u NULLS LAST
        ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS ok_to_end
    FROM series WINDOW w AS (PARTITION BY id, replicate ORDER BY u NULLS LAST)
  ), starts AS (
    SELECT id, replicate, count(u) AS n, max(u) AS horizon,
      arg_min({{'j': j, 'u': u, 'z': z, 'before_u': before_u, 'before_z': before_z, 'known_at': {_KNOWN}}}, j)
        FILTER (WHERE {_RULE}) AS s
    FROM steps GROUP BY id, replicate
  )
  SELECT id, replicate, s IS NOT NULL AS hit,
    CASE WHEN s.j = 1 OR isinf(s.before_z) THEN s.u
      ELSE least(s.before_u + (CASE mode WHEN 'min' THEN -(target::DOUBLE) ELSE target::DOUBLE END - s.before_z)
        / (s.z - s.before_z) * (s.u - s.before_u), s.u) END AS t,
    CASE WHEN s.j = 1 THEN 0.0 ELSE s.before_u END AS bracket_lo, s.u AS bracket_hi, s.known_at AS known_at,
    s.j = 1 AS left_censored, horizon, n
  FROM starts"""

SPEEDUPS = """
  WITH times AS (
    SELECT * FROM time_to_target(metric, target, mode := mode, rule := rule, clock := clock)
  ), cells AS (
    SELECT p.arm, p.role, p.block, p.id, p.replicate, x.seed, x.status, x.setting, x.driver,
      CASE WHEN x.status = 'complete' THEN m.t END AS t
    FROM _sweep_trials p LEFT JOIN _trials x USING (id, replicate) LEFT JOIN times m USING (id, replicate)
    WHERE p.sweep = sweep
  ), baselines AS (
    SELECT block, setting, driver, count(*) AS n,
      CASE WHEN count(t) = count(*) THEN exp(avg(ln(CASE WHEN t > 0 THEN t END))) END AS t
    FROM cells WHERE role IN ('baseline', 'repeat') AND status = 'complete' GROUP BY ALL
  ), anywhere AS (
    SELECT block, setting, sum(n) AS n, CASE WHEN count(t) = count(*) THEN exp(sum(n * ln(t)) / sum(n)) END AS t
    FROM baselines GROUP BY ALL
  )
  SELECT c.arm, c.block, c.seed, c.id, c.replicate, c.status, coalesce(b.n, a.n)::INTEGER AS baselines,
    CASE WHEN b.n IS NOT NULL THEN b.t ELSE a.t END AS t_baseline, c.t AS t, t_baseline / c.t AS speedup
  FROM cells c LEFT JOIN baselines b USING (block, setting, driver) LEFT JOIN anywhere a USING (block, setting)
  WHERE c.role = 'arm' ORDER BY c.arm, c.block"""

ALIGNED = f"""
  WITH points AS (
    SELECT id, replicate, {_axis("axis")} AS place,
      value
    FROM metrics WHERE name = metric AND rank = 0
  ), ends AS (
    SELECT id, replicate, max(place) AS ends FROM points GROUP BY ALL
  ), grid AS (
    SELECT id, replicate, ends, step * (SELECT max(place) FROM points) / 100 AS place FROM ends, range(1, 101) g(step)
  )
  SELECT g.place AS x, g.id, g.replicate, r.label, r.seed, CASE WHEN g.place <= g.ends THEN p.value END AS value
  FROM grid g ASOF LEFT JOIN points p ON g.id = p.id AND g.replicate = p.replicate AND g.place >= p.place
  LEFT JOIN _trials r ON r.id = g.id AND r.replicate = g.replicate
  ORDER BY g.id, g.replicate, g.place"""
