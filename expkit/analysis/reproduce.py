"""The SELECTs behind a report's numbers, for `expkit query`: the same pairs and means, in SQL on the public views.

Ends of intervals are value +- t * sd / sqrt(n); the quantile t has no SQL, so sd and n are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from expkit.analysis.cells import full_grid
from expkit.analysis.study import Study

# ruff: noqa: S608  # literals are quoted below; the texts are shown, and read by a locked connection
_GRID = "p.role IN ('baseline', 'arm', 'repeat')"


def statements(sweep: str, study: Study) -> Mapping[str, str]:
    """Name of a number -> the SELECT that gives it."""
    s, m, b = literal(sweep), literal(study.metric), literal(study.baseline)
    sign = "" if study.mode == "max" else "-"
    times, finals = _times(s, b, study.clock), _finals(s, m)
    found = {
        "states": f"SELECT coalesce(t.status, 'pending') AS state, count(*) AS n FROM sweep_trials p "
        f"LEFT JOIN trials t USING (id, replicate) WHERE p.sweep = {s} "
        "AND p.role IN ('baseline', 'arm', 'repeat') GROUP BY 1 ORDER BY 1",
        "speedup": f"{times}\nSELECT arm, exp(avg(d)) AS speedup, stddev_samp(d) AS sd_log, count(*) AS n "
        "FROM pairs GROUP BY arm ORDER BY speedup DESC",
        "fastest": f"{times}\nSELECT arm, exp(avg(d)) AS speedup, count(*) AS n "
        "FROM pairs GROUP BY arm ORDER BY speedup DESC LIMIT 1",
        "noise": f"{_usable(s, study.clock)}, doubles AS (\n  SELECT block, ln(arg_min(t, replicate)) - "
        "ln(arg_min(t, replicate, 2)[2]) AS d FROM usable GROUP BY block, id, setting HAVING count(*) > 1)\n"
        "SELECT exp(avg(d)) AS ratio, stddev_samp(d) AS sd_log, count(*) AS pairs FROM doubles",
        "quality": f"{finals}\nSELECT f.arm, {sign}avg(f.last - b.last) AS difference, "
        "stddev_samp(f.last - b.last) AS sd, count(*) AS n\nFROM finals f JOIN finals b "
        f"ON b.block = f.block AND split_part(b.arm, ' ', 1) = {b}\nWHERE split_part(f.arm, ' ', 1) <> {b} "
        "GROUP BY f.arm ORDER BY difference DESC",
        "curve": f"SELECT p.arm, c.batch, avg(c.value) AS mean, stddev_samp(c.value) AS sd, count(*) AS n\n"
        f"FROM curve({m}) c JOIN sweep_trials p USING (id, replicate) JOIN trials t USING (id, replicate)\n"
        f"WHERE p.sweep = {s} AND p.role IN ('baseline', 'arm') AND t.status = 'complete' AND isfinite(c.value) "
        "GROUP BY ALL ORDER BY p.arm, c.batch",
        "failures": f"SELECT t.id, t.replicate, p.arm, t.seed, t.status, t.cause FROM sweep_trials p "
        f"JOIN trials t USING (id, replicate) WHERE p.sweep = {s} AND t.status IN ('failed', 'diverged', 'lost')",
    }
    if methods := _crossed(study):
        found["effects"] = (
            f"{times}, d AS (\n  SELECT arm, block, d FROM pairs UNION ALL SELECT {b}, block, 0.0 FROM t0\n)\n"
        )
        found["effects"] += _main_effects(methods, "exp(avg(e)) AS speedup, stddev_samp(e) AS sd_log")
        found["effects_quality"] = f"{finals}, d AS (SELECT arm, block, {sign}last AS d FROM finals)\n"
        found["effects_quality"] += _main_effects(methods, "avg(e) AS difference, stddev_samp(e) AS sd")
    if None in study.attained.targets:
        found["time_to_target"] = _time_to_target(s, m, study)
    return found


def _crossed(study: Study) -> list[str]:
    """The methods of a full grid in which each did something; empty elsewhere, where effects have no short SQL."""
    grid = full_grid(study.cells)
    return [] if grid is None or any(study.idle.values()) else grid[0]


def _main_effects(methods: Sequence[str], columns: str) -> str:
    """Mean with the method on minus mean with it off, per block; exact where no trial is missing."""
    named = ", ".join(literal(m) for m in methods)
    on = "list_contains(string_split(d.arm, '+'), m.method)"
    return (
        f"SELECT method, {columns}, count(*) AS n FROM (\n  SELECT m.method, d.block,\n"
        f"    avg(d.d) FILTER (WHERE {on}) - avg(d.d) FILTER (WHERE NOT {on}) AS e\n"
        f"  FROM d, (SELECT unnest([{named}]) AS method) m GROUP BY ALL\n) GROUP BY method ORDER BY method"
    )


def literal(text: str) -> str:
    """A value as SQL text."""
    return "'" + text.replace("'", "''") + "'"


def confirmed(sweep: str, baseline: str, clock: str, seeds: Sequence[int]) -> str:
    """The speedups of arms that were confirmed, on these seeds."""
    among = f"p.role = 'confirm' AND t.seed IN ({', '.join(map(str, seeds)) or 'NULL'})"
    times = _times(literal(sweep), literal(baseline), clock, among)
    return (
        f"{times}\nSELECT arm, exp(avg(d)) AS speedup, stddev_samp(d) AS sd_log, count(*) AS n "
        "FROM pairs GROUP BY arm ORDER BY speedup DESC"
    )


def _usable(sweep: str, clock: str, among: str = _GRID) -> str:
    """Complete replicates, those of the grid unless told otherwise, whose time on the clock may be compared."""
    spoilt = "['resumed', 'shared']" if clock == "cpu_s" else "['resumed', 'shared', 'contention']"
    return f"""WITH usable AS (
  SELECT p.arm, p.block, p.id, p.replicate, t.setting, t.{clock} AS t
  FROM sweep_trials p JOIN trials t USING (id, replicate)
  WHERE p.sweep = {sweep} AND {among} AND t.status = 'complete'
    AND t.{clock} > 0 AND NOT list_has_any(coalesce(t.timing_reasons, []), {spoilt}))"""


def _times(sweep: str, baseline: str, clock: str, among: str = _GRID) -> str:
    """d = ln T_0 - ln T_c of each block, T_0 the geometric mean of the baseline's replicates."""
    return f"""{_usable(sweep, clock, among)}, t0 AS (
  SELECT block, setting, avg(ln(t)) AS ln_t0 FROM usable WHERE split_part(arm, ' ', 1) = {baseline} GROUP BY ALL
), pairs AS (
  SELECT u.arm, u.block, avg(b.ln_t0 - ln(u.t)) AS d FROM usable u JOIN t0 b USING (block, setting)
  WHERE split_part(u.arm, ' ', 1) <> {baseline} GROUP BY u.arm, u.block)"""


def _finals(sweep: str, metric: str) -> str:
    """The last evaluation of the first complete replicate of each trial."""
    return f"""WITH finals AS (
  SELECT p.arm, p.block, arg_min(f.last, p.replicate) AS last
  FROM sweep_trials p JOIN final f USING (id, replicate) JOIN trials t USING (id, replicate)
  WHERE p.sweep = {sweep} AND p.role IN ('baseline', 'arm', 'repeat') AND f.name = {metric}
    AND t.status = 'complete' AND isfinite(f.last)
  GROUP BY p.arm, p.block)"""


def _time_to_target(sweep: str, metric: str, study: Study) -> str:
    target = study.attained.targets[None]
    return (
        f"SELECT p.arm, median(coalesce(x.t, 'inf'::DOUBLE)) AS median_s, count(x.t) AS hits, count(*) AS n\n"
        f"FROM time_to_target({metric}, {target!r}, mode := {literal(study.mode)}, clock := {literal(study.clock)}) x\n"
        f"JOIN sweep_trials p USING (id, replicate) JOIN trials t USING (id, replicate)\n"
        f"WHERE p.sweep = {sweep} AND p.role IN ('baseline', 'arm') AND t.status = 'complete'\n"
        "GROUP BY p.arm ORDER BY median_s"
    )
