"""Store: folders, states, attempts, plans; what a crash leaves, and what another host can know of it."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expkit.errors import EnvironmentFault, UsageError
from expkit.store.owner import Owner
from expkit.store.pulse import UNSEEN_LOST_S, Pulse
from expkit.store.records import PlanRow, Status, TrialRecord
from expkit.store.removal import of_sweep
from expkit.store.store import Store
from expkit.store.sweeps import plan_schema

ID = "0123456789ab" + "c" * 52
ID12 = ID[:12]


def record(full: str = ID) -> TrialRecord:
    return TrialRecord(full, "none", [], 0, 17, {"seed": 17}, {"seed": 17})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "runs")
    store.add_trial(record(), "seed: 17\n")
    return store


def test_adding_a_trial_twice_changes_nothing(store: Store) -> None:
    before = store.layout.recipe(ID12).stat().st_mtime_ns
    store.add_trial(record(), "seed: 17\n")
    assert store.layout.recipe(ID12).stat().st_mtime_ns == before
    assert store.read_trial(ID12) == record()
    assert store.layout.recipe(ID12).read_text() == "seed: 17\n"


def test_a_folder_of_another_full_id_is_exit_3(store: Store) -> None:
    with pytest.raises(EnvironmentFault, match="belongs to trial") as e:
        store.add_trial(record(ID12 + "d" * 52), "seed: 18\n")
    assert e.value.exit_code == 3
    assert store.read_trial(ID12) == record()


def test_a_damaged_trial_record_is_written_again_and_named(store: Store) -> None:
    store.layout.trial_record(ID12).write_text("{")
    store.add_trial(record(), "seed: 17\n")
    assert store.read_trial(ID12) == record()
    assert [u.path for u in store.set_aside] == [store.layout.trial_record(ID12)]


def test_a_stray_file_beside_the_trials_is_none(store: Store) -> None:
    """`expkit status` died of a NotADirectoryError over a file that somebody had left in runs/trials."""
    (store.layout.trials / "notes.txt").touch()
    assert store.replicates("notes.txt") == []


def test_the_states_of_a_replicate_from_nothing_to_complete(store: Store) -> None:
    assert store.state_of(ID12, 0) == "pending"
    assert store.state_of("f" * 12, 0) == "pending"
    claim = store.claim(ID12, 0, "driver")
    assert claim is not None
    assert store.state_of(ID12, 0) == "claimed"
    attempt_dir = store.new_attempt(ID12, 0, "driver", exclusive=True)
    assert attempt_dir == store.layout.attempt(ID12, 0, 1)
    assert store.read_attempt(attempt_dir) == {
        "schema_version": 1, "exclusive": True, "attempt": 1, "replicate": 0, "driver": "driver", "from": None,
    }  # fmt: skip
    status = store.read_status(ID12, 0)
    assert status is not None and status.state == "claimed" and status.created_utc
    store.write_status(ID12, 0, replace(status, state="running"))
    assert store.state_of(ID12, 0) == "running"
    store.write_status(ID12, 0, replace(status, state="complete"))
    claim.release()
    assert store.state_of(ID12, 0) == "complete"
    assert store.replicates(ID12) == [0]


def test_a_complete_replicate_is_never_changed(store: Store) -> None:
    store.new_attempt(ID12, 0, "driver")
    store.write_status(ID12, 0, Status("complete", 1))
    before = store.layout.status(ID12, 0).read_bytes()
    with pytest.raises(EnvironmentFault, match="never changed; run it again as r1"):
        store.write_status(ID12, 0, Status("failed", 1))
    with pytest.raises(EnvironmentFault, match="never changed"):
        store.new_attempt(ID12, 0, "driver")
    assert store.claim(ID12, 0, "driver") is None
    assert store.layout.status(ID12, 0).read_bytes() == before


def test_attempts_are_numbered_and_name_what_they_continue(store: Store) -> None:
    store.new_attempt(ID12, 0, "driver")
    store.write_status(ID12, 0, Status("interrupted", 1, created_utc="2026-01-01T00:00:00Z"))
    second = store.new_attempt(ID12, 0, "driver", continues=(1, 40))
    assert second.name == "2"
    assert (store.read_attempt(second) or {})["from"] == {"attempt": 1, "batch": 40}
    status = store.read_status(ID12, 0)
    assert status is not None and status.attempt == 2 and status.created_utc == "2026-01-01T00:00:00Z"


def test_user_report_33_a_killed_worker_is_lost_at_once(store: Store) -> None:
    store.new_attempt(ID12, 0, "driver")
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    running = Status("running", 1).owned_by(Owner.of(worker.pid))
    store.write_status(ID12, 0, running)
    assert store.state_of(ID12, 0) == "running"
    os.kill(worker.pid, signal.SIGKILL)
    _until(lambda: store.state_of(ID12, 0) == "lost")  # still a zombie: nobody has waited for it
    worker.wait()
    assert store.state_of(ID12, 0) == "lost"
    assert store.read_status(ID12, 0) == running  # inferred, never written


def test_a_dead_worker_of_a_living_driver_is_still_running(store: Store) -> None:
    claim = store.claim(ID12, 0, "driver")
    assert claim is not None
    store.new_attempt(ID12, 0, "driver")
    store.write_status(ID12, 0, Status("running", 1).owned_by(replace(Owner.this_process(), process_start=1.0)))
    assert store.state_of(ID12, 0) == "running"  # its driver is about to write how it ended
    claim.release()
    assert store.state_of(ID12, 0) == "lost"


def test_a_pid_that_was_given_away_again_is_lost(store: Store) -> None:
    store.new_attempt(ID12, 0, "driver")
    store.write_status(ID12, 0, Status("running", 1).owned_by(replace(Owner.this_process(), process_start=1.0)))
    assert store.state_of(ID12, 0) == "lost"


def test_after_a_reboot_all_running_ones_are_lost(store: Store) -> None:
    store.new_attempt(ID12, 0, "driver")
    before = replace(Owner.this_process(), boot_id="another-boot/pid:[1]")
    store.write_status(ID12, 0, Status("running", 1).owned_by(before))
    assert store.state_of(ID12, 0) == "lost"


@pytest.mark.parametrize("elsewhere", [{"host": "another"}, {"boot_id": ""}])
def test_on_another_host_or_container_the_heartbeat_answers(
    store: Store, elsewhere: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.new_attempt(ID12, 0, "driver")
    owner = Owner.this_process()
    if "boot_id" in elsewhere:
        elsewhere = {"boot_id": owner.boot_id.partition("/")[0] + "/pid:[1]"}
    store.write_status(ID12, 0, Status("running", 1).owned_by(replace(owner, pid=1, **elsewhere)))
    assert store.state_of(ID12, 0) == "running"
    monkeypatch.setattr("expkit.store.store.PULSE", Pulse())  # somebody who looks for the first time
    silent = time.time() - UNSEEN_LOST_S - 1
    os.utime(store.layout.status(ID12, 0), (silent, silent))
    assert store.state_of(ID12, 0) == "lost"
    store.heartbeat(ID12, 0)
    assert store.state_of(ID12, 0) == "running"


def test_user_report_62_a_damaged_status_is_lost_and_named(store: Store) -> None:
    store.new_attempt(ID12, 0, "driver")
    store.layout.status(ID12, 0).write_text('{"state": "complete"')
    assert store.state_of(ID12, 0) == "lost"
    assert store.set_aside[0].path == store.layout.status(ID12, 0)


def test_a_plan_comes_back_in_run_order_and_keeps_its_first_date(store: Store) -> None:
    rows = [PlanRow("b" * 12, 0, "ema", "arm", 0, 1, "t"), PlanRow("a" * 12, 0, "none", "baseline", 0, 0)]
    store.write_plan("ablate", "version: 1\n", rows, file="sweeps/ablate.yaml")
    first = store.sweep_record("ablate")
    store.write_plan("ablate", "version: 1\nname: x\n", rows)
    again = store.sweep_record("ablate")
    assert store.read_plan("ablate") == sorted(rows, key=lambda r: r.position)
    assert again["created_utc"] == first["created_utc"] and again["sha256"] != first["sha256"]
    assert store.layout.sweep_yaml("ablate").read_text() == "version: 1\nname: x\n"
    assert store.sweeps() == ["ablate"]
    assert store.read_plan("none") == [] and store.set_aside == []


def test_a_damaged_plan_is_named(store: Store) -> None:
    store.write_plan("ablate", "", [])
    store.layout.plan("ablate").write_bytes(b"PAR1")
    assert store.read_plan("ablate") == []
    assert store.set_aside[0].path == store.layout.plan("ablate")


def test_a_plan_that_was_deleted_is_named_where_the_sweep_is_still_recorded(store: Store) -> None:
    store.write_plan("ablate", "", [])
    store.layout.plan("ablate").unlink()
    assert store.read_plan("ablate") == []
    (found,) = store.set_aside
    assert found.path == store.layout.plan("ablate")
    assert found.reason == "is gone, though the sweep was planned; expkit sweep FILE writes it again"


def test_settings_and_target_come_back(store: Store) -> None:
    assert store.sweep_settings("ablate") == {} and store.targets("ablate") == {}
    store.write_settings("ablate", {"clock": "train_s"})
    store.write_target("ablate", {"value": 0.8, "ladder": [[0.9, 0.7]]})
    assert store.sweep_settings("ablate") == {"clock": "train_s"}
    assert store.targets("ablate") == {"value": 0.8, "ladder": [[0.9, 0.7]]}


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a\n"])
def test_a_sweep_name_cannot_lead_out_of_its_folder(store: Store, name: str) -> None:
    with pytest.raises(UsageError, match="sweep's name"):
        store.write_plan(name, "", [])


def test_what_is_equal_for_all_replicates_is_stored_once(store: Store) -> None:
    for replicate in range(3):
        store.write_provenance(ID12, replicate, {"packages": {"torch": "2.13.0"}}, pid=replicate)
    assert len(list((store.layout.root / "provenance").iterdir())) == 1
    assert store.read_provenance(ID12, 2) == {"packages": {"torch": "2.13.0"}, "schema_version": 1, "pid": 2}
    assert store.read_provenance(ID12, 9) == {}


def _until(holds: object, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_plan_from_elsewhere_names_no_folder_outside(tmp_path: Path) -> None:
    """It came in a bundle, and `expkit rm --sweep` would have removed what its ids led to."""
    (tmp_path / "keep" / "r0").mkdir(parents=True)
    store = Store(tmp_path / "runs")
    store.write_plan("ablate", "version: 1\n", [PlanRow("a" * 12, 0, "none", "baseline", 0, 0)])
    for column, bad in (("id", "../../keep"), ("role", "guest"), ("id", None), ("replicate", -1)):
        rows = [{**dataclasses.asdict(PlanRow("a" * 12, 0, "none", "baseline", 0, 0)), column: bad}]
        pq.write_table(pa.Table.from_pylist(rows, schema=plan_schema()), store.layout.plan("ablate"))
        assert store.read_plan("ablate") == [] and store.set_aside.pop().path == store.layout.plan("ablate")
    assert of_sweep(store, "ablate") == ([], [])
