"""Views and macros: columns as promised, numbers as computed by hand, hostile values that win nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expkit.errors import QueryError
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.query import Connection, connect
from expkit.store.records import CLOCKS
from expkit.store.store import Store
from expkit.store.views import VIEWS
from tests.store.synthetic import Cell, Method, make_store

ID12 = "0123456789ab"
G5_T = tuple(range(10, 101, 10))
G5_ACCURACY = (70, 80, 88, 91, 90.5, 92.2, 91.7, 92.4, 92.6, 92.5)  # speedup-science G5


def series(
    root: Path, values: Sequence[float], times: Sequence[float] | None = None, id12: str = ID12, **stamp: Any
) -> None:
    """One replicate with one metric `q`, evaluated at `times`."""
    store = Store(root)
    writer = MetricsWriter(store.new_attempt(id12, 0, "driver"), id12, 0, 1)
    for j, value in enumerate(values):
        t = times[j] if times is not None else float(j + 1)
        writer.log_many({"q": value}, Stamp(j + 1, 0, 0, (j + 1) * 10, 0, t, 2 * t, 3 * t)._replace(**stamp))
    writer.close()


def crossing(con: Connection, target: float, **options: str) -> dict[str, Any]:
    given = "".join(f", {k} := '{v}'" for k, v in options.items())
    (row,) = con.rows(f"SELECT * FROM time_to_target('q', $target{given})", {"target": target})
    return row


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Connection:
    """Two methods, two seeds; ema found nothing to do; one arm failed, one diverged."""

    def change(cell: Cell) -> Cell:
        if (cell.arm, cell.seed) == ("ema", 18):
            return replace(cell, state="failed", cause="oom", message="out of memory")
        if (cell.arm, cell.seed) == ("blur+ema", 18):
            return replace(cell, state="diverged")
        return cell

    methods = {"ema": Method(effective=False), "blur": Method(time=0.5, quality=0.01)}
    made = make_store(tmp_path_factory.mktemp("runs"), methods, seeds=(17, 18), change=change)
    return connect(made.root)


def test_the_columns_of_the_trials_view_are_those_of_the_design() -> None:
    (trials,) = (view for view in VIEWS if view.name == "trials")
    assert trials.columns == (
        "id", "replicate", "label", "algorithms", "size", "seed", "setting", "status", "cause", "attempts",
        "created_utc", "started_utc", "ended_utc", "host", "device", "nproc", "threads", "code_sha", "dirty",
        "timing_valid", "timing_reasons", "setup_s", "train_s", "cpu_s", "wall_s", "data_wait_s", "forward_s",
        "backward_s", "optimizer_s", "algorithms_s", "callbacks_s", "eval_s", "checkpoint_s", "compile_s", "config",
    )  # fmt: skip
    assert trials.columns[-14:-1] == CLOCKS


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_has_its_columns_and_its_example_runs(con: Connection, view: Any, tmp_path: Path) -> None:
    call = view.call
    assert tuple(con.table(f"SELECT * FROM {call}").column_names) == view.columns
    con.rows(view.example)
    with connect(tmp_path / "missing") as empty:
        assert empty.rows(f"SELECT * FROM {call}") == []
        assert tuple(empty.table(f"SELECT * FROM {call}").column_names) == view.columns
        empty.rows(view.example)


@pytest.mark.parametrize(
    ("view", "column", "kind"),
    [
        ("trials", "algorithms", "VARCHAR[]"),
        ("trials", "timing_reasons", "VARCHAR[]"),
        ("trials", "config", "JSON"),
        ("trials", "created_utc", "TIMESTAMP"),
        ("trials", "dirty", "BOOLEAN"),
        ("metrics", "value", "DOUBLE"),
        ("metrics", "id", "VARCHAR"),
        ("metrics", "name", "VARCHAR"),
        ("metrics", "batch", "BIGINT"),
        ("algorithms", "params", "JSON"),
        ("algorithms", "effective", "BOOLEAN"),
        ("events", "payload", "JSON"),
        ("sweeps", "target_value", "DOUBLE"),
    ],
)
def test_types_are_the_same_in_an_empty_store(
    con: Connection, tmp_path: Path, view: str, column: str, kind: str
) -> None:
    with connect(tmp_path) as empty:
        for connection in (con, empty):
            described = {row["column_name"]: row["column_type"] for row in connection.rows(f"DESCRIBE {view}")}
            assert described[column] == kind


def test_a_trial_in_sql(con: Connection) -> None:
    rows = con.rows("SELECT * FROM trials WHERE label = 'ema' ORDER BY seed")
    assert [(r["status"], r["cause"], r["attempts"], r["timing_valid"]) for r in rows] == [
        ("complete", None, 1, True), ("failed", "oom", 1, True),
    ]  # fmt: skip
    assert rows[0]["algorithms"] == ["ema"] and rows[0]["size"] == 1 and rows[0]["device"] == "cpu"
    (lr,) = con.rows("SELECT DISTINCT config->'optimizer'->'sgd'->>'lr' AS lr FROM trials")
    assert lr == {"lr": "0.1"}


def test_parameters_by_dotted_key(con: Connection) -> None:
    keys = con.rows("SELECT DISTINCT key, value_text, value_num FROM params WHERE key LIKE 'optimizer.%' ORDER BY key")
    assert [tuple(row.values()) for row in keys] == [
        ("optimizer.sgd.betas", "[0.9, 0.99]", None),
        ("optimizer.sgd.clip", None, None),
        ("optimizer.sgd.lr", "0.1", 0.1),
        ("optimizer.sgd.nesterov", "true", None),
    ]


def test_a_method_without_effect_is_seen(con: Connection) -> None:
    rows = con.rows("SELECT name, params->>'strength' AS s, bool_or(effective) AS e FROM algorithms GROUP BY ALL")
    assert sorted(tuple(row.values()) for row in rows) == [("blur", "0.5", True), ("ema", "0.5", False)]


def test_events_have_their_payload(con: Connection) -> None:
    rows = con.rows("SELECT payload->>'state' AS state, count(*) AS n FROM events WHERE kind = 'end' GROUP BY ALL")
    assert {row["state"]: row["n"] for row in rows} == {"complete": 8, "failed": 1, "diverged": 1}


def test_speedups_pair_by_block_and_show_what_missed(con: Connection) -> None:
    rows = con.rows("SELECT * FROM speedups('ablate', 'eval/accuracy', 0.8)")
    assert [(r["arm"], r["seed"], r["status"], r["baselines"]) for r in rows] == [
        ("blur", 17, "complete", 2), ("blur", 18, "complete", 2), ("blur+ema", 17, "complete", 2),
        ("blur+ema", 18, "diverged", 2), ("ema", 17, "complete", 2), ("ema", 18, "failed", 2),
    ]  # fmt: skip
    assert rows[0]["speedup"] == pytest.approx(2.0, rel=0.15)
    assert rows[3]["speedup"] is None and rows[5]["speedup"] is None
    times = con.rows(
        "SELECT role, t FROM time_to_target('eval/accuracy', 0.8) JOIN sweep_trials USING (id, replicate) "
        "WHERE block = 0 AND arm IN ('none', 'blur')"
    )
    baseline = math.sqrt(math.prod(row["t"] for row in times if row["role"] != "arm"))
    (arm,) = (row["t"] for row in times if row["role"] == "arm")
    assert rows[0]["t_baseline"] == pytest.approx(baseline, rel=1e-12)
    assert rows[0]["speedup"] == pytest.approx(baseline / arm, rel=1e-12)


def test_speedups_take_baselines_of_the_arms_setting_only(tmp_path: Path) -> None:
    def change(cell: Cell) -> Cell:
        return replace(cell, setting={**cell.setting, "threads": 2}) if cell.methods and cell.seed == 18 else cell

    made = make_store(tmp_path, {"blur": Method(time=0.5)}, seeds=(17, 18), change=change)
    with connect(made.root) as con:
        rows = con.rows("SELECT seed, baselines, speedup IS NULL AS none FROM speedups('ablate', 'eval/accuracy', 0.8)")
    assert rows == [{"seed": 17, "baselines": 2, "none": False}, {"seed": 18, "baselines": None, "none": True}]


@pytest.mark.parametrize(
    ("rule", "t", "bracket", "known_at"),
    [
        ("first", 58.823529, (50, 60), 60),
        ("sustained", 74.285714, (70, 80), 90),
        ("to_end", 74.285714, (70, 80), 100),
        ("median3", 76.0, (70, 80), 80),
    ],
)
def test_time_to_target_on_the_worked_example(
    tmp_path: Path, rule: str, t: float, bracket: tuple[float, float], known_at: float
) -> None:
    series(tmp_path, G5_ACCURACY, G5_T)
    with connect(tmp_path) as con:
        row = crossing(con, 92, rule=rule)
        assert row["hit"] and row["t"] == pytest.approx(t, abs=1e-6) and not row["left_censored"]
        assert (row["bracket_lo"], row["bracket_hi"]) == bracket
        assert row["known_at"] == known_at and row["horizon"] == 100 and row["n"] == 10
        assert crossing(con, 92, rule=rule, clock="cpu_s")["t"] == pytest.approx(2 * t, abs=2e-6)
        assert crossing(con, 92, rule=rule, clock="sample")["t"] == pytest.approx(t, abs=1e-6)


def test_time_to_target_censored_and_there_from_the_start(tmp_path: Path) -> None:
    series(tmp_path, G5_ACCURACY, G5_T)
    with connect(tmp_path) as con:
        missed = crossing(con, 93)
        assert not missed["hit"] and missed["t"] is None and missed["horizon"] == 100
        there = crossing(con, 70)
        assert there["t"] == 10 and there["left_censored"] and there["bracket_lo"] == 0


def test_time_to_target_of_losses_and_of_a_last_single_hit(tmp_path: Path) -> None:
    series(tmp_path, (3.0, 2.0, 1.0))
    with connect(tmp_path) as con:
        assert crossing(con, 1.5, mode="min")["t"] == 2.5
        assert crossing(con, 1.5, mode="min")["known_at"] == 3.0


def test_time_to_target_drops_nan_and_infinity_never_hits(tmp_path: Path) -> None:
    series(tmp_path / "a", (0.1, math.nan, 0.9, math.nan, 0.9))
    series(tmp_path / "b", (0.1, math.inf, math.inf, math.inf))
    series(tmp_path / "c", (math.nan, math.nan))
    with connect(tmp_path / "a") as con:
        row = crossing(con, 0.5)
        assert row["t"] == pytest.approx(2.0) and row["n"] == 3 and row["known_at"] == 5.0
    with connect(tmp_path / "b") as con:
        assert not crossing(con, 0.5)["hit"]
    with connect(tmp_path / "c") as con:  # a diverged run is a miss, not an absence
        row = crossing(con, 0.5)
        assert not row["hit"] and row["n"] == 0 and row["horizon"] is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rule": "sustaind"}, "unknown rule sustaind; there are: sustained"),
        ({"clock": "time"}, "unknown clock time; there are: train_s"),
        ({"mode": "lowest"}, "mode must be max or min, but got lowest"),
    ],
)
def test_a_macro_says_which_words_it_knows(tmp_path: Path, options: dict[str, str], says: str) -> None:
    series(tmp_path, (0.1, 0.9))
    with connect(tmp_path) as con, pytest.raises(QueryError, match=says):
        crossing(con, 0.5, **options)


def test_duckdb_sees_the_nan_in_our_files(tmp_path: Path) -> None:
    """Minimum and maximum in a footer leave out NaN; DuckDB believed them and said isnan() = false for every row."""
    series(tmp_path, (math.nan, 0.0, 0.3))
    with connect(tmp_path) as con:
        assert con.rows("SELECT batch FROM metrics WHERE isnan(value)") == [{"batch": 1}]
        assert con.rows("SELECT isnan(value) AS odd FROM metrics ORDER BY batch")[0] == {"odd": True}


def test_user_report_60_nan_and_inf_are_kept_and_win_nothing(tmp_path: Path) -> None:
    series(tmp_path, (0.3, math.inf, 0.7, 0.2, -math.inf, math.nan))
    series(tmp_path, (math.nan, math.nan), id12="f" * 12)
    with connect(tmp_path) as con:
        good, bad = con.rows("SELECT * FROM final ORDER BY id")
        assert good == {
            "id": ID12, "replicate": 0, "name": "q", "first": 0.3, "last": None, "min": 0.2, "min_batch": 4,
            "max": 0.7, "max_batch": 3, "n": 6, "n_not_finite": 3,
        }  # fmt: skip
        assert bad["max"] is None and bad["min_batch"] is None and bad["n_not_finite"] == 2
        assert con.rows("SELECT count(*) AS n FROM metrics WHERE isinf(value)") == [{"n": 2}]
        assert con.rows("SELECT id FROM final ORDER BY max DESC NULLS LAST LIMIT 1") == [{"id": ID12}]
    series(tmp_path, (0.1, 0.2), id12="e" * 12)
    with connect(tmp_path) as con:
        for column in ("first", "last", "min", "max"):
            for order in ("ASC", "DESC"):
                (best,) = con.rows(f"SELECT {column} AS best FROM final ORDER BY {column} {order} LIMIT 1")
                assert math.isfinite(best["best"]), (column, order)


def test_user_report_67_names_are_values(tmp_path: Path) -> None:
    store = Store(tmp_path)
    writer = MetricsWriter(store.new_attempt(ID12, 0, "driver"), ID12, 0, 1)
    names = ["eval/f1-score and x", "acc", "Acc", "a'b", 'q"uote', "日本", "a;b--c", ""]
    writer.log_many(dict(zip(names, map(float, range(8)), strict=True)), Stamp(1, 0, 0, 0, 0, 0.0, 0.0, 0.0))
    writer.close()
    with connect(tmp_path) as con:
        for value, name in enumerate(names):
            assert con.rows("SELECT value FROM metrics WHERE name = ?", [name]) == [{"value": float(value)}]


def test_other_ranks_are_in_metrics_and_not_in_final(tmp_path: Path) -> None:
    store = Store(tmp_path)
    attempt_dir = store.new_attempt(ID12, 0, "driver")
    for rank in range(2):
        writer = MetricsWriter(attempt_dir, ID12, 0, 1, rank)
        writer.log_many({"q": float(rank)}, Stamp(1, 0, 0, 0, 0, 0.0, 0.0, 0.0))
        writer.close()
    with connect(tmp_path) as con:
        assert con.rows("SELECT rank, value FROM metrics ORDER BY rank") == [
            {"rank": 0, "value": 0.0}, {"rank": 1, "value": 1.0},
        ]  # fmt: skip
        assert con.rows("SELECT last, n FROM final") == [{"last": 0.0, "n": 1}]


def attempts(root: Path, *plan: tuple[tuple[int, int] | None, int, int]) -> None:
    """Attempts of one replicate: (continues, first batch, last batch); each logs its own number."""
    store = Store(root)
    for k, (continues, first, last) in enumerate(plan, 1):
        writer = MetricsWriter(store.new_attempt(ID12, 0, "driver", continues=continues), ID12, 0, k)
        for batch in range(first, last + 1):
            writer.log_many({"q": float(k)}, Stamp(batch, 0, 0, 0, 0, 0.0, 0.0, 0.0))
        writer.close()


@pytest.mark.parametrize(
    ("plan", "counted"),
    [
        ([(None, 1, 5)], [1] * 5),
        ([(None, 1, 5), ((1, 3), 4, 6)], [1, 1, 1, 2, 2, 2]),
        ([(None, 1, 5), ((1, 3), 4, 6), ((2, 5), 6, 7)], [1, 1, 1, 2, 2, 3, 3]),
        ([(None, 1, 5), ((1, 4), 5, 6), ((1, 2), 3, 6)], [1, 1, 3, 3, 3, 3]),
        ([(None, 1, 5), (None, 1, 2)], [2, 2]),
        ([(None, 1, 5), ((1, 3), 4, 3)], [1, 1, 1]),
    ],
    ids=["alone", "resumed", "resumed twice", "older checkpoint", "started over", "nothing logged yet"],
)
def test_attempts_are_stitched(tmp_path: Path, plan: Any, counted: list[int]) -> None:
    attempts(tmp_path, *plan)
    with connect(tmp_path) as con:
        rows = con.rows("SELECT batch, value FROM metrics ORDER BY batch")
        assert [row["batch"] for row in rows] == list(range(1, len(counted) + 1))
        assert [row["value"] for row in rows] == counted
        everything = sum(last - first + 1 for _, first, last in plan)
        assert con.rows("SELECT count(*) AS n FROM metrics_all") == [{"n": everything}]
        superseded = con.rows("SELECT count(*) AS n FROM metrics_all WHERE superseded")
        assert superseded == [{"n": everything - len(counted)}]


def test_what_both_log_at_the_batch_where_one_goes_on_from_the_other_counts_once(tmp_path: Path) -> None:
    """A killed attempt may have begun the next batch, one that was stopped has not; its successor logs it (again)."""
    store = Store(tmp_path)
    logged = [(None, {"loss": [1, 2, 3], "size": [2]}), ((1, 2), {"size": [2], "epochs": [2]}),
              ((2, 2), {"loss": [3], "size": [2], "epochs": [2]})]  # fmt: skip
    for k, (continues, series_of) in enumerate(logged, 1):
        writer = MetricsWriter(store.new_attempt(ID12, 0, "driver", continues=continues), ID12, 0, k)
        for name, batches in series_of.items():
            for batch in batches:
                writer.log_many({name: float(k)}, Stamp(batch, 0, 0, 0, 0, 0.0, 0.0, 0.0))
        writer.close()
    with connect(tmp_path) as con:
        rows = con.rows("SELECT name, batch, attempt FROM metrics ORDER BY ALL")
    assert [tuple(row.values()) for row in rows] == [
        ("epochs", 2, 2), ("loss", 1, 1), ("loss", 2, 1), ("loss", 3, 3), ("size", 2, 1),
    ]  # fmt: skip
