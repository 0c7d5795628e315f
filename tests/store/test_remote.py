"""A runs folder behind a URL: read as one that lies here, fetched no more than once, never half."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import expkit
from expkit.errors import EnvironmentFault, UsageError
from expkit.store import remote
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.place import is_view, opened
from expkit.store.query import connect
from expkit.store.records import Status
from tests.store.elsewhere import put
from tests.store.fake_s3 import Bucket, serving
from tests.store.synthetic import Method, Synthetic, make_store

ROOT = Path(__file__).parents[2]
_number = itertools.count()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXPKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    return make_store(tmp_path_factory.mktemp("here") / "runs", {"ema": Method()}, seeds=(17, 18))


@pytest.fixture
def url() -> Iterator[str]:
    root = f"memory://lab{next(_number)}/runs"
    yield root
    fs = fsspec.filesystem("memory")
    fs.store.clear()


class Counting:
    """Which files were fetched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        fetch = remote._Mirror._fetch_some

        def counted(mirror: Any, some: list[Any]) -> None:
            self.names += [name for name, _ in some]
            fetch(mirror, some)

        monkeypatch.setattr(remote._Mirror, "_fetch_some", counted)

    def take(self) -> list[str]:
        names, self.names = self.names, []
        return names


def test_a_store_elsewhere_answers_as_one_here(made: Synthetic, url: str) -> None:
    put(made.root, url)
    with expkit.load(url, "ablate") as there, expkit.load(made.root, "ablate") as here:
        assert there.trials.rows() == here.trials.rows() and len(there.trials) == 6
        assert there.curve().rows() == here.curve().rows()
        assert there["last"].config and there.set_aside == [] and is_view(there.root)


def test_only_what_has_changed_is_fetched(made: Synthetic, url: str, tmp_path: Path, monkeypatch) -> None:
    own = make_store(tmp_path / "own", {"ema": Method()}, seeds=(17,))
    put(own.root, url)
    fetched = Counting(monkeypatch)
    expkit.load(url)
    assert len(fetched.take()) > 10
    expkit.load(url)
    assert fetched.take() == []
    id12 = own.ids["ema", 17]
    attempt = own.store.layout.attempt(id12, 0, 1)
    writer = MetricsWriter(attempt, id12, 0, 1)
    writer.log_many({"eval/accuracy": 0.99}, Stamp(200, 0, 0, 0, 0, 9.0, 9.0, 9.0))
    writer.close()
    fs, root = fsspec.core.url_to_fs(url)
    for path in (attempt / "metrics-000001.parquet", own.store.layout.trial_record(id12)):
        fs.pipe_file(f"{root}/{path.relative_to(own.root)}", path.read_bytes())
    with expkit.load(url) as ex:
        assert sorted(name.rpartition("/")[2] for name in fetched.take()) == ["metrics-000001.parquet", "trial.json"]
        assert ex.sql("SELECT max(value) AS v FROM metrics WHERE name = 'eval/accuracy'").rows() == [{"v": 0.99}]


def test_what_was_removed_there_is_gone_here(made: Synthetic, url: str) -> None:
    put(made.root, url)
    assert len(expkit.load(url).trials) == 6
    fs, root = fsspec.core.url_to_fs(url)
    fs.rm(f"{root}/trials/{made.ids['ema', 17]}", recursive=True)
    with expkit.load(url) as ex:
        assert len(ex.trials) == 5 and ex.sql("SELECT count(DISTINCT id) AS n FROM metrics").rows() == [{"n": 3}]


def test_logs_and_checkpoints_are_not_fetched_unless_they_are_asked_for(made: Synthetic, url: str) -> None:
    put(made.root, url)
    fs, root = fsspec.core.url_to_fs(url)
    attempt = f"{root}/trials/{made.ids['ema', 17]}/r0/attempts/1"
    for name in ("rank0.log", "checkpoints/ep1/rank0.safetensors", "../../../../../../escaped", ".hidden.tmp"):
        fs.pipe_file(f"{attempt}/{name}", b"said")
    folder = opened(url)
    assert not [p for p in folder.rglob("*") if p.name in ("rank0.log", "rank0.safetensors", "escaped", ".hidden.tmp")]
    assert [p.read_bytes() for p in opened(url, logs=True).rglob("*.log")] == [b"said"]
    assert len(list(opened(url).rglob("*.log"))) == 1  # once here, it stays


def test_a_complete_trial_has_all_its_rows_though_it_ended_while_it_was_copied(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last metrics file and the final status come after the first listing and before the records are fetched."""
    from dataclasses import replace

    own = make_store(tmp_path / "own", {}, seeds=(17,), repeats=False, change=lambda c: replace(c, state="running"))
    put(own.root, url)
    id12 = own.ids["none", 17]
    fetch = remote._Mirror._fetch

    def ends_first(mirror: Any, wanted: Any) -> None:
        monkeypatch.setattr(remote._Mirror, "_fetch", fetch)
        writer = MetricsWriter(own.store.layout.attempt(id12, 0, 1), id12, 0, 1)
        writer.log_many({"eval/accuracy": 0.9}, Stamp(128, 0, 0, 0, 0, 1.0, 1.0, 1.0))
        writer.close()
        own.store.write_status(id12, 0, Status("complete", 1))
        put(own.root, url)
        fetch(mirror, wanted)

    monkeypatch.setattr(remote._Mirror, "_fetch", ends_first)
    with expkit.load(url) as ex, connect(own.root) as here:
        assert ex.trials.rows()[0]["status"] == "complete"
        assert len(ex.metrics()) == len(here.rows("SELECT * FROM metrics"))


def test_files_that_go_while_they_are_fetched(made: Synthetic, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record may go, a metrics file makes the whole look again, for its rows are elsewhere now."""
    put(made.root, url)
    fs, root = fsspec.core.url_to_fs(url)
    gone = [f"trials/{made.ids['ema', 17]}/r0/provenance.json", f"trials/{made.ids['none', 17]}/r1/attempts/1/"
            "metrics-000000.parquet"]  # fmt: skip
    fs.pipe_file(f"{root}/{gone[0]}", b"{}")
    get = fs.get

    def goes_first(paths: list[str], *more: Any) -> None:
        for path in paths:
            if path.removeprefix(f"{root}/") in gone and fs.exists(path):
                fs.rm_file(path)
        get(paths, *more)

    monkeypatch.setattr(type(fs), "get", lambda self, *arguments: goes_first(*arguments))
    with expkit.load(url) as ex:
        assert len(ex.trials) == 6 and ex.sql("SELECT count(DISTINCT (id, replicate)) AS n FROM metrics").rows() == [
            {"n": 5}
        ]


def test_where_there_is_nothing_or_nobody_it_is_said_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results at memory://nothing/there"):
        expkit.load("memory://nothing/there")
    with pytest.raises(UsageError, match="no address of files"):
        expkit.load("nosuchscheme://x/y")
    fsspec.register_implementation("broken", Broken, clobber=True)
    with pytest.raises(EnvironmentFault) as e:
        expkit.load("broken://me:hun@ter2@host/runs")
    assert str(e.value) == "broken://host/runs cannot be read: PermissionError you may not"


class Broken(fsspec.AbstractFileSystem):
    """Answers no question."""

    protocol = "broken"

    def find(self, *_: object, **__: object) -> None:
        raise PermissionError("you may not\nat all")


@pytest.fixture
def bucket(made: Synthetic) -> Iterator[Bucket]:
    bucket = Bucket("lab")
    for path in made.root.rglob("*"):
        if path.is_file():
            bucket.objects[f"my runs/{path.relative_to(made.root)}"] = path.read_bytes()
    with serving(bucket):
        yield bucket


def test_s3_is_read_over_its_protocol(made: Synthetic, bucket: Bucket, cache: Path) -> None:
    """In a process of its own, as a user has it: s3fs keeps a thread and connections until its process ends."""
    credentials = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": bucket.url,
                   "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}  # fmt: skip
    env = {**os.environ, **credentials, "PYTHONPATH": str(ROOT), "EXPKIT_CACHE": str(cache)}
    sql = "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM metrics"
    done = subprocess.run([sys.executable, "-c", TWICE, sql], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, nobody = done.stdout.splitlines()
    with connect(made.root) as con:
        assert json.loads(first) == con.rows(sql)
    assert second == first and len(bucket.reads) == len(set(bucket.reads)) > 20
    assert nobody == "UsageError there are no results at s3://nobody/runs"


TWICE = """
import json, sys
from typer.testing import CliRunner
from expkit.cli import app
for where in ("s3://lab/my runs", "s3://lab/my runs", "s3://nobody/runs"):
    done = CliRunner().invoke(app, ["query", sys.argv[1], "--json", "--runs-dir", where])
    if "nobody" in where:
        print(type(done.exception).__name__, done.exception)
    else:
        print(json.dumps(json.loads(done.stdout)))
"""
