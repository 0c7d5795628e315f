"""expkit query: data on stdout, the rest on stderr, and exit codes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from expkit.cli import main
from expkit.store.views import VIEWS
from tests.store.synthetic import Method, Synthetic, make_store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    return make_store(tmp_path_factory.mktemp("runs"), {"ema": Method()}, seeds=(17, 18))


class Expkit:
    """Runs the command line in this process."""

    def __init__(self, made: Synthetic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.made, self.monkeypatch, self.capsys = made, monkeypatch, capsys

    def __call__(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["expkit", "query", *arguments])
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        self.monkeypatch.setenv("EXPKIT_RUNS", str(self.made.root))
        with pytest.raises(SystemExit) as e:
            main()
        out, err = self.capsys.readouterr()
        return int(e.value.code or 0), out, err


@pytest.fixture
def expkit(made: Synthetic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Expkit:
    return Expkit(made, monkeypatch, capsys)


def test_a_table_in_a_pipe_is_plain_text(expkit: Expkit) -> None:
    code, out, err = expkit("SELECT label, seed, cause FROM trials WHERE label = 'ema' ORDER BY seed")
    assert (code, err) == (0, "")
    assert out == "label  seed  cause\n-----  ----  -----\nema      17  NULL\nema      18  NULL\n"


def test_json_and_csv(expkit: Expkit) -> None:
    sql = "SELECT label, 'nan'::DOUBLE AS x, algorithms FROM trials WHERE size = 1 AND seed = 17"
    assert json.loads(expkit(sql, "--json")[1]) == [{"label": "ema", "x": None, "algorithms": ["ema"]}]
    assert expkit(sql, "--format", "json")[1] == expkit("--json", sql)[1]
    assert list(csv.reader(io.StringIO(expkit(sql, "-f", "csv")[1]))) == [
        ["label", "x", "algorithms"],
        ["ema", "nan", '["ema"]'],
    ]


def test_the_question_may_come_from_stdin_or_from_a_file(expkit: Expkit, tmp_path: Path) -> None:
    answer = ('[\n  {\n    "one": 1\n  }\n]\n', "")
    assert expkit("-", "--json", stdin="SELECT 1 AS one\n")[1:] == answer
    assert expkit("--json", stdin="SELECT 1 AS one;\n-- and no more\n")[1:] == answer
    file = tmp_path / "a question.sql"
    file.write_text("\ufeff-- a file may have a mark at its beginning\nSELECT 1\n  AS one;\n", encoding="utf-8")
    assert expkit(str(file.rename(tmp_path / "question.sql")), "--json")[1:] == answer
    assert expkit("nosuch.sql") == (2, "", "error: there is no file nosuch.sql\n")
    (tmp_path / "latin.sql").write_bytes("SELECT 'ä'".encode("latin-1"))
    assert "no UTF-8" in expkit(str(tmp_path / "latin.sql"))[2]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("COPY trials TO 'x.csv'", "read-only"),
        ("SELECT lable FROM trials", '"label"'),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELEC", "syntax error"),
    ],
)
def test_a_question_that_cannot_be_answered_is_exit_2_in_one_line(expkit: Expkit, sql: str, says: str) -> None:
    code, out, err = expkit(sql)
    assert code == 2 and out == "" and says in err and err.count("\n") == 1 and err.startswith("error: ")


def test_nothing_to_ask_is_exit_2(expkit: Expkit) -> None:
    code, out, err = expkit()
    assert code == 2 and out == "" and "--schema" in err


def test_a_folder_without_results_has_empty_views_and_says_so(expkit: Expkit, tmp_path: Path) -> None:
    code, out, err = expkit("SELECT label FROM trials", "--runs-dir", str(tmp_path / "none"), "--json")
    assert (code, json.loads(out)) == (0, []) and "no results" in err
    assert not (tmp_path / "none").exists()


def test_files_set_aside_are_named_once_on_stderr(expkit: Expkit, tmp_path: Path) -> None:
    made = make_store(tmp_path, {}, seeds=(17,), repeats=False)
    made.store.layout.trial_record(made.ids["none", 17]).write_text("{")
    sql = "SELECT count(*) AS n FROM trials, params"
    code, out, err = expkit(sql, "--runs-dir", str(tmp_path), "--json")
    assert code == 0 and json.loads(out) == [{"n": 0}]
    assert err.count("trial.json") == 1 and err.startswith("set aside: ")


def test_the_schema_shows_every_view_with_an_example_that_runs(expkit: Expkit) -> None:
    views = json.loads(expkit("--schema", "--json")[1])
    text = expkit("--schema")[1]
    assert [view["name"].partition("(")[0] for view in views] == [view.name for view in VIEWS]
    for view in views:
        assert view["example"] in text and view["doc"] in text
        assert all(column["type"] and column["doc"] for column in view["columns"])
        assert expkit(view["example"])[0] == 0


def test_the_page_of_the_views_is_what_the_schema_says(expkit: Expkit) -> None:
    """expkit query --schema -f markdown > docs/views.md"""
    page = (Path(__file__).parents[2] / "docs" / "views.md").read_text()
    assert expkit("--schema", "-f", "markdown")[1] == page
    assert expkit("--schema", "-f", "parquet")[0] == 2


def test_values_of_a_hostile_run_do_not_reach_the_terminal(expkit: Expkit) -> None:
    _, out, _ = expkit("SELECT 'a' || chr(27) || '[31m' AS x")
    assert "\x1b" not in out and "\\x1b[31m" in out


HELP = """
import sys
from expkit.cli import main
sys.argv = ["expkit", "query", "-h"]
try:
    main()
except SystemExit:
    print(sorted({"torch", "duckdb", "pyarrow", "numpy", "rich", "yaml"} & set(sys.modules)))
"""


def test_help_loads_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n") and "Example: expkit query" in done.stdout


def test_a_count_of_nothing_says_that_the_folder_is_not_there(expkit: Expkit, tmp_path: Path) -> None:
    """`--runs-dir runz` counted 0 trials, and said nothing."""
    code, out, err = expkit("SELECT count(*) AS n FROM trials", "--json", "--runs-dir", str(tmp_path / "runz"))
    assert (code, json.loads(out)) == (0, [{"n": 0}]) and f"there are no results in {tmp_path / 'runz'} yet" in err
    (tmp_path / "runs.csv").write_text("")
    code, out, err = expkit("SELECT 1", "--runs-dir", str(tmp_path / "runs.csv"))
    assert (code, out) == (2, "") and "runs.csv is a file" in err


def test_an_argument_that_is_no_text_is_said_to_be_none(expkit: Expkit) -> None:
    assert expkit("SELECT '\udcff'")[0] == 2
    code, out, err = expkit("SELECT $x", "-p", "x=\udcff")
    assert (code, out) == (2, "") and err.count("\n") == 1 and "Traceback" not in err
