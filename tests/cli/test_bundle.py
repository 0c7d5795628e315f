"""expkit report --bundle and expkit load: a sweep as one zip, opened anywhere, added to another runs folder."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

import expkit as package
from expkit.errors import UsageError
from expkit.store import notes
from expkit.store.query import connect
from expkit.store.store import Store
from tests.cli.conftest import Expkit, as_json
from tests.store.synthetic import Cell, Method, Synthetic, make_store


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    """Two sweeps, compacted, then one trial more whose files still lie in its folder; provenance, a note, a log."""
    root = tmp_path_factory.mktemp("home") / "runs"
    done = {"ema": Method(0.8, 0.01)}

    def later(cell: Cell) -> Cell:
        return replace(cell, state="pending") if (cell.arm, cell.seed) == ("ema", 18) else cell

    made = make_store(root, done, seeds=(17, 18), num_batches=32, change=later)
    make_store(root, done, seeds=(40,), num_batches=32, sweep="other")
    from expkit.store.compact import compact

    assert compact(Store(root)).files == 1
    make_store(root, done, seeds=(18,), num_batches=32, sweep="scratch", change=lambda c: c if c.arm == "ema" else
               replace(c, state="pending"))  # fmt: skip
    id12 = made.ids["none", 17]
    made.store.write_provenance(id12, 0, {"git": {"sha": "abc"}})
    made.store.write_provenance(made.store.read_plan("other")[0].id, 0, {"git": {"sha": "elsewhere"}})
    notes.note(made.store, id12, "the one in the paper")
    attempt = made.store.layout.attempt(id12, 0, 1)
    made.store.layout.log(attempt, 0).write_text("token=abc")
    (attempt / "checkpoints").mkdir()
    (attempt / "checkpoints" / "x.safetensors").write_bytes(b"weights")
    return made


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def bundle(home: Synthetic, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from typer.testing import CliRunner

    from expkit.cli import app

    folder = tmp_path_factory.mktemp("out")
    done = CliRunner().invoke(app, ["report", "ablate", "--bundle", "-o", str(folder), "--runs-dir", str(home.root)])
    assert done.exit_code == 0 and f"bundle: {folder / 'ablate.zip'}" in done.stderr
    return folder / "ablate.zip"


ROWS = "SELECT * FROM metrics ORDER BY ALL"


def test_a_bundle_is_the_sweep_and_its_report_and_nothing_else(home: Synthetic, bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as packed:
        names = set(packed.namelist())
        head = json.loads(packed.read("bundle.json"))
        texts = b"".join(packed.read(name) for name in names if not name.endswith(".parquet"))
    assert {"report/index.html", "report/report.md", "report/summary.json"} <= names
    assert {f"runs/trials/{id12}/recipe.yaml" for id12 in home.ids.values()} <= names
    assert set(head["files"]) == names - {"bundle.json"} and head["sweep"] == "ablate"
    assert not [name for name in names if name.endswith((".log", ".safetensors")) or "other" in name]
    assert b"the one in the paper" in texts and b'"abc"' in texts and b"elsewhere" not in texts


def test_a_bundle_has_every_row_of_its_sweep_wherever_it_lay(home: Synthetic, bundle: Path) -> None:
    with package.load(home.root, "ablate") as here, package.load(bundle) as there:
        assert there.sweep == "ablate" and there.set_aside == []
        assert there.trials.rows() == here.trials.rows() and len(there.trials) == 6
        mine = "(SELECT id, replicate FROM sweep_trials WHERE sweep = 'ablate')"
        expected = here.sql(f"SELECT * FROM metrics SEMI JOIN {mine} USING (id, replicate) ORDER BY ALL").rows()
        assert there.sql(ROWS).rows() == expected and len(expected) == 6 * (2 * 4 + 2 * 16)
        assert there[home.ids["none", 17]].provenance["git"] == {"sha": "abc"}


def test_every_command_that_reads_takes_a_bundle(home: Synthetic, bundle: Path, expkit: Expkit, tmp_path: Path) -> None:
    at = ("--runs-dir", str(bundle))
    assert as_json(expkit("query", "SELECT count(*) AS n FROM trials", "--json", *at)) == [{"n": 6}]
    assert "6 replicates: 6 complete" in expkit("status", "ablate", *at)[1]
    code, out, _ = expkit("report", "ablate", *at)
    assert code == 0 and (tmp_path / "ablate-report" / "index.html").exists() and "verdict" in out.lower()
    told = as_json(expkit("load", str(bundle), "--json"))
    assert told["replicates"] == {"complete": 6} and Path(told["report"]).exists() and told["kept"] == []
    assert "ablate: 6 replicates: 6 complete" in expkit("load", str(bundle))[1]


def test_a_bundle_is_read_where_it_lies_elsewhere(bundle: Path) -> None:
    fsspec.filesystem("memory").pipe_file("/shelf/ablate.zip", bundle.read_bytes())
    assert len(package.load("memory://shelf/ablate.zip").trials) == 6
    with pytest.raises(UsageError, match="there is no memory://shelf/nothing"):
        package.load("memory://shelf/nothing.zip")


def test_a_bundle_joins_a_runs_folder_and_what_is_there_stays(bundle: Path, expkit: Expkit, home: Synthetic) -> None:
    assert expkit("load", str(bundle), "--into", "mine")[0] == 0
    with connect(Path("mine")) as mine, package.load(bundle) as there:
        assert mine.rows(ROWS) == there.sql(ROWS).rows() and mine.set_aside == []
    store, id12 = Store(Path("mine")), home.ids["ema", 17]
    status = store.layout.status(id12, 0)
    status.write_text(status.read_text().replace("c0dec0dec0de", "0123456789ab"))
    assert f"keeps its own results of {id12} r0" in expkit("load", str(bundle), "--into", "mine")[2]
    assert store.read_status(id12, 0).code_sha == "0123456789ab"  # type: ignore[union-attr]
    store.layout.sweep_yaml("ablate").write_text("version: 1\nname: another\n")
    assert "another sweep 'ablate'" in expkit("load", str(bundle), "--into", "mine")[2]


def rewritten(bundle: Path, target: Path, change: dict[str, bytes | None]) -> Path:
    """The bundle with some of its files replaced, added or, for None, left out."""
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if (data := change.pop(name, old.read(name))) is not None:
                new.writestr(name, data)
        for name, added in change.items():
            new.writestr(name, added or b"")
    return target


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"report/report.md": b"other"}, "report/report.md is not as it was packed"),
        ({"report/report.md": None}, "report/report.md is not in it"),
        ({"../../escaped": b"x"}, "which no bundle of expkit does"),
        ({"/etc/escaped": b"x"}, "which no bundle of expkit does"),
        ({"report/index.html": b"0" * 5_000_000}, "5000000 bytes packed into"),
        ({"bundle.json": b"{}"}, "is no bundle of expkit"),
        ({"bundle.json": b'{"schema_version": 99, "files": {}, "sweep": "a", "made_utc": "", "expkit": ""}'}, "99"),
        ({"bundle.json": b'{"schema_version": 1, "files": {}, "sweep": "../a", "made_utc": "", "expkit": ""}'}, "name"),
    ],
)
def test_a_bundle_that_was_tampered_with_is_refused(
    bundle: Path, tmp_path: Path, change: dict[str, bytes | None], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        package.load(rewritten(bundle, tmp_path / "bad.zip", dict(change)))
    assert not list((tmp_path / "cache").glob("bad-*"))


def test_what_is_no_zip_at_all_is_said(tmp_path: Path, expkit: Expkit, bundle: Path) -> None:
    (tmp_path / "cut.zip").write_bytes(bundle.read_bytes()[:2000])
    assert "is no bundle" in expkit("load", "cut.zip")[2]
    assert "cannot be read" in expkit("load", "nothing.zip")[2]
