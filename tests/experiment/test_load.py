"""expkit.load: a store from Python and notebooks, also while others write to it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import expkit
from expkit.errors import EnvironmentFault, QueryError, UsageError
from expkit.experiment.answer import MOST_ROWS, Answer
from expkit.experiment.load import Experiment
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.records import Status
from tests.store.synthetic import UTC, Cell, Method, Synthetic, make_store

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    root = tmp_path_factory.mktemp("face") / "runs"

    def change(cell: Cell) -> Cell:
        return replace(cell, state="pending") if (cell.arm, cell.seed) == ("ema", 18) else cell

    made = make_store(root, {"ema": Method()}, seeds=(17, 18), change=change)
    make_store(root, {"mixup": Method()}, seeds=(19,), sweep="other", metric="eval/loss")
    return made


@pytest.fixture
def ex(made: Synthetic) -> Experiment:
    return expkit.load(made.root, "ablate")


def test_a_question_in_sql_comes_as_pandas_polars_and_arrow(ex: Experiment) -> None:
    answer = ex.sql("SELECT label, seed, train_s FROM trials WHERE seed = ? ORDER BY label, replicate", [17])
    frame, polar, table = answer.df(), answer.pl(), answer.arrow()
    assert isinstance(frame, pd.DataFrame) and isinstance(polar, pl.DataFrame) and isinstance(table, pa.Table)
    assert list(frame["label"]) == polar["label"].to_list() == table["label"].to_pylist() == ["ema", "none", "none"]
    assert frame["train_s"].dtype == "float64" and len(answer) == 3
    assert answer.rows() == list(answer) == table.to_pylist()
    assert pl.DataFrame(answer).equals(polar)  # what reads Arrow streams needs to know nothing of us


def test_trials_of_a_sweep_stand_in_run_order_with_what_was_not_started(ex: Experiment, made: Synthetic) -> None:
    rows = ex.trials.rows()
    assert [(row["arm"], row["role"], row["block"], row["status"]) for row in rows] == [
        ("none", "baseline", 0, "complete"), ("none", "repeat", 0, "complete"), ("ema", "arm", 0, "complete"),
        ("none", "baseline", 1, "complete"), ("none", "repeat", 1, "complete"), ("ema", "arm", 1, "pending"),
    ]  # fmt: skip
    assert {row["id"] for row in rows} == set(made.ids.values())
    with expkit.load(made.root) as whole:
        assert len(whole.trials) == 5 + 3
        assert whole.trials.columns == list(whole.sql("SELECT * FROM trials").columns)


def test_metrics_and_curves_are_those_of_the_sweep(ex: Experiment, made: Synthetic) -> None:
    assert {row["name"] for row in ex.metrics("eval/accuracy", "lr")} == {"eval/accuracy", "lr"}
    assert len(ex.metrics()) > len(ex.metrics("eval/accuracy")) == len(ex.curve()) == 5 * 16
    assert set(ex.curve("eval/accuracy").columns) >= {"label", "seed", "batch", "value"}
    assert len(expkit.load(made.root).metrics("eval/loss")) == 3 * 16 and len(ex.metrics("lr")) == 5 * 16
    with pytest.raises(UsageError, match="did you mean 'eval/accuracy'"):
        ex.metrics("eval/acuracy")
    with pytest.raises(UsageError, match="which metric"):
        expkit.load(made.root).curve()


def test_one_trial_by_what_a_person_types(ex: Experiment, made: Synthetic) -> None:
    id12 = made.ids["none", 17]
    trial = ex[id12[:6]]
    assert (trial.id, trial.label, trial.seed, trial.replicate) == (id12, "none", 17, None)
    assert trial.config["optimizer"]["sgd"]["lr"] == 0.1
    assert [row["replicate"] for row in trial.trials] == [0, 1] and len(trial.df()) == len(trial.pl()) == 2
    assert len(ex[f"{id12}/r1"].curve("eval/accuracy")) == 16 and len(trial.metrics("lr", "eval/accuracy")) == 64
    assert [row["kind"] for row in ex[f"{id12}/r0"].events()] == ["start", "end"]
    assert ex["last"].id != ex["last~2"].id
    with pytest.raises(UsageError, match="no trial 'zzz'"):
        ex["zzz"]


def test_what_is_not_there_is_said_in_a_sentence(made: Synthetic, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no runs folder"):
        expkit.load(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="did you mean 'ablate'"):
        expkit.load(made.root, "ablat")
    with pytest.raises(QueryError, match="read-only"):
        expkit.load(made.root).sql("DROP VIEW trials")
    (tmp_path / "runs").mkdir()
    assert len(expkit.load(tmp_path / "runs").trials) == len(expkit.load(tmp_path / "runs").metrics("x")) == 0


HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m&\u202e"


def test_a_notebook_shows_tables_in_which_nothing_is_markup(ex: Experiment) -> None:
    page = ex.sql(
        'SELECT $text AS "<script>a", 1.23456789::DOUBLE AS x, NULL AS y FROM range(50)', {"text": HOSTILE}
    )._repr_html_()
    assert "<img" not in page and "<script" not in page and "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "\x1b" not in page and "\u202e" not in page
    assert page.count("<tr>") == 1 + MOST_ROWS and "50 rows" in page and "1.23457" in page and "NULL" in page
    assert "<table>" in ex._repr_html_() and "complete" in ex._repr_html_() and "<table>" in ex["last"]._repr_html_()


def test_what_the_prompt_shows_is_short_and_obeys_no_text(ex: Experiment) -> None:
    shown = repr(ex.sql("SELECT $text AS x, repeat('a', 500) AS y", {"text": HOSTILE}))
    assert "\x1b" not in shown and max(map(len, shown.splitlines())) < 200 and shown.endswith("[1 rows x 2 columns]")
    assert repr(ex).endswith("sweep ablate: 5 complete, 1 pending>")
    assert "config" in repr(ex["last"])


def test_pandas_and_polars_are_optional_and_missed_in_one_sentence(tmp_path: Path) -> None:
    code = (
        "import sys, pyarrow as pa; from expkit.experiment.answer import Answer\n"
        "a = Answer(pa.table({'x': [1]}))\n"
        "sys.modules['pandas'] = sys.modules['polars'] = None\n"
        "for ask in (a.df, a.pl):\n"
        "    try: ask()\n"
        "    except Exception as e: print(type(e).__name__, e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    pandas, polars = done.stdout.splitlines()
    assert pandas == f"{EnvironmentFault.__name__} .df() needs pandas: pip install pandas; .arrow() does without"
    assert "pip install polars" in polars


def test_import_expkit_loads_nothing_heavy_and_load_loads_no_torch(made: Synthetic) -> None:
    code = (
        "import sys, json, expkit; before = set(sys.modules); expkit.load(sys.argv[1]).trials\n"
        "print(json.dumps([sorted(before), sorted(sys.modules)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(made.root)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    before, after = json.loads(done.stdout)
    assert not {"duckdb", "pyarrow", "numpy", "pandas", "yaml", "typer", "expkit.experiment.load"} & set(before)
    assert not {"torch", "polars", "scipy"} & set(after)  # pyarrow itself loads pandas where it is installed


def test_what_ended_after_it_was_loaded_stands_as_running_without_its_last_rows(tmp_path: Path) -> None:
    made = make_store(tmp_path, {}, seeds=(17,), repeats=False, change=lambda cell: replace(cell, state="running"))
    id12 = made.ids["none", 17]
    layout, seen = made.store.layout, expkit.load(tmp_path)
    writer = MetricsWriter(layout.attempt(id12, 0, 1), id12, 0, 1)
    writer.log_many({"eval/accuracy": 0.9}, Stamp(128, 0, 0, 0, 0, 1.0, 1.0, 1.0))
    writer.close()
    made.store.write_status(id12, 0, Status("complete", 1, ended_utc=UTC, clocks={"train_s": 1.0}))
    then, now = seen.trials.rows()[0], expkit.load(tmp_path).trials.rows()[0]
    assert (then["status"], then["ended_utc"], then["train_s"]) == ("running", None, None)
    assert (now["status"], now["train_s"]) == ("complete", 1.0)
    assert len(expkit.load(tmp_path).curve("eval/accuracy")) == len(seen.curve("eval/accuracy")) + 1


def test_an_answer_without_rows_has_its_columns() -> None:
    empty = Answer(pa.table({"a": pa.array([], pa.int64())}))
    assert len(empty) == 0 and empty.columns == ["a"] and "0 rows" in empty._repr_html_() and repr(empty)
