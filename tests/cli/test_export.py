"""expkit export runs: one wide table that other programs read without knowing ours."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from expkit.store import notes
from tests.cli.conftest import Expkit, as_json
from tests.store.synthetic import Method, Synthetic, make_store

HOSTILE = 'eval/f1-score and x, "y"'


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    root = tmp_path_factory.mktemp("lab") / "runs"
    make_store(root, {"mixup": Method()}, seeds=(40,), sweep="other", metric=HOSTILE)
    made = make_store(root, {"ema": Method()}, seeds=(17, 18))
    notes.note(made.store, made.ids["ema", 17], 'said "so"\nand so')
    return made


@pytest.fixture(autouse=True)
def here(expkit: Expkit, lab: Synthetic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPKIT_RUNS", str(lab.root))


def test_csv_on_stdout_is_read_by_whoever_reads_csv(expkit: Expkit, lab: Synthetic) -> None:
    code, out, err = expkit("export", "runs", "ablate", "--to", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, err, len(rows)) == (0, "", 6)
    assert [row["arm"] for row in rows[:3]] == ["none", "none", "ema"] and rows[0]["note"] == ""
    ema = next(row for row in rows if row["id"] == lab.ids["ema", 17])
    assert ema["algorithms"] == '["ema"]' and ema["note"] == 'said "so"\nand so'
    assert ema["started_utc"].startswith("2026-01-02T03:04:05") and ema["started_utc"].endswith("Z")
    assert float(ema["param.optimizer.sgd.lr"]) == 0.1 and ema["param.optimizer.sgd.nesterov"] == "true"
    assert ema["param.optimizer.sgd.betas"] == "[0.9, 0.99]" and rows[0]["param.algorithms.ema.strength"] == ""
    assert 0.8 < float(ema["last.eval/accuracy"]) <= float(ema["max.eval/accuracy"]) and "config" not in ema
    assert not [name for name in ema if "mixup" in name or "f1-score" in name]


def test_all_trials_and_names_that_are_no_identifiers(expkit: Expkit) -> None:
    rows = list(csv.DictReader(io.StringIO(expkit("export", "runs")[1])))
    assert len(rows) == 9 and len([row for row in rows if row[f"last.{HOSTILE}"]]) == 3


def test_parquet_has_the_same_with_types(expkit: Expkit, tmp_path: Path) -> None:
    file = tmp_path / "out" / "ablate.parquet"
    code, out, err = expkit("export", "runs", "ablate", "-o", str(file))
    assert (code, out) == (0, "") and f"6 rows, {len(pq.read_schema(file).names)} columns: {file}" in err
    table = pq.read_table(file)
    assert table["algorithms"].to_pylist()[2] == ["ema"] and str(table["param.optimizer.sgd.lr"].type) == "double"
    assert str(table["started_utc"].type) == "timestamp[us]"
    assert as_json(expkit("export", "runs", "ablate", "--json"))[2]["algorithms"] == ["ema"]


def test_nothing_is_said_and_still_a_table(expkit: Expkit, tmp_path: Path) -> None:
    code, out, err = expkit("export", "runs", "--runs-dir", str(tmp_path / "none"))
    assert code == 0 and out.startswith('"id","replicate"') and "no trials" in err


def test_a_folder_is_no_file_to_export_to(expkit: Expkit, tmp_path: Path) -> None:
    code, _, err = expkit("export", "runs", "-o", str(tmp_path))
    assert code == 2 and f"{tmp_path} is a folder" in err
