"""What an answer is written as, and where to: every format gives back what was asked for."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from expkit.cli.formats import SUFFIXES
from expkit.cli.params import parameters, value_of
from expkit.errors import UsageError
from tests.cli.conftest import Expkit
from tests.cli.terminal import Terminal
from tests.store.synthetic import Synthetic

SQL = (
    "SELECT * FROM (VALUES ('a,b', 1, 0.5, [1, 2]), (NULL, 2, 'nan'::DOUBLE, NULL), ('t\tu', 3, NULL, [])) "
    "t(s, n, x, l)"
)
TABLE = {"s": ["a,b", None, "t\tu"], "n": [1, 2, 3], "x": [0.5, math.nan, None], "l": [[1, 2], None, []]}
ROWS = [{"s": "a,b", "n": 1, "x": 0.5, "l": [1, 2]}, {"s": None, "n": 2, "x": None, "l": None},
        {"s": "t\tu", "n": 3, "x": None, "l": []}]  # fmt: skip
FIELDS = [["s", "n", "x", "l"], ["a,b", "1", "0.5", "[1, 2]"], ["", "2", "nan", ""], ["t\tu", "3", "", "[]"]]
MARKDOWN = ["| s | n | x | l |", "| --- | ---: | ---: | --- |", r"| a,b | 1 | 0.5 | \[1, 2\] |",
            "| NULL | 2 | nan | NULL |", r"| t\\tu | 3 | NULL | \[\] |"]  # fmt: skip


def lines(text: bytes) -> list[Any]:
    return [json.loads(line) for line in text.decode().splitlines()]


READ: dict[str, Callable[[bytes], Any]] = {
    "csv": lambda data: list(csv.reader(io.StringIO(data.decode(), newline=""))),
    "tsv": lambda data: list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter="\t")),
    "json": json.loads,
    "jsonl": lines,
    "ndjson": lines,
    "md": lambda data: data.decode().splitlines(),
    "txt": lambda data: data.decode().splitlines()[0].split(),
    "parquet": lambda data: pq.read_table(io.BytesIO(data)),
    "arrow": lambda data: pa.ipc.open_file(data).read_all(),
    "arrows": lambda data: pa.ipc.open_stream(data).read_all(),
}
WANTED = {"csv": FIELDS, "tsv": FIELDS, "json": ROWS, "jsonl": ROWS, "ndjson": ROWS, "md": MARKDOWN, "txt": FIELDS[0]}


def same(table: pa.Table) -> bool:
    plain = table.to_pydict()
    floats = plain.pop("x"), TABLE["x"]
    return plain == {k: v for k, v in TABLE.items() if k != "x"} and all(
        a == b or (a != a and b != b) for a, b in zip(*floats, strict=True)
    )


@pytest.mark.parametrize("suffix", [suffix[1:] for suffix in SUFFIXES])
def test_a_file_has_the_format_of_its_suffix(expkit: Expkit, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"ans wer.{suffix.upper() if suffix == 'csv' else suffix}"
    assert expkit("query", SQL, "-o", str(file)) == (0, "", "")
    found = READ[suffix](file.read_bytes())
    assert same(found) if isinstance(found, pa.Table) else WANTED[suffix] == found
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_pipe_gets_binary_formats(made: Synthetic) -> None:
    env = {**os.environ, "EXPKIT_RUNS": str(made.root)}
    command = [sys.executable, "-P", "-m", "expkit.cli", "query", SQL, "-f", "arrow"]
    done = subprocess.run(command, capture_output=True, env=env)
    assert (done.returncode, done.stderr) == (0, b"") and same(READ["arrows"](done.stdout))


def test_the_format_asked_for_wins_over_the_suffix(expkit: Expkit, tmp_path: Path) -> None:
    assert expkit("query", "SELECT 1 AS a", "-o", str(tmp_path / "a.txt"), "-f", "csv")[0] == 0
    assert (tmp_path / "a.txt").read_text() == "a\n1\n"


def test_a_file_that_cannot_be_written_as_asked_is_not_there(expkit: Expkit, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("before")
    for name, sql, says in (
        ("a.xlsx", "SELECT 1", "the suffix '.xlsx' means no format; there are: .txt, .csv,"),
        ("a.parquet", "SELECT INTERVAL 1 DAY AS d", "parquet cannot hold this answer"),
        ("a.parquet", "SELECT lable FROM trials", '"label"'),
        ("b.csv", "SELECT 1; SELECT 2", "one statement at a time"),
        ("c.csv", "SELECT CASE WHEN range > 900000 THEN error('late') ELSE range END AS a FROM range(1000000)", "late"),
    ):
        code, out, err = expkit("query", sql, "-o", str(tmp_path / name))
        assert (code, out) == (2, "") and says in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    assert (tmp_path / "a.parquet").read_text() == "before"


def test_an_answer_without_rows_is_said_and_has_its_columns(expkit: Expkit, tmp_path: Path) -> None:
    sql = "SELECT id, seed FROM trials WHERE false"
    assert expkit("query", sql, "-f", "csv") == (0, "id,seed\n", "no rows\n")
    assert expkit("query", sql, "--json") == (0, "[]\n", "no rows\n")
    assert expkit("query", sql, "-f", "jsonl") == (0, "", "no rows\n")
    assert expkit("query", sql, "-o", str(tmp_path / "a.parquet"))[0] == 0
    assert pq.read_schema(tmp_path / "a.parquet").names == ["id", "seed"]


def test_columns_of_one_name_are_told_apart(expkit: Expkit) -> None:
    assert json.loads(expkit("query", "SELECT 1 AS a, 2 AS a, 3 AS a_1", "--json")[1]) == [
        {"a": 1, "a_1": 2, "a_1_1": 3}
    ]


def test_values_by_name(expkit: Expkit) -> None:
    sql = "SELECT DISTINCT label FROM trials WHERE label = $arm AND seed >= $seed"
    assert expkit("query", sql, "-p", "arm=ema", "--param", "seed=17", "-f", "csv") == (0, "label\nema\n", "")
    code, _, err = expkit("query", sql, "-p", "arm=ema")
    assert code == 2 and "seed" in err
    code, _, err = expkit("query", sql, "-p", "arm=ema", "-p", "seed=17", "-p", "other=1")
    assert code == 2 and "other" in err
    hostile = "'; DROP VIEW trials; --"
    assert (
        expkit("query", "SELECT $a AS a", "-p", f"a={hostile}", "-f", "jsonl")[1] == json.dumps({"a": hostile}) + "\n"
    )
    assert expkit("query", "SELECT count(*) AS n FROM curve($m)", "-p", "m=eval/accuracy", "-f", "csv")[0] == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17", 17), ("-3", -3), ("0", 0), ("0.80", 0.8), ("1e-3", 0.001), (".5", 0.5), ("ema", "ema"), ("", ""),
        ("123456789012", "123456789012"), ("67217e151234", "67217e151234"), ("007", "007"), ("1e999", "1e999"),
        ('"17"', "17"), ('"', '"'), ("nan", "nan"), ("a=b", "a=b"), ("1_000", "1_000"),
    ],
)  # fmt: skip
def test_a_value_is_a_number_where_it_reads_as_one(text: str, value: object) -> None:
    assert parameters([f"x={text}"]) == {"x": value}
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize("given", [["x"], ["=1"], ["1a=2"], ["a b=1"], ["x=1", "$x=2"]])
def test_what_is_no_parameter_is_said(given: list[str]) -> None:
    with pytest.raises(UsageError):
        parameters(given)


def test_a_terminal_gets_no_binary_format(made: Synthetic) -> None:
    with Terminal("query", "SELECT 1", "-f", "parquet", env={"EXPKIT_RUNS": str(made.root)}) as terminal:
        assert terminal.end() == 2
        assert "parquet is no text for a terminal; name a file with -o, or pipe it" in terminal.shown


def test_a_reader_that_leaves_is_no_error(made: Synthetic) -> None:
    command = f"{sys.executable} -P -m expkit.cli query 'SELECT range FROM range(5000000)' -f csv | head -2"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, env={**os.environ, "EXPKIT_RUNS": str(made.root)}
    )
    assert (done.stdout, done.stderr) == ("range\n0\n", "")
