"""expkit report --bundle and expkit load: a sweep as one zip, opened anywhere, added to another runs folder."""

from __future__ import annotations

import hashlib
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


def with_head(bundle: Path, target: Path, files: dict[str, bytes], **head: str) -> Path:
    """The bundle with files more or other, of which its head knows."""
    with zipfile.ZipFile(bundle) as old:
        known = json.loads(old.read("bundle.json"))
    known["files"] |= {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return rewritten(bundle, target, {**files, "bundle.json": json.dumps({**known, **head}).encode()})


@pytest.mark.parametrize(
    "name",
    [
        "../../escaped", "/etc/escaped", ".", "./report/a", "a", "runs/trials/0123456789ab", "runs/trials/../x/a",
        "runs/sweeps/other/sweep.yaml", "runs/trials/0123456789ab/r0/status.json/x", "runs/trials/0123456789ab/own.py",
        "runs/trials/0123456789ab/r0/attempts/1/metrics-000000.parquet/x", "report/" + "x" * 300, "report\\..\\x",
    ],
)  # fmt: skip
def test_a_bundle_whose_head_vouches_for_a_name_that_leads_astray_is_refused(
    bundle: Path, tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError, match="which no bundle of expkit does"):
        package.load(with_head(bundle, tmp_path / "bad.zip", {name: b"x"}))
    assert not list((tmp_path / "cache").glob("bad-*")) and not (tmp_path.parent / "escaped").exists()


def test_a_link_in_a_bundle_becomes_the_text_that_it_is(bundle: Path, tmp_path: Path) -> None:
    bad = with_head(bundle, tmp_path / "bad.zip", {"report/report.md": b"/etc/passwd"})
    with zipfile.ZipFile(bad) as old, zipfile.ZipFile(tmp_path / "link.zip", "w") as new:
        for info in old.infolist():
            info.external_attr = 0o120777 << 16
            new.writestr(info, old.read(info))
    package.load(tmp_path / "link.zip")
    (report,) = (tmp_path / "cache").glob("link-*/report/report.md")
    assert not report.is_symlink() and report.read_text() == "/etc/passwd"


def test_a_head_that_is_a_bomb_or_would_steer_the_terminal_does_neither(
    bundle: Path, tmp_path: Path, expkit: Expkit
) -> None:
    assert "5000000 bytes packed into" in expkit(
        "load", str(rewritten(bundle, tmp_path / "bomb.zip", {"bundle.json": b" " * 5_000_000}))
    )[2]  # fmt: skip
    loud = with_head(bundle, tmp_path / "loud.zip", {}, made_utc="\x1b]0;x\x07soon", expkit="\x1b[2J1\u202e")
    assert "made soon by expkit 1;" in expkit("load", str(loud))[1]


def test_a_bundle_with_a_flipped_byte_anywhere_is_refused_or_the_same(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    with package.load(bundle) as there:
        expected = there.sql(ROWS).rows()
    for i in range(30):
        data = bytearray(whole)
        data[(i * 7919 + 11) % len(data)] ^= 1 << i % 8
        damaged = tmp_path / f"damaged{i}.zip"
        damaged.write_bytes(data)
        try:
            with package.load(damaged) as there:
                assert there.sql(ROWS).rows() == expected
        except UsageError as e:
            assert "\n" not in str(e)


def test_a_cache_of_which_half_was_cleared_away_is_made_anew(bundle: Path, tmp_path: Path) -> None:
    package.load(bundle).close()
    (head,) = (tmp_path / "cache").glob("ablate-*/bundle.json")
    head.unlink()
    assert len(package.load(bundle).trials) == 6 and head.exists()


def test_a_sweep_of_which_nothing_has_begun_can_be_bundled_and_added(expkit: Expkit, tmp_path: Path) -> None:
    make_store(tmp_path / "runs", {}, seeds=(17,), change=lambda cell: replace(cell, state="pending"))
    assert expkit("report", "ablate", "--bundle", "-o", "out", "--runs-dir", "runs")[0] == 0
    code, out, err = expkit("load", "out/ablate.zip", "--into", "mine")
    assert (code, out.splitlines()[0]) == (0, "ablate: 2 replicates: 2 pending"), err
    assert Store(Path("mine")).sweeps() == ["ablate"]


def test_what_is_no_zip_at_all_is_said(tmp_path: Path, expkit: Expkit, bundle: Path) -> None:
    (tmp_path / "cut.zip").write_bytes(bundle.read_bytes()[:2000])
    assert "is no bundle" in expkit("load", "cut.zip")[2]
    assert "cannot be read" in expkit("load", "nothing.zip")[2]
