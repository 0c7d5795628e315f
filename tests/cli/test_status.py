"""`expkit status` and `expkit sweep` as a person meets them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from expkit.cli import app
from expkit.store.owner import Owner
from expkit.store.records import PlanRow, Status
from expkit.store.store import Store

runner = CliRunner()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "runs")
    rows = [PlanRow(f"{i:012x}", 0, "ema", "arm", 0, i) for i in range(5)]
    store.write_plan("ablate", "version: 1\n", rows)
    gone = Owner.this_process().__class__("elsewhere", "boot/ns", 1, 0.0)
    for row, status in zip(
        rows,
        [
            Status("complete", 1),
            Status("failed", 1, cause="oom", message="can't allocate memory\nmore"),
            Status("running", 1).owned_by(Owner.this_process()),
            Status("running", 1).owned_by(Owner(Owner.this_process().host, "another boot/", 1, 0.0)),
        ],
        strict=False,
    ):
        store.new_attempt(row.id, 0, "driver")
        store.write_status(row.id, 0, status)
    assert gone.alive() is None
    store.layout.heartbeat(rows[2].id, 0).write_text('{"batch": 5, "of": 8}')
    return store


def test_counts_by_state_and_names_who_needs_a_look(store: Store) -> None:
    done = runner.invoke(app, ["status", "ablate", "--runs-dir", str(store.layout.root)])
    assert done.exit_code == 0, done.output
    first, *rest = done.stdout.splitlines()
    assert first == "ablate: 5 replicates: 1 complete, 1 failed, 1 lost, 1 pending, 1 running"
    assert any("failed (oom)" in line and "can't allocate memory" in line for line in rest)
    assert any("running" in line and "batch 5 of 8" in line for line in rest)
    assert any("lost" in line for line in rest)


def test_json_has_the_same(store: Store) -> None:
    import json

    done = runner.invoke(app, ["status", "--runs-dir", str(store.layout.root), "--json"])
    (overview,) = json.loads(done.stdout)
    assert overview["counts"] == {"complete": 1, "failed": 1, "lost": 1, "pending": 1, "running": 1}
    assert overview["total"] == 5


def test_an_unknown_sweep_is_said_with_the_nearest(store: Store) -> None:
    done = runner.invoke(app, ["status", "ablat", "--runs-dir", str(store.layout.root)])
    assert done.exit_code != 0
    assert "did you mean 'ablate'" in str(done.exception)


def test_an_empty_folder_says_how_to_begin(tmp_path: Path) -> None:
    done = runner.invoke(app, ["status", "--runs-dir", str(tmp_path)])
    assert done.exit_code == 0
    assert "expkit sweep" in done.output


def test_reading_starts_nothing_and_writes_nothing(store: Store) -> None:
    before = {p: p.stat().st_mtime_ns for p in store.layout.root.rglob("*")}
    runner.invoke(app, ["status", "--runs-dir", str(store.layout.root)])
    assert {p: p.stat().st_mtime_ns for p in store.layout.root.rglob("*")} == before
