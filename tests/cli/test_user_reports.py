"""Reports of users of other tools that a person meets through the command line; each test names its row."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from expkit.cli import names
from expkit.store.layout import METRICS
from expkit.store.metrics import FLUSH_S
from tests.cli.conftest import Expkit, as_json
from tests.store.synthetic import Cell, Method, Synthetic, make_store

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "duckdb", "pyarrow", "optuna", "scipy", "altair", "numpy", "yaml", "rich", "psutil"}
MAIN = "from expkit.cli import main; main()"
LOGS = """
import sys, time
from pathlib import Path
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.owner import Owner
from expkit.store.records import Status, TrialRecord
from expkit.store.store import Store
store, id64 = Store(Path(sys.argv[1])), "a" * 64
store.add_trial(TrialRecord(id64, "none", [], 0, 17, {"seed": 17}, {}), "seed: 17")
folder = store.new_attempt(id64[:12], 0, "driver")
store.write_status(id64[:12], 0, Status("running", 1).owned_by(Owner.this_process()))
writer = MetricsWriter(folder, id64[:12], 0, 1)
began = time.perf_counter()
for batch in range(10**9):
    writer.log("train/loss", 1.0, batch=batch, epoch=0, iteration=0, sample=0, token=0,
               train_s=0.0, cpu_s=0.0, wall_s=time.perf_counter() - began)
    if batch % 100 == 0:
        print(time.perf_counter() - began, flush=True)
        time.sleep(0.01)
"""


def odd(cell: Cell) -> Cell:
    """An arm whose metric is NaN, one whose metric is inf, one that failed without a value; the rest is fine."""
    if "to_nan" in cell.methods:
        return replace(cell, state="diverged", accuracy=math.nan)
    if "to_inf" in cell.methods:
        return replace(cell, accuracy=math.inf)
    return replace(cell, state="failed", cause="exception") if "to_null" in cell.methods else cell


def test_user_report_60_no_trial_without_a_finite_value_is_the_best(
    expkit: Expkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = {"to_nan": Method(0.5), "to_inf": Method(0.5), "to_null": Method(0.5), "ema": Method(0.9, 0.02)}
    made = make_store(tmp_path, methods, seeds=(17, 18, 19), change=odd, evaluations=4, num_batches=16)
    for cell in made.cells:
        if "to_null" in cell.methods:
            for file in made.store.layout.attempt(made.ids[cell.arm, cell.seed], 0, 1).glob("*.parquet"):
                file.unlink()
    monkeypatch.setenv("EXPKIT_RUNS", str(tmp_path))
    for ranking in ("last DESC", "max DESC", "last", "min"):
        joined = "SELECT label FROM trials JOIN final USING (id, replicate) WHERE name = 'eval/accuracy'"
        sql = f"{joined} ORDER BY {ranking} LIMIT 1"
        assert as_json(expkit("query", "--json", sql))[0]["label"] in ("ema", "none"), ranking
    summary = as_json(expkit("report", "ablate", "--json"))
    assert summary["states"]["diverged"] == 24
    verdicts = {arm["label"]: arm["verdict"] for arm in summary["arms"]}
    assert verdicts["ema"].startswith("FASTER")
    assert not any(verdicts[arm].startswith(("FASTER", "BETTER")) for arm in verdicts if "to_" in arm)
    assert "to_" not in summary["headline"][0]
    assert {row["state"] for row in summary["failures"]} == {"diverged", "failed"}
    assert "diverged" in expkit("report", "ablate", "--format", "md")[1]


def test_user_report_63_after_a_kill_while_logging_query_works_and_names_what_it_leaves_out(
    expkit: Expkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPKIT_RUNS", str(tmp_path))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", LOGS, str(tmp_path)], env=env, stdout=subprocess.PIPE, text=True
    ) as it:
        assert it.stdout is not None
        logged_s = 0.0
        while logged_s < FLUSH_S + 1:
            logged_s = float(it.stdout.readline())
        it.send_signal(signal.SIGKILL)
        logged_s = max([logged_s, *(float(line) for line in it.stdout if line.endswith("\n"))])
    (part, *_) = sorted(p for p in tmp_path.rglob("*.parquet") if METRICS.fullmatch(p.name))
    torn = part.with_name("metrics-000900.parquet")
    torn.write_bytes(part.read_bytes()[:-20])
    part.with_name("metrics-000901.parquet").touch()
    sql = "SELECT status, max(m.wall_s) AS kept_s FROM metrics m JOIN trials USING (id, replicate) GROUP BY status"
    done = expkit("query", "--json", sql)
    (row,) = as_json(done)
    assert row["status"] == "lost"
    assert logged_s - row["kept_s"] < FLUSH_S + 0.5
    assert f"set aside: {torn}: has no footer" in done[2]
    assert "metrics-000901.parquet: is 0 bytes long" in done[2]


def test_user_report_62_garbled_records_break_no_listing(
    expkit: Expkit, made: Synthetic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made.root, tmp_path / "runs")
    monkeypatch.setenv("EXPKIT_RUNS", str(tmp_path / "runs"))
    layout = type(made.store)(tmp_path / "runs").layout
    garbage = (b"", b"{", b"[]", b"\xff\xfe\x00", b'{"schema_version": 1}', b'{"schema_version": 99}', b"[" * 100_000)
    files = sorted({layout.trial_record(id12) for id12 in made.ids.values() if layout.trial(id12).exists()})
    for file, content in zip(files, garbage, strict=False):
        file.write_bytes(content)
    (layout.sweep("ablate") / "sweep.json").write_bytes(b"{")
    for command in (("status",), ("report", "ablate"), ("query", "SELECT label FROM trials, sweeps"), ("show", "last"),
                    ("why", "last"), ("query", "SELECT count(*) FROM params")):  # fmt: skip
        code, out, _ = expkit(*command)
        assert code == 0 and out, command
    _, out, err = expkit("query", "--json", "SELECT count(*) AS n FROM trials")
    assert json.loads(out)[0]["n"] > 0
    assert all(f"set aside: {file}: " in err for file in files[: len(garbage)])


def test_user_report_33_a_killed_trial_is_lost_everywhere_and_nothing_is_written(
    expkit: Expkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPKIT_RUNS", str(tmp_path))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", LOGS, str(tmp_path)], env=env, stdout=subprocess.PIPE) as trial:
        assert trial.stdout is not None and trial.stdout.readline()
        assert "running" in expkit("status")[1]
        trial.kill()
        trial.wait()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert "1 lost" in expkit("status")[1]
    assert as_json(expkit("query", "--json", "SELECT status FROM trials")) == [{"status": "lost"}]
    assert "is gone; it left no result" in expkit("why", "aaa")[1]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def run(*arguments: str) -> tuple[float, str]:
    """CPU seconds of `expkit ...` in a fresh interpreter, and what it printed."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments], cwd=ROOT, text=True, capture_output=True, check=True
    )
    after = os.times()
    return after[2] + after[3] - before[2] - before[3], done.stdout


@pytest.mark.parametrize("command", [None, *names()])
def test_user_report_75_help_loads_nothing_heavy(command: str | None) -> None:
    code = "\n".join([
        "import sys, json, atexit",
        "atexit.register(lambda: print(json.dumps(sorted({m.split('.')[0] for m in sys.modules}))))",
        "from expkit.cli import main",
        "main()",
    ])  # fmt: skip
    arguments = [*([command] if command else []), "--help"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    *text, loaded = done.stdout.splitlines()
    assert not HEAVY & set(json.loads(loaded))
    assert any("Example: expkit " in line for line in text)
    assert ("--install-completion" in done.stdout) == (command is None)


def test_user_report_75_help_is_quick() -> None:
    """150 ms for the whole and 250 ms for a command on a quiet machine; CPU time, twice that here for a busy one."""
    for arguments, bar_s in ((("--help",), 0.150), (("sweep", "--help"), 0.250)):
        assert statistics.median(run(*arguments)[0] for _ in range(5)) < 2 * bar_s


def test_user_report_75_what_the_whole_help_says_each_command_says() -> None:
    whole = run("--help")[1]
    for name in names():
        assert f"  {name} " in whole
        assert run(name, "-h")[1].startswith(f"Usage: expkit {name} ")
    done = subprocess.run([sys.executable, "-c", MAIN, "sweeep"], cwd=ROOT,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2 and "sweep" in done.stderr.lower().replace("sweeep", "")
