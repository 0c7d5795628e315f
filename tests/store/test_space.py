"""A full disk, a real one of 5 MB: writers wait and say so, nothing stored is harmed, and nobody waits for ever.

Where this machine lets nobody mount one, the writes of metrics alone find a disk that is made up.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BODY = """
import errno, json, os, sys, threading, time
from pathlib import Path
from expkit.store import space
from expkit.store.compact import compact
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.store import Store
from expkit.store.query import connect
from tests.store.test_compact import attempt, finish

root, real = Path(sys.argv[1]), sys.argv[2] == "real"
filler = root / "filler"
said = {}

def rows():
    with connect(root) as con:
        found = con.rows("SELECT count(*) AS n, sum(batch)::BIGINT AS s FROM metrics")
        assert con.set_aside == [], con.set_aside
    return list(found[0].values())

def fill():
    if not real:
        filler.write_bytes(b"full")
        return
    with filler.open("ab", buffering=0) as f:
        try:
            while True:
                f.write(bytes(1 << 16))
        except OSError as e:
            assert e.errno == errno.ENOSPC
        try:
            while True:
                f.write(bytes(1))
        except OSError:
            pass

if not real:
    genuine = Path.write_bytes
    def write_bytes(path, data):
        if filler.exists() and path != filler:
            genuine(path, data[:100])
            raise OSError(errno.ENOSPC, "No space left on device")
        return genuine(path, data)
    Path.write_bytes = write_bytes

store = Store(root)
for replicate in (0, 1):
    finish(store, replicate, attempt(store, replicate, 30))
said["before"] = rows()
folder = store.new_attempt("0123456789ab", 2, "driver")
writer = MetricsWriter(folder, "0123456789ab", 2, 1)
fill()
stored = {str(p): p.read_bytes() for p in root.glob("trials/*/r[01]/**/*") if p.is_file()}
for batch in range(1, 11):
    writer.log_many({"loss": 0.5}, Stamp(batch, 0, 0, 0, 0, 0.0, 0.0, 0.0))
if real:
    try:
        compact(store)
        said["compacted"] = True
    except OSError as e:
        said["compact"] = errno.errorcode[e.errno]
said["full"] = rows()
os.environ["EXPKIT_DISK_WAIT"] = "0.6"
try:
    writer.flush()
except OSError as e:
    said["given up"] = errno.errorcode[e.errno]
os.environ["EXPKIT_DISK_WAIT"] = "60"
with space.unless(lambda: True):
    try:
        writer.flush()
    except OSError as e:
        said["asked to stop"] = errno.errorcode[e.errno]
said["left"] = [p.name for p in folder.iterdir() if p.name.startswith(".")]
threading.Timer(1.2, filler.unlink).start()
started = time.monotonic()
writer.close()
said["waited"] = time.monotonic() - started
said["same"] = all(Path(p).read_bytes() == data for p, data in stored.items())
said["after"] = rows()
said["events"] = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
compact(store)
said["compacted"] = rows()
print(json.dumps(said))
"""


@functools.cache
def namespace() -> list[str]:
    """How to get a mount table of one's own; empty where nobody may."""
    for command in (["unshare", "-m"], ["unshare", "-rm"]):
        try:
            tried = [*command, "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"]
            if subprocess.run(tried, capture_output=True, timeout=20).returncode == 0:
                return command
        except OSError:
            continue
    return []


def on_a_small_disk(folder: Path) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-c", BODY, str(folder), "real" if namespace() else "pretended"]
    if namespace():
        command = [*namespace(), "sh", "-c", 'mount -t tmpfs -o size=5m tmpfs "$0" && exec "$@"', str(folder), *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_writers_wait_for_space_and_nothing_is_harmed(tmp_path: Path) -> None:
    said, err = on_a_small_disk(tmp_path)
    assert said["before"] == said["full"] == [120, 4 * sum(range(1, 31))]
    assert said.get("compact", "ENOSPC") == "ENOSPC" and said["given up"] == said["asked to stop"] == "ENOSPC"
    assert said["same"] and said["left"] == [] and 0.8 < said["waited"] < 20
    assert said["after"] == said["compacted"] == [130, said["before"][1] + 55]
    (event,) = said["events"]
    assert (event["kind"], event["batch"]) == ("disk_full", 10) and event["payload"]["waited_s"] > 0.8
    assert "is full: waiting for space, up to 1 minutes" in err and "there is space again" in err


@pytest.mark.parametrize("number", ["no number", ""])
def test_an_hour_is_waited_where_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    from expkit.store import space

    monkeypatch.setenv("EXPKIT_DISK_WAIT", number)
    assert space._wait_s() == space.WAIT_S
