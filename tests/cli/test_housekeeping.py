"""expkit rm, gc, tag, note: nothing goes that somebody still needs, and what is said of a trial is found again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from expkit.store import claims, notes
from expkit.store.discard import discard
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.query import connect
from expkit.store.records import PlanRow, Status
from tests.cli.conftest import Expkit, as_json
from tests.store.synthetic import Cell, Method, Synthetic, make_store


@pytest.fixture
def lab(expkit: Expkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Synthetic:
    """Baseline with a repeat and ema, seeds 17 and 18; ema at 18 is running."""
    monkeypatch.setenv("EXPKIT_RUNS", str(tmp_path / "runs"))

    def change(cell: Cell) -> Cell:
        return replace(cell, state="running") if (cell.arm, cell.seed) == ("ema", 18) else cell

    return make_store(tmp_path / "runs", {"ema": Method()}, seeds=(17, 18), change=change)


Counts = Callable[[], dict[str, Any]]


@pytest.fixture
def counts(lab: Synthetic) -> Counts:
    def count() -> dict[str, Any]:
        with connect(lab.root) as con:
            sql = """SELECT (SELECT count(*) FROM trials) AS replicates,
              (SELECT count(DISTINCT id) FROM trials) AS trials,
              (SELECT count(DISTINCT (id, replicate)) FROM metrics) AS with_metrics"""
            (row,) = con.rows(sql)
            assert con.set_aside == []
        return row

    return count


def test_a_trial_goes_with_all_its_replicates(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    id12 = lab.ids["none", 17]
    assert counts() == {"replicates": 6, "trials": 4, "with_metrics": 6}
    code, out, err = expkit("rm", id12[:6], "--yes")
    assert code == 0 and out.startswith(f"{id12} none (ablate)") and "removed 1 trial, " in err
    assert counts() == {"replicates": 4, "trials": 3, "with_metrics": 4}
    assert not [path for path in lab.store.layout.trials.iterdir() if path.name.startswith(".")]
    assert expkit("rm", id12)[0] == 2


def test_one_replicate_goes_alone(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    id12 = lab.ids["none", 17]
    assert expkit("rm", f"{id12}/r1", "--yes")[1].startswith(f"{id12} r1 none")
    assert lab.store.replicates(id12) == [0] and counts()["replicates"] == 5
    assert expkit("rm", f"{id12}/r0", "--yes")[0] == 0 and not lab.store.layout.trial(id12).exists()


def test_nobody_is_asked_where_nobody_is(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    before = counts()
    code, _, err = expkit("rm", lab.ids["none", 17])
    assert code == 2 and "--yes" in err and counts() == before
    assert "would remove 1 trial, " in expkit("rm", lab.ids["none", 17], "--dry-run")[2] and counts() == before
    told = as_json(expkit("rm", "last", "last~1", "--dry-run", "--json", "--force"))
    assert len(told) == 2 and not any(each["removed"] for each in told) and counts() == before
    assert "nothing to remove" in expkit("rm")[2]


def test_what_is_running_stays_unless_forced(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    id12 = lab.ids["ema", 18]
    code, out, err = expkit("rm", id12, lab.ids["none", 17], "--yes")
    assert code == 2 and out == "" and f"{id12} r0 is running" in err and counts()["trials"] == 4
    assert expkit("rm", id12, "--yes", "--force")[0] == 0 and counts()["trials"] == 3


def test_a_driver_that_came_first_keeps_its_trial(expkit: Expkit, lab: Synthetic, monkeypatch) -> None:
    """Between the look and the going somebody claims it."""
    from expkit.store import removal

    id12 = lab.ids["ema", 17]
    check = removal.check
    monkeypatch.setattr(
        removal, "check", lambda planned: (check(planned), claims.take(lab.store.layout, id12, 0, "a driver"))
    )
    code, _, err = expkit("rm", id12, "--yes")
    assert code == 2 and "running now" in err and lab.store.read_status(id12, 0) is not None


def test_what_several_sweeps_use_stays_and_they_are_named(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    shared = lab.ids["none", 17]
    lab.store.write_plan("second", "version: 1\n", [PlanRow(shared, 0, "none", "baseline", 0, 0)])
    code, _, err = expkit("rm", shared, "--yes")
    assert code == 2 and "is used by ablate and second" in err and counts()["trials"] == 4
    assert expkit("rm", f"{shared}/r1", "--yes")[0] == 0  # that one is ablate's alone
    lab.store.write_status(lab.ids["ema", 18], 0, Status("failed", 1, cause="oom"))
    code, _, err = expkit("rm", "--sweep", "ablate", "--yes")
    assert code == 0 and f"1 trial stay, for other sweeps use them: {shared}" in err
    assert lab.store.sweeps() == ["second"] and counts() == {"replicates": 1, "trials": 1, "with_metrics": 1}


def test_rows_leave_compacted_files_too(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    assert expkit("compact")[0] == 0
    id12, other = lab.ids["none", 17], lab.ids["none", 18]
    assert expkit("rm", f"{id12}/r0", other, "--yes")[0] == 0
    assert counts() == {"replicates": 3, "trials": 3, "with_metrics": 3}
    (file,) = lab.store.layout.compacted.glob("*.parquet")
    rows = pq.read_table(file, columns=["id", "replicate"])
    assert set(zip(rows["id"].to_pylist(), rows["replicate"].to_pylist(), strict=True)) == {
        (id12, 1), (lab.ids["ema", 17], 0),
    }  # fmt: skip


def test_rows_of_a_removed_trial_never_pass_for_those_of_its_next_run(lab: Synthetic, expkit: Expkit) -> None:
    """Killed after the folder went and before its rows did; then the sweep runs the trial again."""
    assert expkit("compact")[0] == 0
    store, id12 = lab.store, lab.ids["ema", 17]
    record = store.read_trial(id12)
    assert record is not None
    discard(store.layout.trial(id12))
    store.add_trial(record, "name: again")
    folder = store.new_attempt(id12, 0, "driver")
    assert folder.name == "2"
    writer = MetricsWriter(folder, id12, 0, 2)
    writer.log_many({"eval/accuracy": 0.5}, Stamp(1, 0, 0, 0, 0, 1.0, 1.0, 1.0))
    writer.close()
    for clean in (False, True):
        if clean:
            assert expkit("gc")[0] == 0
        with connect(lab.root) as con:
            (row,) = con.rows("SELECT count(*) AS n, min(value) AS v FROM metrics_all WHERE id = ?", [id12])
            assert row == {"n": 1, "v": 0.5}
            assert con.rows("SELECT count(DISTINCT (id, replicate)) AS n FROM metrics") == [{"n": 6}]


def test_a_condition_chooses(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    assert expkit("rm", "--where", "label = 'none' AND seed = 18", "--yes")[0] == 0
    assert counts() == {"replicates": 4, "trials": 3, "with_metrics": 4}
    code, _, err = expkit("rm", "--where", "seed = 99")
    assert code == 0 and "fits" in err


def test_the_sweep_finds_what_was_removed_missing(expkit: Expkit, lab: Synthetic) -> None:
    expkit("rm", lab.ids["ema", 17], "--yes")
    assert as_json(expkit("status", "ablate", "--json"))[0]["counts"] == {"complete": 4, "running": 1, "pending": 1}


def old(path: Path) -> Path:
    os.utime(path, (time.time() - 7200,) * 2)
    return path


def test_gc_takes_what_killed_ones_left_and_nothing_else(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    before, layout = counts(), lab.store.layout
    assert "nothing to remove" in expkit("gc")[2]
    gone = layout.trials / ".removed-abc-1-0"
    (gone / "r0").mkdir(parents=True)
    (gone / "r0" / "status.json").write_text("{}")
    torn = layout.attempt(lab.ids["none", 17], 0, 1) / ".metrics-000001.parquet.99-0.tmp"
    fresh = torn.with_name(".metrics-000002.parquet.99-1.tmp")
    for path in (torn, fresh):
        path.write_bytes(b"PAR1")
    old(torn)
    lab.store.write_provenance(lab.ids["none", 17], 0, {"a": 1})
    lab.store.write_provenance(lab.ids["none", 17], 0, {"a": 2})
    documents = [old(path) for path in (layout.root / "provenance").iterdir()]
    remains = layout.status("0123456789ab", 0)
    remains.parent.mkdir(parents=True)
    remains.write_text("{}")
    for path in (remains, remains.parent, remains.parent.parent):
        old(path)
    (layout.trials / "my plots").mkdir()  # somebody's own folder is nobody's garbage
    (layout.trials / "my plots" / "fig2.txt").write_text("")
    old(layout.trials / "my plots" / "fig2.txt")
    own = old(layout.trials / "my plots")
    code, out, err = expkit("gc", "--dry-run")
    assert code == 0 and len(out.splitlines()) == 4 and "would remove 4 items" in err and gone.exists()
    assert len(as_json(expkit("gc", "--json"))) == 4
    left = [path for path in (gone, torn, remains.parent.parent, *documents) if path.exists()]
    assert [path for path in left if path in documents] == left and len(left) == 1 and fresh.exists() and own.exists()
    assert counts() == before and lab.store.read_provenance(lab.ids["none", 17], 0)["a"] == 2


def test_results_go_only_on_request_and_tagged_ones_never(expkit: Expkit, lab: Synthetic, counts: Counts) -> None:
    stray = make_store(lab.root, {}, seeds=(90, 91), sweep="over", repeats=False)
    expkit("rm", "--sweep", "over", "--yes")
    stray = make_store(lab.root, {}, seeds=(90, 91), sweep="over", repeats=False)
    (lab.store.layout.sweep("over") / "plan.parquet").unlink()
    (lab.store.layout.sweep("over") / "sweep.json").unlink()
    checkpoint = lab.store.layout.checkpoints(lab.store.layout.attempt(lab.ids["none", 17], 0, 1))
    checkpoint.mkdir()
    assert "nothing to remove" in expkit("gc", "--dry-run")[2]
    assert len(as_json(expkit("gc", "--unused", "--dry-run", "--json"))) == 2
    expkit("tag", stray.ids["none", 90], "keep")
    code, out, err = expkit("gc", "--unused", "--checkpoints")
    assert code == 2 and "--yes" in err and stray.ids["none", 91] in out and str(checkpoint) in out
    assert expkit("gc", "--unused", "--checkpoints", "--yes")[0] == 0
    assert not checkpoint.exists() and counts()["trials"] == 5


def test_tags_and_notes_are_kept_and_found(expkit: Expkit, lab: Synthetic) -> None:
    id12 = lab.ids["none", 17]
    assert expkit("tag", id12[:5], "keep", "paper-fig2")[1] == "keep paper-fig2\n"
    assert as_json(expkit("tag", id12, "--remove", "keep", "--json")) == {"id": id12, "tags": ["paper-fig2"]}
    assert expkit("note", id12, "spikes at 900")[1] == "spikes at 900\n"
    expkit("note", id12, "\x1b[31msee seed 18", "--append")
    assert expkit("note", id12)[1] == "spikes at 900\nsee seed 18\n"
    (row,) = as_json(expkit("query", "SELECT id, tags, note FROM notes", "--json"))
    assert row == {"id": id12, "tags": ["paper-fig2"], "note": "spikes at 900\n\x1b[31msee seed 18"}
    assert as_json(expkit("note", id12, "", "--json"))["note"] == ""
    assert expkit("note", id12, "\udcff")[0] == 2 and expkit("note", id12)[1] == ""
    assert "has no tags" in expkit("tag", lab.ids["ema", 17])[2] and "has no note" in expkit("note", id12)[2]


def test_closed_streams_are_nobodys_files(lab: Synthetic) -> None:
    """A scheduler may start us without any; what we open first must not become standard output."""
    id12 = lab.ids["none", 17]
    for words, closed, code in ((("note", id12, "at night"), "<&- >&- 2>&-", 0), (("rm", id12), "<&-", 2)):
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-P", "-m", "expkit.cli", *words]
        done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (code, "" if code == 0 else f"{id12} none (ablate)\n"), done.stderr
    assert "--yes says so" in done.stderr and lab.store.read_trial(id12) is not None
    assert notes.read(lab.store.layout, id12, []).note == "at night"


def test_what_is_no_tag_and_a_note_that_never_ends_are_refused(expkit: Expkit, lab: Synthetic) -> None:
    id12 = lab.ids["none", 17]
    assert "a tag is" in expkit("tag", id12, "two words")[2]
    assert expkit("note", id12, "x" * 20_000)[0] == 2
    lab.store.layout.notes(id12).write_text('{"schema_version": 1, "tags": [1]}')
    code, _, err = expkit("query", "SELECT * FROM notes")
    assert code == 0 and err.count("notes.json") == 1
