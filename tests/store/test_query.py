"""The locked connection: what may be asked, what is set aside, and reading while others write."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expkit.errors import QueryError
from expkit.store.layout import METRICS, Layout
from expkit.store.metrics import SCHEMA, MetricsWriter, Stamp
from expkit.store.query import Connection, connect
from expkit.store.store import Store
from expkit.store.views import VIEWS
from tests.store.synthetic import Method, Synthetic, make_store

WRITE = """
import sys, time
from pathlib import Path
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.store import Store
store = Store(Path(sys.argv[1]))
for replicate in range(1000):
    folder = store.new_attempt(sys.argv[2] * 12, replicate, "driver")
    writer = MetricsWriter(folder, sys.argv[2] * 12, replicate, 1)
    for batch in range(50):
        writer.log_many({"a": 1.0}, Stamp(batch, 0, 0, 0, 0, 0.0, 0.0, 0.0))
        if batch % 10 == 0:
            writer.flush()
            time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    return make_store(tmp_path_factory.mktemp("a [1] %41 ä'b") / "runs", {"ema": Method()}, seeds=(17, 18))


@pytest.fixture(scope="module")
def con(made: Synthetic) -> Iterator[Connection]:
    """One connection for all questions: none of them may leave anything behind."""
    with connect(made.root) as con:
        yield con


def metrics_files(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*.parquet") if METRICS.fullmatch(p.name))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM metrics",
        "FROM trials SELECT label",
        "WITH a AS (SELECT * FROM metrics) SELECT count(*) FROM a",
        "PIVOT (SELECT id, name, value FROM metrics) ON name USING avg(value)",
        "DESCRIBE metrics",
        "SUMMARIZE trials",
        "SHOW TABLES",
        "VALUES (1)",
        "(SELECT 1)",
        "TABLE sweeps",
        "SELECT 'copy; (insert' AS text -- (delete; drop",
        "SELECT\u00a01\u200b",
        "SELECT 1 AS copy /* ; COPY x TO 'y' */;",
    ],
)
def test_reading_is_allowed(con: Connection, sql: str) -> None:
    assert con.rows(sql)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("COPY metrics TO '{out}'", "COPY is not allowed"),
        ("COPY (SELECT 1) TO '{listed}' (FORMAT parquet, USE_TMP_FILE false)", "COPY is not allowed"),
        ("EXPLAIN ANALYZE COPY metrics TO '{out}'", "EXPLAIN is not allowed"),
        ("EXPLAIN SELECT 1", "EXPLAIN is not allowed"),
        ("WITH a AS (COPY (SELECT 1) TO '{listed}' (FORMAT parquet, USE_TMP_FILE false)) SELECT 1", "COPY inside"),
        ("WITH a AS MATERIALIZED (/* ( */ copy metrics TO '{out}') PIVOT trials ON label", "COPY inside"),
        ("WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT 1", "INSERT inside"),
        ("SELECT * FROM query('COPY metrics TO ''{out}''')", "cannot be checked"),
        ("SELECT * FROM system.main.\"QUERY\" ('SELECT 1')", "cannot be checked"),
        ("SELECT * FROM query_table('trials')", "cannot be checked"),
        ("FROM query\u200b('SELECT 1')", "cannot be checked"),  # DuckDB takes invisible characters for blanks
        ("FROM\u00a0query('SELECT 1')", "cannot be checked"),
        ("FROM \ufeffquery\u2060\u2003('SELECT 1')", "cannot be checked"),
        ("WITH a AS (\u200bCOPY\u200b(SELECT 1) TO '{listed}' (FORMAT parquet, USE_TMP_FILE false)) SELECT 1", "COPY"),
        ("WITH a AS (--\u200b\n\u202fINSERT INTO t VALUES (1) RETURNING *) SELECT 1", "INSERT inside"),
        ("SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))", "cannot be checked"),
        (
            "SELECT * FROM destroy_external_resource('query', "
            "'WITH a AS (COPY (SELECT 1) TO ''{listed}'' (FORMAT parquet, USE_TMP_FILE false)) SELECT 1')",
            "cannot be checked",
        ),
        ("SELECT * FROM register_external_resource('a', 'b', MAP{{'a': 'b'}})", "cannot be checked"),
        ("ATTACH '{out}' AS x", "ATTACH is not allowed"),
        ("DETACH memory", "DETACH is not allowed"),
        ("COPY metrics FROM '{foreign}'", "COPY is not allowed"),
        ("IMPORT DATABASE '{folder}'", "not allowed"),
        ("ALTER VIEW trials RENAME TO t", "ALTER is not allowed"),
        ("CREATE SECRET (TYPE s3)", "not allowed"),
        ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN is not allowed"),
        ("SELECT 1; COPY metrics TO '{out}'", "one statement at a time, but got 2"),
        ("INSTALL httpfs", "LOAD is not allowed"),
        ("LOAD httpfs", "LOAD is not allowed"),
        ("SET threads = 1", "SET is not allowed"),
        ("SET VARIABLE expkit_files = ['/etc/hostname']", "SET is not allowed"),
        ("RESET threads", "SET is not allowed"),
        ("USE memory", "SET is not allowed"),
        ("PRAGMA version", "PRAGMA is not allowed"),
        ("CALL pragma_version()", "CALL is not allowed"),
        ("CHECKPOINT", "not allowed"),
        ("VACUUM", "VACUUM is not allowed"),
        ("EXPORT DATABASE '{out}'", "EXPORT is not allowed"),
        ("UPDATE EXTENSIONS", "UPDATE is not allowed"),
        ("SELECT getenv('HOME')", "getenv does not exist"),
        ("SELECT * FROM force_checkpoint()", "Cannot FORCE CHECKPOINT"),
        ("CREATE TABLE t AS SELECT 1", "CREATE is not allowed"),
        ("CREATE TEMP VIEW t AS SELECT 1", "CREATE is not allowed"),
        ("DROP VIEW trials", "DROP is not allowed"),
        ("INSERT INTO metrics SELECT * FROM metrics", "INSERT is not allowed"),
        ("UPDATE metrics SET value = 1", "UPDATE is not allowed"),
        ("DELETE FROM metrics", "DELETE is not allowed"),
        ("PREPARE x AS SELECT 1", "PREPARE is not allowed"),
        ("BEGIN", "TRANSACTION is not allowed"),
        ("SELECT * FROM read_text('{secret}')", "disabled by configuration"),
        ("SELECT * FROM read_blob('{secret}')", "disabled by configuration"),
        ("SELECT * FROM read_csv('{secret}')", "disabled by configuration"),
        ("SELECT * FROM read_json('{secret}')", "disabled by configuration"),
        ("SELECT * FROM read_parquet('{foreign}')", "disabled by configuration"),
        ("SELECT * FROM '{foreign}'", "disabled by configuration"),
        ("SELECT * FROM glob('{folder}/*')", "disabled by configuration"),
        ("SELECT * FROM read_parquet('{folder}/**/*.parquet')", "disabled by configuration"),
        ("SELECT * FROM sniff_csv('{secret}')", "disabled by configuration"),
        ("SELECT * FROM parquet_metadata('{foreign}')", "disabled by configuration"),
        ("SELECT * FROM read_duckdb('{foreign}')", "disabled by configuration"),
        ("SELECT * FROM read_ndjson_objects('{secret}')", "disabled by configuration"),
        ("SELECT * FROM read_csv_auto('{folder}/*')", "disabled by configuration"),
        ("SELECT * FROM '{secret}'", "not"),
        ("SELECT * FROM enable_logging()", "locked"),
        ("SELECT * FROM enable_profiling(save_location := '{out}')", "locked"),
        ("SELECT * FROM outside", "does not exist"),
        ("SELECT 1; SELECT 2", "one statement at a time, but got 2"),
        ("", "one statement at a time, but got none"),
        ("-- nothing", "one statement at a time, but got none"),
        ("SELECT lable FROM trials", 'Candidate bindings: "label"'),
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM trails", "Did you mean"),
        ("SELECT 1 / 'x'", "Could not convert"),
    ],
)
def test_anything_else_is_refused_in_a_sentence_and_nothing_is_written(
    made: Synthetic, con: Connection, tmp_path: Path, sql: str, says: str
) -> None:
    outside = pa.table({"a": [1]})  # a name of the caller's, which SQL must not see
    (tmp_path / "secret").write_text("token")
    pq.write_table(outside, tmp_path / "foreign.parquet")
    listed = metrics_files(made.root)[0]
    places = {"out": tmp_path / "out", "listed": listed, "secret": tmp_path / "secret",
              "foreign": tmp_path / "foreign.parquet", "folder": tmp_path}  # fmt: skip
    sql = sql.format(**{k: str(v).replace("'", "''") for k, v in places.items()})
    before = {path: path.read_bytes() for path in made.root.rglob("*") if path.is_file()}
    with pytest.raises(QueryError) as e:
        con.rows(sql)
    assert says in str(e.value) and "\n" not in str(e.value) and "damaged" not in str(e.value)
    assert e.value.exit_code == 2
    assert con.rows("SELECT count(*) > 0 AS fine FROM metrics") == [{"fine": True}]
    assert {path: path.read_bytes() for path in made.root.rglob("*") if path.is_file()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["foreign.parquet", "secret"]


def test_values_go_in_as_parameters(made: Synthetic) -> None:
    with connect(made.root) as con:
        assert con.rows("SELECT count(*) AS n FROM trials WHERE label = ?", ["'; DROP"]) == [{"n": 0}]
        assert con.rows("SELECT count(*) AS n FROM trials WHERE label = $a", {"a": "ema"}) == [{"n": 2}]
        assert con.table("SELECT id FROM trials").num_rows == 6
        with pytest.raises(QueryError):
            con.rows("SELECT ?", [1, 2])


def test_user_report_63_files_that_cannot_be_read_are_set_aside_by_name(made: Synthetic, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(made.root, root)
    with connect(root) as con:
        whole = con.rows("SELECT id, replicate, count(*) AS n FROM metrics GROUP BY ALL ORDER BY ALL")
        assert con.set_aside == []
    attempt_dir = metrics_files(root)[0].parent
    data = metrics_files(root)[0].read_bytes()
    newer = SCHEMA.with_metadata({"expkit.metrics.schema_version": "3"})
    bad = {
        1: (b"", "0 bytes"),
        2: (b"PAR1", "4 bytes"),
        3: (data[:-5], "no footer"),
        4: (data[: len(data) // 2], "no footer"),
        5: (b"id,name\n1,2\n" * 10, "no parquet file"),
    }
    for part, (content, _) in bad.items():
        (attempt_dir / f"metrics-{part:06d}.parquet").write_bytes(content)
    pq.write_table(pa.table({"a": [1]}), attempt_dir / "metrics-000006.parquet")
    pq.write_table(newer.empty_table(), attempt_dir / "metrics-000007.parquet")
    (attempt_dir / ".metrics-000008.parquet.1-1.tmp").write_bytes(b"being written")
    (attempt_dir / "metrics-000009.parquet").mkdir()
    reasons = {k: says for k, (_, says) in bad.items()}
    reasons |= {6: "not written by expkit", 7: "metrics schema 3", 8: "is missing"}
    with connect(root) as con:
        assert con.rows("SELECT id, replicate, count(*) AS n FROM metrics GROUP BY ALL ORDER BY ALL") == whole
        found = {unreadable.path.name: unreadable.reason for unreadable in con.set_aside}
    assert sorted(found) == [f"metrics-{part:06d}.parquet" for part in range(1, 10)]
    for part, says in reasons.items():
        assert says in found[f"metrics-{part:06d}.parquet"]


def test_a_file_that_cannot_be_opened_is_set_aside(made: Synthetic, tmp_path: Path) -> None:
    shutil.copytree(made.root, tmp_path / "runs")
    loop = metrics_files(tmp_path / "runs")[0].with_name("metrics-000001.parquet")
    loop.symlink_to(loop)
    with connect(tmp_path / "runs") as con:
        assert [u.reason for u in con.set_aside] == ["cannot be read (Too many levels of symbolic links)"]


def test_user_report_62_one_damaged_trial_hides_no_other(made: Synthetic, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(made.root, root)
    store = Store(root)
    no_record, no_status, odd = made.ids["none", 17], made.ids["none", 18], made.ids["ema", 17]
    store.layout.trial_record(no_record).write_text("{")
    store.layout.status(no_status, 0).write_text("[]")
    text = store.layout.status(odd, 0).read_text()
    store.layout.status(odd, 0).write_text(text.replace('"nproc": 1', '"nproc": 99999999999999'))
    events = store.layout.events(store.layout.attempt(made.ids["ema", 18], 0, 1))
    events.write_text(events.read_text() + '{"utc": "2026')
    with connect(root) as con:
        rows = con.rows("SELECT label, status FROM trials ORDER BY ALL")
        assert [tuple(row.values()) for row in rows] == [
            ("ema", "complete"), ("none", "complete"), ("none", "lost"),
        ]  # fmt: skip
        assert con.rows("SELECT count(*) AS n FROM params WHERE key = 'seed'") == [{"n": 3}]
        assert con.rows("SELECT count(*) AS n FROM events") == [{"n": 12}]
        named = [unreadable.path for unreadable in con.set_aside]
    assert sorted(named) == sorted(
        [store.layout.trial_record(no_record), store.layout.status(no_status, 0), store.layout.status(odd, 0), events]
    )


def test_folders_that_are_no_trials_are_passed_over(made: Synthetic, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(made.root, root)
    for name in ("notes", "0123", ".DS_Store", "0123456789ab"):
        (root / "trials" / name).mkdir()
    (root / "trials" / "0123456789ab" / "rx").mkdir()
    (root / "trials" / "file").write_text("")
    with connect(root) as con:
        assert con.rows("SELECT count(*) AS n FROM trials") == [{"n": 6}]
        assert con.set_aside == []


def test_user_report_64_reading_while_four_write(tmp_path: Path) -> None:
    """No error, nothing set aside, and rows never become fewer."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path), name]) for name in "abcd"]
    try:
        rows, loads, deadline = 0, 0, time.monotonic() + 60  # they may be slow to start
        while loads < 25 and time.monotonic() < deadline:
            with connect(tmp_path) as con:
                (answer,) = con.rows("SELECT count(*) AS n FROM metrics")
                assert con.set_aside == []
            assert answer["n"] >= rows
            rows, loads = answer["n"], loads + (answer["n"] > 0)
        assert loads == 25
        assert all(writer.poll() is None for writer in writers)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


def test_opening_many_files_is_quick_and_holds_few_open(tmp_path: Path) -> None:
    """600 attempts in 200 trials; the bar is 0.5 s for 2,000 files, CPU time, twice that here for a busy machine."""
    writer = MetricsWriter(tmp_path, "0" * 12, 0, 1)
    writer.log_many({"a": 1.0, "b": 2.0}, Stamp(1, 0, 0, 0, 0, 0.0, 0.0, 0.0))
    writer.flush()
    (part,) = metrics_files(tmp_path)
    layout = Layout(tmp_path / "runs")
    for trial, replicate in itertools.product(range(200), range(3)):
        attempt_dir = layout.attempt(f"{trial:012x}", replicate, 1)
        attempt_dir.mkdir(parents=True)
        shutil.copy(part, layout.metrics(attempt_dir, 0, 0))
    connect(layout.root).close()  # imports are not what is measured
    started = time.process_time()
    with connect(layout.root) as con:
        opened = time.process_time() - started
        assert con.rows("SELECT count(*) AS n FROM metrics") == [{"n": 1200}]
        assert len(list(Path("/proc/self/fd").iterdir())) < 64
    assert opened < 0.3


def test_tables_behind_the_views_are_neither_listed_nor_suggested(con: Connection) -> None:
    with pytest.raises(QueryError) as e:
        con.rows("SELECT * FROM stitched")
    assert "_stitched" not in str(e.value)
    assert "There are: trials, sweep_trials, " in str(e.value)
    names = {view.name for view in VIEWS if not view.parameters}
    assert {row["name"] for row in con.rows("show tables;")} == names
    assert {row["name"] for row in con.rows("SHOW ALL TABLES")} == names
    assert set(con.stream("SHOW TABLES", {}, lambda rows: rows.read_all())["name"].to_pylist()) == names


def test_for_a_function_that_there_is_not_no_view_is_suggested(con: Connection) -> None:
    with pytest.raises(QueryError) as e:
        con.rows("SELECT getenv('HOME')")
    assert "sweep_trials" not in str(e.value)


def test_folders_beside_sweeps_that_no_sweep_could_be_called_are_passed_over(made: Synthetic, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(made.root, root)
    for name in ("ablate (copy)", ".hidden", "@eaDir"):
        shutil.copytree(root / "sweeps" / "ablate", root / "sweeps" / name)
    with connect(root) as con:
        assert con.rows("SELECT sweep FROM sweeps") == [{"sweep": "ablate"}]
        assert con.set_aside == []
