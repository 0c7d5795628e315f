"""The SELECTs behind a report's numbers, for `expkit query`: the same pairs and means, in SQL on the public views.

Ends of intervals are value +- t * sd / sqrt(n); the quantile t has no SQL, so sd and n are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from expkit.analysis.attainment import ENDED
from expkit.analysis.cells import full_grid
from expkit.analysis.replicate import LOST
from expkit.analysis.study import Study

# ruff: noqa: S608  # literals are quoted below; the texts are shown, and read by a locked connection
GRID = "role IN ('baseline', 'arm', 'repeat')"


def statements(sweep: str, study: Study) -> Mapping[str, str]:
    """Name of a number -> the SELECT that gives it, from the replicates that the number is from."""
    s, m = literal(sweep), literal(study.metric)
    sign = "" if study.mode == "max" else "-"
    times, finals = _times(s, study), _finals(s, m)
    found = {
        "states": f"SELECT coalesce(status, 'pending') AS state, count(*) AS n FROM timings({s})\n"
        f"WHERE {GRID} GROUP BY 1 ORDER BY 1",
        "speedup": f"{times}\nSELECT arm, exp(avg(d)) AS speedup, stddev_samp(d) AS sd_log, count(*) AS n "
        "FROM pairs GROUP BY arm ORDER BY speedup DESC",
        "fastest": f"{times}\nSELECT arm, exp(avg(d)) AS speedup, count(*) AS n "
        "FROM pairs GROUP BY arm ORDER BY speedup DESC LIMIT 1",
        "noise": f"{_usable(s, study.clock)}, doubles AS (\n  SELECT block, ln(arg_min(t, replicate)) - "
        "ln(arg_min(t, replicate, 2)[2]) AS d FROM usable WHERE t IS NOT NULL\n"
        "  GROUP BY block, id, setting, driver HAVING count(*) > 1)\n"
        "SELECT exp(avg(d)) AS ratio, stddev_samp(d) AS sd_log, count(*) AS pairs FROM doubles",
        "quality": f"{finals}\nSELECT f.arm, {sign}avg(f.last - b.last) AS difference, "
        "stddev_samp(f.last - b.last) AS sd, count(*) AS n\nFROM finals f JOIN finals b "
        f"ON b.block = f.block AND {_is_baseline(study, 'b.arm')}\nWHERE NOT {_is_baseline(study, 'f.arm')} "
        "GROUP BY f.arm ORDER BY difference DESC",
        "curve": f"{_firsts(s)}\nSELECT arm, c.batch, avg(c.value) AS mean, stddev_samp(c.value) AS sd, "
        f"count(*) AS n\nFROM firsts JOIN curve({m}) c USING (id, replicate) "
        "WHERE isfinite(c.value) GROUP BY ALL ORDER BY arm, c.batch",
        "failures": "SELECT t.id, t.replicate, p.arm, t.seed, t.status, t.cause FROM sweep_trials p "
        f"JOIN trials t USING (id, replicate)\nWHERE p.sweep = {s} AND t.status IN ({', '.join(map(literal, LOST))})",
    }
    if methods := _crossed(study):
        found["effects"] = (
            f"{times}, d AS (\n  SELECT arm, block, d FROM pairs UNION ALL SELECT DISTINCT arm, block, 0.0 FROM t0\n)\n"
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
    """Per block the mean over pairs of arms that differ in the method alone, then over blocks."""
    named = ", ".join(literal(m) for m in methods)
    rest = "array_to_string(list_filter(string_split(one.arm, '+'), lambda part: part <> m.method), '+')"
    return (
        f"SELECT method, {columns}, count(*) AS n FROM (\n  SELECT m.method, one.block, avg(one.d - off.d) AS e\n"
        f"  FROM d one JOIN (SELECT unnest([{named}]) AS method) m "
        "ON list_contains(string_split(one.arm, '+'), m.method)\n"
        f"    JOIN d off ON off.block = one.block AND off.arm = coalesce(nullif({rest}, ''), 'none')\n"
        "  GROUP BY ALL\n) GROUP BY method ORDER BY method"
    )


def literal(text: str) -> str:
    """A value as SQL text."""
    return "'" + text.replace("'", "''") + "'"


def confirmed(sweep: str, baselines: Sequence[str], clock: str, seeds: Sequence[int]) -> str:
    """The speedups of arms that were confirmed, on these seeds; `baselines` are the labels of the baseline's arms."""
    among = f"role = 'confirm' AND seed IN ({', '.join(map(str, seeds)) or 'NULL'})"
    times = _pairs(f"arm IN ({', '.join(map(literal, baselines)) or 'NULL'})", _usable(literal(sweep), clock, among))
    return (
        f"{times}\nSELECT arm, exp(avg(d)) AS speedup, stddev_samp(d) AS sd_log, count(*) AS n "
        "FROM pairs GROUP BY arm ORDER BY speedup DESC"
    )


def _is_baseline(study: Study, column: str) -> str:
    labels = [arm for arm in study.by_arm if study.is_baseline(arm)] or [study.baseline]
    return f"{column} IN ({', '.join(map(literal, labels))})"


def _usable(sweep: str, clock: str, among: str = GRID) -> str:
    """Complete replicates, those of the grid unless told otherwise, whose time on the clock may be compared."""
    return f"""WITH usable AS (
  SELECT arm, block, id, replicate, setting, driver, t FROM timings({sweep}, clock := {literal(clock)})
  WHERE {among} AND status = 'complete' AND spoilt IS NULL)"""


def _times(sweep: str, study: Study) -> str:
    return _pairs(_is_baseline(study, "arm"), _usable(sweep, study.clock))


def _pairs(is_baseline: str, usable: str) -> str:
    """d = ln T_0 - ln T_c of each block, T_0 the geometric mean of the baseline's replicates in the arm's session."""
    return f"""{usable}, t0 AS (
  SELECT arm, block, setting, driver, avg(ln(t)) AS ln_t0 FROM usable
  WHERE {is_baseline} GROUP BY ALL HAVING count(t) = count(*)
), pairs AS (
  SELECT u.arm, u.block, avg(b.ln_t0 - ln(u.t)) AS d FROM usable u JOIN t0 b USING (block, setting, driver)
  WHERE u.t IS NOT NULL AND NOT u.{is_baseline} GROUP BY u.arm, u.block)"""


def _firsts(sweep: str) -> str:
    """The first complete replicate of each trial whose metrics can be read."""
    return f"""WITH firsts AS (
  SELECT DISTINCT ON (arm, block) arm, block, id, replicate FROM timings({sweep})
  WHERE {GRID} AND status = 'complete' AND readable ORDER BY arm, block, id, replicate)"""


def _finals(sweep: str, metric: str) -> str:
    """Its last evaluation, where that is a number."""
    return f"""{_firsts(sweep)}, finals AS (
  SELECT arm, block, last FROM firsts JOIN final USING (id, replicate) WHERE name = {metric} AND last IS NOT NULL)"""


def _time_to_target(sweep: str, metric: str, study: Study) -> str:
    """One replicate a trial, complete where one is; a trial that failed or diverged never came."""
    target = study.attained.targets[None]
    clock = literal(study.clock)
    ended = ", ".join(map(literal, ENDED))
    return (
        f"WITH ended AS (\n  SELECT DISTINCT ON (id) arm, id, replicate, status, spoilt\n"
        f"  FROM timings({sweep}, clock := {clock}) WHERE {GRID} AND readable AND status IN ({ended})\n"
        "  ORDER BY id, status <> 'complete', replicate), reached AS (\n"
        "  SELECT arm, spoilt, CASE WHEN status = 'complete' THEN x.t END AS t FROM ended LEFT JOIN time_to_target(\n"
        f"    {metric}, {target!r}, mode := {literal(study.mode)}, clock := {clock}) x USING (id, replicate))\n"
        "SELECT arm, median(coalesce(t, 'inf'::DOUBLE)) FILTER (WHERE spoilt IS NULL) AS median_s, count(t) AS hits,\n"
        "  count(*) AS n FROM reached GROUP BY arm ORDER BY median_s"
    )
