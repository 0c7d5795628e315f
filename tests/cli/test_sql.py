"""expkit sql: in a real terminal with history, completion and Ctrl-C, and with a script on stdin."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from expkit.cli.shell import Leave, Shell
from expkit.cli.statements import is_complete, open_string, split
from expkit.cli.suggestions import suggest
from expkit.cli.vocabulary import StoreVocabulary
from expkit.errors import QueryError, UsageError
from expkit.store.query import connect
from tests.cli.terminal import Terminal
from tests.store.synthetic import Synthetic

COMPLETE = [
    "SELECT 1;", "SELECT ';';", "SELECT 1; -- done", "SELECT $x$;$x$;", "", "-- nothing\n", "SELECT 1\n\n",
    "SELECT 5 - 3 / 2 - $x;",
]  # fmt: skip
OPEN = [
    "SELECT 1", "SELECT ';", "SELECT 'it''s;", "SELECT 1 -- ;", "SELECT 1 /* ; */", "SELECT 1; /* not yet",
    'SELECT 1 AS "a;b"', "SELECT $$a;", "SELECT '\n\n", "SELECT 1; SELECT 2",
]  # fmt: skip


@pytest.mark.parametrize(("text", "complete"), [(t, True) for t in COMPLETE] + [(t, False) for t in OPEN])
def test_a_statement_is_complete_at_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) == complete


def test_statements_are_split_outside_of_strings_and_comments() -> None:
    assert split("SELECT ';'; -- one;\n\n SELECT \"a;b\" /* ; */;; -- two") == [
        "SELECT ';'", '-- one;\n\n SELECT "a;b" /* ; */',
    ]  # fmt: skip
    assert open_string("SELECT 'a' || 'it''s") == 14 and open_string("SELECT 'a'") is None


@pytest.fixture(scope="module")
def vocabulary(made: Synthetic) -> StoreVocabulary:
    return StoreVocabulary(connect(made.root))


@pytest.mark.parametrize(
    ("before", "after", "typed", "among", "not_among"),
    [
        ("SELECT * FROM tri", "", "tri", {"trials"}, {"train_s"}),
        ("SELECT * FROM trials JOIN ", "", "", {"metrics", "time_to_target(", "final"}, {"label"}),
        ("from trials, sweep", "", "sweep", {"sweeps", "sweep_trials"}, set()),
        ("SELECT la", " FROM trials", "la", {"label"}, {"min_batch"}),
        ("SELECT ", " FROM final", "", {"last", "min_batch"}, {"label", "payload"}),
        ("SELECT la", "", "la", {"label", "last"}, set()),
        ("SELECT m.va", " FROM metrics m JOIN params p USING (id)", "va", {"value"}, {"value_num"}),
        ("SELECT p.va", " FROM metrics AS m JOIN params AS p USING (id)", "va", {"value_num"}, {"value"}),
        ("SELECT s.sp", " FROM speedups('a', 'b', 1) s", "sp", {"speedup"}, set()),
        ("SELECT arg_m", " FROM final", "arg_m", {"arg_max", "arg_min"}, {"max"}),
        ("SEL", "", "SEL", {"SELECT"}, {"select"}),
        ("sel", "", "sel", {"select"}, {"SELECT"}),
        ("SELECT * FROM time_to_target('eval/acc", "", "eval/acc", {"eval/accuracy"}, {"eval/cross_entropy"}),
        ("SELECT * FROM curve('", "", "", {"eval/accuracy", "train/loss", "lr"}, {"ablate"}),
        ("SELECT * FROM speedups('", "", "", {"ablate"}, {"lr"}),
        ("SELECT * FROM speedups('ablate', '", "", "", {"lr"}, {"ablate"}),
        ("SELECT * FROM aligned('lr', '", "", "", {"train_s", "batch"}, {"lr"}),
        ("SELECT * FROM time_to_target('lr', 1, ", "", "", {"rule := ", "clock := "}, set()),
        ("SELECT * FROM time_to_target('lr', 1, rule := '", "", "", {"to_end", "median3"}, {"lr"}),
        ("SELECT * FROM metrics WHERE name = '", "", "", {"lr", "train/loss"}, {"ema"}),
        ("SELECT * FROM metrics WHERE name IN ('lr', 'train", "", "train", {"train/loss"}, {"lr"}),
        ("SELECT * FROM trials WHERE label <> '", "", "", {"ema", "none"}, {"lr"}),
        ("SELECT * FROM algorithms WHERE name = '", "", "", {"ema"}, {"lr"}),
        ("SELECT * FROM trials WHERE status = '", "", "", {"complete", "failed", "lost"}, {"ema"}),
        ("SELECT * FROM params WHERE key LIKE 'opt", "", "opt", {"optimizer.sgd.lr"}, {"seed"}),
        ("SELECT * FROM trials WHERE seed = '", "", "", {"17"}, set()),
        ("SELECT 'it''s' AS a, lab", " FROM trials", "lab", {"label"}, set()),
        ("SELECT 1 -- it's\n FROM tri", "", "tri", {"trials"}, set()),
    ],
)  # fmt: skip
def test_what_is_suggested(
    vocabulary: StoreVocabulary, before: str, after: str, typed: str, among: set[str], not_among: set[str]
) -> None:
    word, found = suggest(before, after, vocabulary)
    texts = {each.text for each in found}
    assert word == typed and among <= texts and not not_among & texts


def test_every_suggested_column_says_what_it_is(vocabulary: StoreVocabulary) -> None:
    _, found = suggest("SELECT ", " FROM trials", vocabulary)
    (label,) = (each for each in found if each.text == "label")
    assert label.doc == "trials, VARCHAR: The arm: its methods with their levels, then its parameters."


def shell(made: Synthetic) -> Shell:
    return Shell(connect(made.root))


def test_commands(made: Synthetic, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sitting = shell(made)
    sitting.do(".param arm=ema")
    sitting.do(".format csv")
    sitting.do("SELECT count(*) AS n FROM trials WHERE label = $arm; SELECT 2 AS two;")
    sitting.do(f".output {tmp_path / 'a.parquet'}")
    sitting.do("SELECT 1 AS one")
    sitting.do(".param")
    assert capsys.readouterr().out == "n\n4\ntwo\n2\n$arm = 'ema'\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]
    sitting.do("help;")
    sitting.do(".views")
    sitting.do(".describe speedups")
    said = capsys.readouterr().out
    assert ".output" in said and "time_to_target(metric, target" in said and "Baseline time over arm time" in said
    sitting.do(".metrics")
    assert "lr,208" in capsys.readouterr().out
    for leave in (".quit", "exit", "quit;"):
        with pytest.raises(Leave):
            sitting.do(leave)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (".describ trials", "did you mean '.describe'"), (".describe trails", "did you mean 'trials'"),
        (".format xml", "unknown format 'xml'"), (".format parquet", ".output FILE"), (".rows none", "at least 1"),
        (".output a.xml", "means no format"), (".output", "name a file"), (".param x", "NAME=VALUE"),
    ],
)  # fmt: skip
def test_a_command_that_is_none_is_said(made: Synthetic, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace(".", r"\.")):
        shell(made).do(text)


def test_nothing_can_be_changed_here_either(made: Synthetic) -> None:
    for text in ("COPY trials TO 'a.csv';", "SET threads = 1;", "SELECT 1; DROP VIEW trials;"):
        with pytest.raises(QueryError, match="read-only"):
            shell(made).do(text)


def test_reload_shows_what_came_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.store.synthetic import make_store

    sitting = Shell(connect(tmp_path), "csv")
    sitting.do("SELECT count(*) AS n FROM trials;")
    make_store(tmp_path, {}, seeds=(17,), repeats=False)
    sitting.do("SELECT count(*) AS n FROM trials;")
    sitting.do(".reload")
    sitting.do("SELECT count(*) AS n FROM trials;")
    assert capsys.readouterr().out == "n\n0\nn\n0\nn\n1\n"


def test_a_script_on_stdin_ends_at_its_first_error(made: Synthetic, tmp_path: Path) -> None:
    script = (
        ".format jsonl\nSELECT 1\n  AS one; -- first\n.param seed=17\n"
        "SELECT count(*) AS n\nFROM trials\nWHERE seed = $seed"
    )
    command = [sys.executable, "-P", "-m", "expkit.cli", "sql"]
    env = {**os.environ, "EXPKIT_RUNS": str(made.root)}
    done = subprocess.run(command, input=script, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"one": 1}\n{"n": 3}\n', "")


def test_a_script_that_fails(made: Synthetic, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(QueryError, match="lable"):
        shell(made).script(io.StringIO("SELECT 1 AS one;\nSELECT lable FROM trials;\nSELECT 3 AS three;\n"))
    out = capsys.readouterr().out
    assert "one" in out and "three" not in out


def test_in_a_terminal(made: Synthetic, tmp_path: Path) -> None:
    env = {"EXPKIT_RUNS": str(made.root), "EXPKIT_HISTORY": str(tmp_path / "state" / "history")}
    with Terminal("sql", env=env) as terminal:
        terminal.wait_for("Ctrl-D leaves.")
        terminal.wait_for("expkit>")
        terminal.type("SELECT count(*) AS n FROM time_to_t\t")
        terminal.wait_for("arget(")  # only what is new is drawn
        terminal.type("'eval/acc\t")
        terminal.wait_for("uracy")
        terminal.type("', 0.8)\r")  # not complete: a line more
        terminal.wait_for("...>")
        terminal.type("WHERE hit;\r")
        assert "│ 14 │" in terminal.wait_for("1 row in ")
        terminal.wait_for("expkit>")
        terminal.type("SELECT lable FROM trials;\r")
        assert "error: " in terminal.wait_for("label")
        terminal.wait_for("expkit>")
        terminal.type(".format csv\r")
        terminal.wait_for("expkit>")
        terminal.type("SELECT range FROM range(1000000000000);\r")
        terminal.wait_for("\n17\r\n")  # at work
        terminal.type("\x03")
        terminal.wait_for("interrupted")
        terminal.wait_for("expkit>")
        terminal.type(".format table\r")
        terminal.wait_for("expkit>")
        terminal.type("SELECT nothing")
        terminal.wait_for("nothing")
        terminal.type("\x03")  # takes the line back
        terminal.wait_for("interrupted")
        terminal.wait_for("expkit>")
        terminal.type("SELECT range FROM range(300);\r")
        assert "│    99 │" in terminal.wait_for("the first 100 rows (.rows shows more), found in")
        terminal.wait_for("expkit>")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert (tmp_path / "state" / "history").stat().st_mode & 0o777 == 0o600
    with Terminal("sql", env=env) as terminal:
        terminal.wait_for("expkit>")
        terminal.type("\x1b[A")  # up
        terminal.wait_for("SELECT range FROM range(300);")
        terminal.type("\x03")
        terminal.wait_for("expkit>")
        terminal.type(".quit\r")
        assert terminal.end() == 0
