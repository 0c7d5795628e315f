"""Commands on a runs folder behind a URL: those that read take it, those that write refuse it."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from tests.cli.conftest import Expkit, as_json
from tests.store.elsewhere import put
from tests.store.synthetic import Method, make_store


def test_commands_that_read_take_a_url_and_those_that_write_refuse_it(
    tmp_path: Path, expkit: Expkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPKIT_CACHE", str(tmp_path / "cache"))
    url = "memory://commands/runs"
    made = make_store(tmp_path / "runs", {"ema": Method()}, seeds=(17, 18))
    put(made.root, url)
    count = "SELECT count(*) AS n FROM trials"
    assert as_json(expkit("query", count, "--runs-dir", url, "--json")) == [{"n": 6}]
    monkeypatch.setenv("EXPKIT_RUNS", url)
    assert as_json(expkit("query", count, "--json")) == [{"n": 6}]
    assert "ablate: 6 replicates: 6 complete" in expkit("status")[1]
    assert len(as_json(expkit("list", "trials", "ablate", "--json"))) == 6
    assert expkit("show", "last")[0] == expkit("diff", made.ids["ema", 17], made.ids["ema", 18])[0] == 0
    for command in (("rm", "last", "--yes"), ("gc",), ("tag", "last", "x"), ("run", "fashion_resnet")):
        code, _, err = expkit(*command)
        assert code == 2 and "can only be read" in err
    fs, root = fsspec.core.url_to_fs(url)
    fs.pipe_file(f"{root}/trials/{made.ids['ema', 17]}/r0/attempts/1/rank0.log", b"it said so\n")
    assert expkit("logs", made.ids["ema", 17])[1] == "it said so\n"
